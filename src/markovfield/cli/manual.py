"""An example under the help of every command, and ``markovfield help``, which shows the help of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import cleandoc
from typing import Annotated, Any

import typer
import typer.main

from markovfield.cli._errors import CommandError

__all__ = ["EXAMPLES", "commands", "group_alone", "help_", "obeying", "with_examples"]

# By the words of a command; a test obeys those whose files are easily had, and parses the others.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "infer": (
        "markovfield infer asia.bif --evidence xray=yes --evidence smoke=yes",
        "markovfield infer model.uai --evidence model.uai.evid --task PR --json",
    ),
    "explain": ("markovfield explain asia.bif --task MPE",),
    "decode": ("markovfield decode model.wcsp --time-limit 30 --n-best 3",),
    "sample": ("markovfield sample asia.bif --size 1000 --evidence smoke=yes --seed 1 --out samples.csv",),
    "lattice": ("markovfield lattice ising --size 64 --coupling 0.44 --sweeps 200 --out magnet.png",),
    "warmup": ("markovfield warmup junction_tree chain_crf",),
    "query": ("markovfield query asia.bif --target lung,bronc --evidence xray=yes",),
    "learn": ("markovfield learn data.csv --structure hill_climbing --out learnt.bif",),
    "fit": ("markovfield fit model.uai --data data.csv --method pl --l2 1 --out fitted.uai",),
    "draw": ("markovfield draw asia.bif --kind posteriors --evidence xray=yes --output asia.svg",),
    "explore": ("markovfield explore asia.bif",),
    "demo": ("markovfield demo --quick",),
    "help": ("markovfield help crf train", "markovfield help --all"),
    "crf train": ("markovfield crf train train.txt --template bigram.tpl --model tagger.mf",),
    "crf tag": ("markovfield crf tag test.txt --model tagger.mf --marginals",),
    "crf eval": ("markovfield crf eval test.txt --model tagger.mf",),
    "crf show": ("markovfield crf show --model tagger.mf",),
    "parse train": ("markovfield parse train trees.mrg --out grammar.mf --vertical 2",),
    "parse predict": ("markovfield parse sentences.txt --model grammar.mf --n-best 3",),
    "parse eval": ("markovfield parse eval trees.mrg --model grammar.mf --max-words 40",),
    "ssvm train": ("markovfield ssvm train letters.npz --model multiclass --cost 0.1 --out letters.mf",),
    "ssvm predict": ("markovfield ssvm predict letters.mf test.npz --out labels.npz",),
    "ssvm eval": ("markovfield ssvm eval letters.mf test.npz",),
    "structured train": ("markovfield structured train images.npz --model grid --l2 1 --out grid.mf",),
    "structured predict": ("markovfield structured predict grid.mf test.npz --marginals --out labels.npz",),
    "structured eval": ("markovfield structured eval grid.mf test.npz",),
    "align train": ("markovfield align train corpus.en corpus.fr --model hmm --out hmm.mf",),
    "align predict": ("markovfield align predict hmm.mf test.en test.fr --out links.txt",),
    "align eval": ("markovfield align eval hmm.mf test.en test.fr gold.txt",),
    "logic infer": ("markovfield logic infer smokers.mln --evidence people.db --query Smokes",),
    "logic learn": ("markovfield logic learn smokers.mln people.db --query Smokes --out learnt.mln",),
    "logic ground": ("markovfield logic ground smokers.mln --evidence people.db --out smokers.uai",),
    "gaussian fit": ("markovfield gaussian fit cells.csv --edge PKC,PKA --edge PKA,Erk --out cells.mfz",),
    "gaussian learn": ("markovfield gaussian learn cells.csv --method graphical_lasso --out cells.mfz",),
    "gaussian query": ("markovfield gaussian query cells.mfz --evidence PKC=1.2 --variables PKA",),
    "gaussian sample": ("markovfield gaussian sample cells.mfz -n 100 --seed 1 --out rows.csv",),
    "gaussian forecast": ("markovfield gaussian forecast series.csv -n 12 --out forecast.csv",),
}


def _registered(app: typer.Typer, words: tuple[str, ...] = ()) -> dict[str, Any]:
    """Every command of an application by its words, as Typer keeps it."""
    found = {}
    for command in app.registered_commands:
        name = command.name or str(getattr(command.callback, "__name__", "")).strip("_").replace("_", "-")
        found[" ".join((*words, name))] = command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            found |= _registered(group.typer_instance, (*words, str(group.name)))
    return found


def commands(app: typer.Typer) -> list[str]:
    """The words of every command, in the order of the help.

    Examples
    --------
    >>> from markovfield.cli.app import app
    >>> commands(app)[:2]
    ['infer', 'explain']
    """
    return list(_registered(app))


def with_examples(app: typer.Typer) -> None:
    """Put the examples under the help of every command."""
    for name, command in _registered(app).items():
        if name in EXAMPLES:
            title = "Example:" if len(EXAMPLES[name]) == 1 else "Examples:"
            command.epilog = "\n\n".join((title, *EXAMPLES[name]))


def obeying(app: typer.Typer) -> Any:
    """The command that obeys an application's words.

    In its help switches show no type, since they take no value, and paragraphs are filled.
    """
    command = typer.main.get_command(app)
    waiting: list[Any] = [command]
    while waiting:
        found = waiting.pop()
        waiting += getattr(found, "commands", {}).values()
        for parameter in found.params:
            _as_switch(parameter)
        made = found.get_help_option
        found.get_help_option = lambda context, made=made: _as_switch(made(context))
        if found.help:
            found.help = "\n\n".join(" ".join(part.split()) for part in cleandoc(found.help).split("\n\n"))
    return command


def _as_switch(parameter: Any) -> Any:
    """The same parameter, without a type where it takes no value."""
    if getattr(parameter, "is_bool_flag", False) and parameter.metavar is None:
        parameter.metavar = ""
    return parameter


def group_alone(command: Any, words: Sequence[str]) -> bool:
    """Whether words end at a group of commands, none of which they choose."""
    for word in words:
        command = getattr(command, "commands", {}).get(word)
    return hasattr(command, "commands")


def help_(
    context: typer.Context,
    command: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="Of which command.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Of all commands, one after the other.")] = False,
) -> None:
    """Show the help of a command, or of all of them: every one comes with an example."""
    root = context.find_root()
    if not everything:
        _show(root, list(command or []))
        return
    if command:
        raise CommandError(f"--all shows the help of every command; leave out {' '.join(command)!r}")
    for name in EXAMPLES:
        if name.split()[0] in root.command.commands:  # type: ignore[attr-defined]
            _show(root, name.split())


def _show(context: Any, words: list[str]) -> None:
    """The help of one command, found word by word from the top."""
    found = context.command
    for k, word in enumerate(words):
        inner = getattr(found, "commands", {}).get(word)
        if inner is None:
            known = ", ".join(getattr(found, "commands", {})) or "none"
            raise CommandError(f"there is no command {' '.join(words[: k + 1])!r}; those there are: {known}")
        found = inner
        context = type(context)(found, parent=context, info_name=word)
    text = found.get_help(context)
    if text:  # with Rich, it has been shown already
        typer.echo(text)
