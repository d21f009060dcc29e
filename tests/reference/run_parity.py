#!/usr/bin/env python3
"""Compares the engine with Transformers, part by part. Started by run.sh."""

import argparse
import os
import sys

import check_chat
import check_model
import check_tokenizer
from engine import BUILD, Jobs, Report

PARTS = {
    "tokenizer": check_tokenizer.run,
    "chat": check_chat.run,
    "small": check_model.run_small,
    "layers": check_model.run_layers,
    "long": check_model.run_long,
    "full": check_model.run_full,
    "conversation": check_model.run_conversation,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=sorted(PARTS), help="run this part (repeatable)")
    parser.add_argument("--list", action="store_true", help="list the parts and stop")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(PARTS))
        return 0
    for name in ("qwen", "qwen-ids", "qwen-tokenize"):
        if not os.access(os.path.join(BUILD, name), os.X_OK):
            raise SystemExit(f"{BUILD}/{name} is not there: run `make` first")
    report, jobs = Report(), Jobs()
    try:
        for name, part in PARTS.items():
            if not arguments.only or name in arguments.only:
                part(report, jobs)
    finally:
        jobs.close()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
