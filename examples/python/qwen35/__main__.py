"""A conversation: python -m qwen35 MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]"""

import sys

import qwen35


def main() -> int:
    if not 2 <= len(sys.argv) <= 4:
        print(__doc__, file=sys.stderr)
        return 2
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    percent = int(sys.argv[3]) if len(sys.argv) > 3 else 70
    sampling = qwen35.Sampling("greedy", temperature=percent / 100, top_k=40)
    try:
        with qwen35.Model(sys.argv[1]) as model, model.session(sampling=sampling) as session:
            talk = qwen35.Conversation(session, thinking=False, max_tokens=most)
            for line in sys.stdin:
                try:
                    for piece in talk.ask(line.rstrip("\n")):
                        print(piece, end="", flush=True)
                except KeyboardInterrupt:
                    print(" (cancelled)", end="", file=sys.stderr, flush=True)
                print(flush=True)
    except qwen35.Error as error:
        print(f"chat: {error} ({error.name})", file=sys.stderr)
        return 1
    except ImportError as error:  # there is no library
        print(f"chat: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
