"""Every failure a user can cause, as one sentence and an exit code."""

from __future__ import annotations

from markovfield.exceptions import FormatError, ImpossibleEvidenceError, MemoryLimitError, ModelError, StoppedError
from markovfield.extras import EXTRAS, installed, missing

__all__ = ["FAILED", "INTERRUPTED", "MISUSED", "OK", "CommandError", "explained"]

OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130


class CommandError(Exception):
    """A command line that cannot be obeyed; the message is the sentence to show."""


def _os_sentence(error: OSError) -> str:
    name = error.filename if error.filename is not None else ""
    if isinstance(error, FileNotFoundError):
        return f"there is no file {name}"
    if isinstance(error, IsADirectoryError):
        return f"{name} is a folder, not a file"
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return f"cannot open {name}: {reason}" if name else reason


def explained(error: BaseException) -> tuple[str, int] | None:
    """The sentence and the exit code of a failure that is the user's to act on; None for anything else.

    1 means that the computation could not be done, 2 that the command line or a file is wrong.
    """
    if isinstance(error, ImpossibleEvidenceError | TimeoutError | StoppedError):
        return str(error), FAILED
    if isinstance(error, MemoryLimitError):
        return str(error), FAILED
    if isinstance(error, MemoryError):
        # NumPy says how much it asked for, and then speaks of shapes and types.
        asked = str(error).partition(" for an array")[0]
        more = f": {asked[:1].lower()}{asked[1:]}" if asked else ""
        return f"the computation ran out of memory{more}", FAILED
    if isinstance(error, ImportError):
        if "pip install" in str(error):
            return str(error), FAILED
        package = (error.name or "").partition(".")[0]
        if package in EXTRAS and not installed(package):
            return str(missing("this command", package)), FAILED
    if isinstance(error, CommandError | FormatError | ModelError):
        return str(error), MISUSED
    if isinstance(error, OSError):
        return _os_sentence(error), MISUSED
    # Typer's own usage errors, whose classes have moved between its versions.
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        message = str(error.format_message()).strip().rstrip(".").replace("Value error, ", "")
        return f"{message[:1].lower()}{message[1:]} (see --help)", int(error.exit_code)
    return None
