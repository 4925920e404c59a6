"""Lines of Python that ask what a page has asked."""

from __future__ import annotations

from pathlib import Path

from markovfield.explorer.core.opening import GRAMMAR

__all__ = ["lines_of"]


def lines_of(path: Path | None, *lines: str) -> str:
    """A script that reads the model and goes on with ``lines``.

    Examples
    --------
    >>> print(lines_of(Path("net.bif"), "print(mf.marginals(model))"), end="")
    import markovfield as mf
    <BLANKLINE>
    model = mf.read('net.bif')
    print(mf.marginals(model))
    """
    begin = ["import markovfield as mf", ""]
    if path is None:
        model = "...  # the model that is explored"
    elif path.suffix.lower() == GRAMMAR:
        begin, model = ["from pathlib import Path", "", *begin], f"mf.PCFG.from_text(Path({str(path)!r}))"
    else:
        model = f"mf.read({str(path)!r})"
    return "\n".join([*begin, f"model = {model}", *lines]) + "\n"
