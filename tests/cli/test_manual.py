"""Help: an example under every command that parses, `markovfield help`, completion of words by shells."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import markovfield as mf
from markovfield.cli import main
from markovfield.cli.app import app
from markovfield.cli.manual import EXAMPLES, commands

# These need no file but asia.bif, and little time.
OBEYED = ("infer", "explain", "sample", "query", "draw", "help")
LINES = [(name, line) for name, lines in EXAMPLES.items() for line in lines]


def found(words: list[str]) -> tuple[Any, list[str], Any]:
    """A command, the words after it, and its context."""
    command, context = get_command(app), None
    while hasattr(command, "get_command"):
        context = type(command).context_class(command, parent=context, info_name="markovfield")
        word = words[0] if words[0] in command.commands else "predict"  # `parse FILE` is `parse predict FILE`
        words = words[1:] if words[0] in command.commands else words
        command = command.get_command(context, word)
    return command, words, context


def test_every_command_has_an_example():
    missing = [name for name in commands(app) if name not in EXAMPLES]
    assert not missing, "markovfield/cli/manual.py wants an example of each"
    assert [name for name in EXAMPLES if name not in commands(app)] in ([], ["explore"])


@pytest.mark.parametrize(("name", "line"), [(n, s) for n, s in LINES if n in commands(app)])
def test_examples_parse(name: str, line: str):
    program, *words = shlex.split(line)
    assert program == "markovfield"
    command, rest, parent = found(words)
    context = type(command).context_class(command, parent=parent, info_name=name)
    assert command.name == name.rsplit(maxsplit=1)[-1]
    options, _, _ = command.make_parser(context).parse_args(list(rest))
    given = {name for name, value in options.items() if value is not None}
    assert {p.name for p in command.params if p.required} <= given, "an example leaves out what is required"


@pytest.mark.parametrize(("name", "line"), [(n, s) for n, s in LINES if n in OBEYED and "model.uai" not in s])
def test_examples_are_obeyed(name: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    monkeypatch.chdir(tmp_path)
    mf.write(mf.datasets.asia(), "asia.bif")
    assert main(shlex.split(line)[1:]) == 0
    assert "error" not in capsys.readouterr().err
    for word in ("samples.csv", "asia.svg"):
        assert (word in line) == Path(word).exists()


def test_help_is_that_of_the_command(capsys: Any):
    shown = []
    for words in (["crf", "train", "--help"], ["help", "crf", "train"]):
        assert main(words) == 0
        shown.append(capsys.readouterr().out)
    for text in shown:
        assert "Usage: markovfield crf train" in text and EXAMPLES["crf train"][0] in " ".join(text.split())
    assert main(["help"]) == 0
    assert "Usage: markovfield [OPTIONS] COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["", "crf", "parse", "ssvm", "structured", "align", "logic", "gaussian"])
def test_groups_alone_show_their_commands(name: str, capsys: Any):
    assert main(name.split()) == 0
    shown = capsys.readouterr()
    assert not shown.err
    assert "COMMAND [ARGS]" in shown.out and "Commands" in shown.out


def test_help_of_everything(capsys: Any):
    assert main(["help", "--all"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "<bool>" not in text and "<boolean>" not in text.lower(), "a switch takes no value"
    for name in commands(app):
        assert f"Usage: markovfield {name} " in text and EXAMPLES[name][0] in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["help", "infr"], "there is no command 'infr'; those there are: infer, explain, decode"),
        (["help", "crf", "infer"], "there is no command 'crf infer'; those there are: train, tag, eval, show"),
        (["help", "crf", "tag", "x"], "there is no command 'crf tag x'; those there are: none"),
        (["help", "--all", "crf"], "--all shows the help of every command; leave out 'crf'"),
    ],
)
def test_mistakes_in_asking_for_help(words: list[str], sentence: str, capsys: Any):
    assert main(words) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


def shell(**env: str) -> str:
    """What the installed command tells a shell that asks for completions."""
    code = "import sys; sys.argv = ['markovfield']; from markovfield.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and not done.stderr
    return done.stdout


@pytest.mark.parametrize(("kind", "word"), [("bash", "complete -o default"), ("zsh", "compdef"), ("fish", "complete")])
def test_shells_get_a_script(kind: str, word: str):
    script = shell(_MARKOVFIELD_COMPLETE=f"source_{kind}")
    assert word in script and "_MARKOVFIELD_COMPLETE" in script
    assert script.count("markovfield") >= 2


@pytest.mark.parametrize(
    ("kind", "env"),
    [
        ("bash", lambda typed: {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}),
        ("zsh", lambda typed: {"_TYPER_COMPLETE_ARGS": typed}),
        ("fish", lambda typed: {"_TYPER_COMPLETE_ARGS": typed, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_shells_complete_commands_options_and_methods(kind: str, env: Any):
    for typed, expected in (
        ("markovfield inf", "infer"),
        ("markovfield crf tr", "train"),
        ("markovfield infer model.uai --evi", "--evidence"),
        ("markovfield infer model.uai --task MM", "MMAP"),
        ("markovfield decode model.uai --method graph", "graph_cut"),
    ):
        assert expected in shell(_MARKOVFIELD_COMPLETE=f"complete_{kind}", **env(typed)), typed
