"""The command that opens the explorer."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer
from rich.text import Text

import markovfield as mf
from markovfield.cli import _options as options
from markovfield.cli import _report as report

__all__ = ["explore"]


def explore(
    model: options.Explored,
    port: Annotated[int, typer.Option(metavar="NUMBER", help="Where to listen; any free port when 0.")] = 0,
    open_browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the usual browser.")
    ] = True,
) -> None:
    """Show a model in the browser, served on this machine alone, until Ctrl-C.

    Networks, lattices, saved taggers, grammars, parsers and aligners, Markov logic programs, pictures.
    """
    out, _ = report.consoles()
    with mf.explore(model, open_browser=open_browser, port=port, block=False) as explorer:
        out.print(Text(f"{model.name} is shown at {explorer.url} until Ctrl-C", style="bold"), soft_wrap=True)
        with suppress(KeyboardInterrupt):  # how it is meant to end
            explorer.wait()
