"""``python -m markovfield``: the command line."""

from markovfield.cli import main

main()
