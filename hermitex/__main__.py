"""python -m hermitex: the command line, where its script is not on the path."""

import sys

try:
    from hermitex.face.guard import interrupts

    with interrupts(ends=True):
        from hermitex.face.cli import main
except KeyboardInterrupt:  # while it is imported
    print("hermitex: interrupted", file=sys.stderr)
    sys.exit(130)

if __name__ == "__main__":
    sys.exit(main())
