"""``python -m markovfield``: the command line."""

import sys

from markovfield.cli import main

if __name__ == "__main__":
    sys.exit(main())
