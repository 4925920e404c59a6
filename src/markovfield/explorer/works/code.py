"""Lines of Python that ask what a page has asked."""

from __future__ import annotations

from pathlib import Path

__all__ = ["lines_of"]


def lines_of(path: Path | None, *lines: str, read: str = "mf.read") -> str:
    """A script that reads the model and goes on with ``lines``.

    Examples
    --------
    >>> print(lines_of(Path("net.bif"), "print(mf.marginals(model))"), end="")
    import markovfield as mf
    <BLANKLINE>
    model = mf.read('net.bif')
    print(mf.marginals(model))
    """
    model = "...  # the model that is explored" if path is None else f"{read}({str(path)!r})"
    return "\n".join(["import markovfield as mf", "", f"model = {model}", *lines]) + "\n"
