#!/usr/bin/env bash
# Makes the demo checkpoint from nothing: held-out set, tokenizer, training, export, marks.
#
#   train/make.sh [--tokens N] [--procs N] ...     (arguments go to train.py; about two hours on two free cores)
#
# May be interrupted and started again: training goes on from its last save in
# train/work/ (DEMO_WORK names another folder). Remove that folder to start over, and
# eval/heldout.json and tokenizer.json too if those shall be made anew.
set -euo pipefail
cd "$(dirname "$0")"
export DEMO_WORK="${DEMO_WORK:-$PWD/work}"
mkdir -p "$DEMO_WORK"
python="${PYTHON:-}"
if [ -z "$python" ]; then
    python="$DEMO_WORK/venv/bin/python"
    if [ ! -x "$python" ]; then
        echo "== Python environment with the pinned packages"
        python3 -m venv "$DEMO_WORK/venv"
        "$DEMO_WORK/venv/bin/pip" install --quiet -r requirements.txt
    fi
fi
if [ ! -f "$DEMO_WORK/state.pt" ]; then
    echo "== held-out prompts"
    "$python" corpus.py
    "$python" render.py
    if [ ! -f ../tokenizer.json ]; then
        echo "== tokenizer"
        "$python" make_tokenizer.py
    fi
    echo "== model against Transformers"
    "$python" model.py
fi
echo "== training"
"$python" train.py "$@"
echo "== checkpoint"
"$python" export.py
echo "== marks, with Transformers; then the draft head"
"$python" ../eval/run_eval.py --wrong
"$python" check.py
