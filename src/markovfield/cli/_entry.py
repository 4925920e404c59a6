"""Where the installed command starts: imports come late, so that even an impatient Ctrl-C ends in one line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns 0 for success, 1 when the computation could not be done, 2 for misuse.

    Parameters
    ----------
    arguments
        The words after the command's name; those of the process when None.

    Examples
    --------
    >>> main(["--version"])
    markovfield ...
    0
    """
    try:
        from markovfield.cli.app import run

        return run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        sys.stderr.write("error: stopped\n")
        return 130
