"""What the command line names: evidence, query variables, methods, files to write."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markovfield import io
from markovfield.cli._errors import CommandError
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.files import atomic_writer
from markovfield.names import VariableName

__all__ = ["check_place", "configured_method", "read_evidence", "read_query", "save_picture", "writing"]


class writing:
    """Failures to write name the file that was asked for, not the temporary one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            reason = (error.strerror or str(error)).lower()
            raise CommandError(f"cannot write {self._path}: {reason}") from None


def check_place(path: Path | None) -> None:
    """Work may take long: know before it that its output can be written."""
    if path is None:
        return
    if path.is_dir():
        raise CommandError(f"cannot write {path}: it is a folder")
    if not path.resolve().parent.is_dir():
        raise CommandError(f"cannot write {path}: there is no folder {path.parent}")


def save_picture(figure: Any, path: Path, **settings: Any) -> None:
    """Write a figure whole or not at all, in the format that the file's name ends in, and close it."""
    from markovfield.plot._style import pyplot

    try:
        with atomic_writer(path) as stream:
            figure.savefig(stream, format=path.suffix.lower()[1:], bbox_inches="tight", **settings)
    finally:
        pyplot().close(figure)


def _variable(graph: FactorGraph, text: str) -> int | None:
    """Position of a variable by the text of its name, or None; names that are text come first."""
    for name in (text, int(text) if text.isdecimal() else None):
        if name is not None:
            try:
                return graph.names.position(name)
            except ModelError:
                pass
    return None


def _known_variable(graph: FactorGraph, text: str) -> int:
    """The same, or the library's error with the names that there are."""
    position = _variable(graph, text)
    if position is None:
        numbered = isinstance(graph.variables, range) and text.isdecimal()
        position = graph.names.position(int(text) if numbered else text)
    return position


def _state(graph: FactorGraph, position: int, text: str) -> Any:
    """The state that a text names: a state that reads like it, or an index where no state does."""
    cardinality = int(graph.structure.cardinalities[position])
    states = graph.names.state_names(position, cardinality)
    if text in states:
        return text
    alike = [s for s in states if str(s) == text]
    if len(alike) == 1:
        return alike[0]
    state: Any = int(text) if text.isdecimal() else text
    return states[graph.names.state(position, state, cardinality)]


def read_evidence(graph: FactorGraph, words: Sequence[str] | None) -> dict[VariableName, Any]:
    """Evidence by name, from words ``NAME=STATE`` and from UAI files."""
    found: dict[VariableName, Any] = {}
    for word in words or ():
        for variable, state in _observed(graph, word):
            if variable in found and found[variable] != state:
                raise CommandError(
                    f"variable {variable!r} is observed in two states, {found[variable]!r} and {state!r}"
                )
            found[variable] = state
    return found


def _observed(graph: FactorGraph, word: str) -> list[tuple[VariableName, Any]]:
    """What one word says: a state of a variable or, without an equals sign or where it is one, a file."""
    if "=" in word and not Path(word).is_file():
        return [_observation(graph, word)]
    if "=" not in word and _variable(graph, word) is not None and not Path(word).exists():
        raise CommandError(f"an observation is written NAME=STATE, got {word!r}")
    names, cards = graph.names, graph.structure.cardinalities
    found = []
    for position, index in io.read_uai_evidence(word).items():
        if position >= graph.n_variables:
            raise CommandError(f"{word} observes variable {position}, but the model has {graph.n_variables} variables")
        if index >= cards[position]:
            raise CommandError(f"{word} puts variable {position} in state {index}, but it has {cards[position]} states")
        found.append((names.variables[position], names.state_names(position, int(cards[position]))[index]))
    return found


def _observation(graph: FactorGraph, word: str) -> tuple[VariableName, Any]:
    """``NAME=STATE``, where the name itself may hold an equals sign."""
    pieces = word.split("=")
    if len(pieces) > 2 and "," in pieces[1]:
        raise CommandError(f"observe one variable at a time, with an option for each, got {word!r}")
    for i in range(1, len(pieces)):
        position = _variable(graph, "=".join(pieces[:i]))
        if position is not None:
            return graph.variables[position], _state(graph, position, "=".join(pieces[i:]))
    return graph.variables[_known_variable(graph, pieces[0])], None


def read_query(graph: FactorGraph, file: Path | None, words: Sequence[str] | None) -> list[int]:
    """Positions of the query variables, from a UAI query file or from names, which commas may separate."""
    if file is not None and words:
        raise CommandError("give the query either as a file or as names, not both")
    if file is not None:
        positions = io.read_uai_query(file)
        for position in positions:
            if position >= graph.n_variables:
                raise CommandError(f"{file} asks for variable {position}, but the model has {graph.n_variables}")
        return positions
    positions = []
    for word in words or ():
        whole = _variable(graph, word)
        parts = [word] if whole is not None else [p.strip() for p in word.split(",") if p.strip()]
        positions += [_known_variable(graph, part) for part in parts]
    if len(set(positions)) != len(positions):
        raise CommandError("a query variable is named twice")
    return positions


def configured_method(
    name: str, verb: str, graph: FactorGraph, evidence: dict[VariableName, Any], memory_limit: str | None
) -> Any:
    """The method by its name; with a memory limit, the method object that carries it."""
    from markovfield.inference.automatic import choose
    from markovfield.inference.core.evidence import Evidence
    from markovfield.inference.core.limits import memory_limit_bytes
    from markovfield.inference.core.registry import resolve

    if name != "auto":
        resolve(name, verb)  # an unknown name is refused before anything runs
    if memory_limit is None:
        return name
    memory_limit_bytes(memory_limit)
    chosen = choose(name, verb, graph, Evidence.parse(graph.structure, evidence))
    if "memory_limit" in {f.name for f in dataclasses.fields(chosen)}:
        return dataclasses.replace(chosen, memory_limit=memory_limit)
    return chosen
