"""The cfn format of toulbar2: JSON with most of its signs optional."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import FormatError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.io._wcsp_globals import Parameters, add_named
from markovfield.io._wcsp_model import CostModel
from markovfield.io._written import as_text
from markovfield.models import MarkovNetwork
from markovfield.text_files import Source

__all__ = ["cfn_pieces", "parse_cfn"]

_MOST_STATES = 1 << 20
_DEEPEST = 16
# Commas and colons separate like blanks; a colon may even stand inside the quotes of a key.
_TOKEN = re.compile(r"""[\s,:]+|#[^\n]*|([{}\[\]])|"([^"\n]*)"|'([^'\n]*)'|([^\s,:{}\[\]"'#]+)""")


@dataclass(frozen=True)
class _Word:
    """A word or number and where it stands."""

    text: str
    at: int


@dataclass(frozen=True)
class _Block:
    """What stands between braces or brackets: words and blocks, in order."""

    items: tuple[Any, ...]
    at: int
    braces: bool


class _Cfn:
    """A parsed file: finds things by key and complains with a position."""

    def __init__(self, source: Source) -> None:
        self.text = source.text()
        # A byte order mark is not part of the text, but of the positions that errors count.
        self.source = Source(source.name, self.text.encode())
        self.root = self._parse()

    def error(self, at: int, message: str) -> FormatError:
        return self.source.error(len(self.text[:at].encode()), message)

    def _parse(self) -> _Block:
        text, at = self.text, 0
        stack: list[tuple[list[Any], int, bool]] = [([], 0, True)]
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.error(at, f"unexpected {text[at]!r}")
            sign, double, single, bare = match.groups()
            if sign in ("{", "["):
                if len(stack) > _DEEPEST:
                    raise self.error(at, "brackets are nested too deeply")
                stack.append(([], at, sign == "{"))
            elif sign is not None:
                items, start, braces = stack[-1]
                if len(stack) == 1 or braces != (sign == "}"):
                    raise self.error(at, f"{sign!r} closes nothing that is open")
                stack.pop()
                stack[-1][0].append(_Block(tuple(items), start, braces))
            elif double is not None or single is not None or bare is not None:
                word = double if double is not None else single if single is not None else bare
                stack[-1][0].append(_Word(word.rstrip(": ") if word.endswith(":") else word, at))
            at = match.end()
        # toulbar2 reads files whose last brace is missing; anything more is an error.
        if len(stack) > 2:
            raise self.error(len(text.rstrip()), "the file ends inside a bracket")
        if len(stack) == 2:
            return _Block(tuple(stack[1][0]), stack[1][1], stack[1][2])
        items = stack[0][0]
        if len(items) != 1 or not isinstance(items[0], _Block) or not items[0].braces:
            at = items[1].at if len(items) > 1 else 0
            raise self.error(at, "expected one pair of braces around everything")
        return items[0]

    def pairs(self, block: _Block, known: tuple[str, ...]) -> dict[str, Any]:
        """The items of a block as keys and what follows them."""
        found: dict[str, Any] = {}
        for i in range(0, len(block.items), 2):
            key = block.items[i]
            if not isinstance(key, _Word) or key.text not in known:
                shown = repr(key.text[:30]) if isinstance(key, _Word) else "a bracket"
                raise self.error(key.at, f"expected one of {', '.join(known)}, got {shown}")
            if i + 1 >= len(block.items):
                raise self.error(key.at, f"nothing follows {key.text!r}")
            if key.text in found:
                raise self.error(key.at, f"{key.text!r} is given twice")
            found[key.text] = block.items[i + 1]
        return found

    def number(self, item: Any, what: str) -> float:
        if not isinstance(item, _Word):
            raise self.error(item.at, f"{what} must be a number, got a bracket")
        try:
            value = float(item.text) if "_" not in item.text else np.nan
        except ValueError:
            value = np.nan
        if np.isnan(value):
            raise self.error(item.at, f"{what} must be a number, got {item.text[:30]!r}")
        return value

    def integer(self, item: Any, what: str, low: int, high: int) -> int:
        value = self.number(item, what)
        if value != np.floor(value) or not low <= value <= high:
            raise self.error(item.at, f"{what} must be an integer from {low} to {high}, got {item.text[:30]!r}")
        return int(value)

    def block(self, item: Any, what: str) -> _Block:
        if not isinstance(item, _Block):
            raise self.error(item.at, f"{what} must stand in brackets, got {item.text[:30]!r}")
        return item


class _Given(Parameters):
    """Parameters of a named function, in order whatever their keys and brackets are."""

    def __init__(self, file: _Cfn, block: _Block, name: str) -> None:
        self.file, self.name, self.end = file, name, block.at
        self.items = list(self._flat(block, name))
        self.next = 0

    def _flat(self, block: _Block, name: str) -> Iterator[_Word]:
        keyed = block.braces
        for i, item in enumerate(block.items):
            if keyed and i % 2 == 0:
                if not isinstance(item, _Word):
                    raise self.file.error(item.at, "expected the name of a parameter")
            elif isinstance(item, _Word):
                yield item
            else:
                # Lists that are counted in the wcsp format carry their length there.
                counted = name == "max" or (name == "sgcc" and item.items and isinstance(item.items[0], _Block))
                counted = counted or (name == "clique" and not any(isinstance(x, _Block) for x in item.items))
                if counted and not (name in ("max", "sgcc") and not any(isinstance(x, _Block) for x in item.items)):
                    yield _Word(str(len(item.items)), item.at)
                yield from self._flat(item, name)

    def _take(self, what: str) -> _Word:
        if self.next >= len(self.items):
            raise self.file.error(self.end, f"{self.name!r} lacks {what}")
        self.next += 1
        return self.items[self.next - 1]

    def number(self, what: str) -> float:
        word = self._take(what)
        value = self.file.number(word, what)
        if not np.isfinite(value):
            raise self.file.error(word.at, f"{what} must be finite")
        return value

    def integer(self, what: str, low: int, high: int) -> int:
        return self.file.integer(self._take(what), what, low, high)

    def word(self, what: str) -> str:
        return self._take(what).text

    def finish(self) -> None:
        if self.next < len(self.items):
            raise self.file.error(self.items[self.next].at, f"{self.name!r} takes no more parameters")


def parse_cfn(source: Source) -> MarkovNetwork:
    """A Markov network from a cfn file; see `read_wcsp`."""
    file = _Cfn(source)
    parts = file.pairs(file.root, ("problem", "variables", "functions"))
    for part in ("problem", "variables", "functions"):
        if part not in parts:
            raise file.error(file.root.at, f"the file has no {part}")
    problem = file.pairs(file.block(parts["problem"], "problem"), ("name", "mustbe"))
    top, maximise = _bound(file, problem.get("mustbe"))
    variables = _variables(file, file.block(parts["variables"], "variables"))
    try:
        model = CostModel(
            {name: states for name, (states, _) in variables.items()}, top, maximise=maximise, signed=True
        )
    except ModelError as error:
        raise file.error(parts["variables"].at, str(error)) from None
    _Functions(file, model, variables).add(file.block(parts["functions"], "functions"))
    return model.finish()


def _bound(file: _Cfn, item: Any) -> tuple[float, bool]:
    if item is None:
        return np.inf, False
    if not isinstance(item, _Word) or item.text[:1] not in ("<", ">"):
        raise file.error(item.at, "mustbe must be a bound like <100 or >0")
    number = _Word(item.text[1:].strip(), item.at)
    return file.number(number, "the bound of mustbe"), item.text[0] == ">"


def _variables(file: _Cfn, block: _Block) -> dict[str, tuple[Any, dict[str, int]]]:
    """Name to (number or names of states, their indices)."""
    found: dict[str, tuple[Any, dict[str, int]]] = {}
    total = 0
    for i in range(0, len(block.items), 2):
        name = block.items[i]
        if not isinstance(name, _Word) or i + 1 >= len(block.items):
            raise file.error(name.at, "expected the name of a variable and its states")
        if name.text in found:
            raise file.error(name.at, f"variable {name.text!r} is given twice")
        item = block.items[i + 1]
        if isinstance(item, _Word):
            count = abs(file.integer(item, f"the states of {name.text!r}", -_MOST_STATES, _MOST_STATES))
            if not count:
                raise file.error(item.at, f"variable {name.text!r} needs a state")
            total += count
            found[name.text] = (count, {})
        else:
            states = [word.text for word in item.items if isinstance(word, _Word)]
            if len(set(states)) != len(item.items) or not states:
                raise file.error(item.at, f"the states of {name.text!r} must be one name each")
            found[name.text] = (states, {state: k for k, state in enumerate(states)})
    if total > max(1 << 24, len(file.text)):
        raise file.error(block.at, f"the variables have {total} states, too many for this file")
    return found


class _Functions:
    def __init__(self, file: _Cfn, model: CostModel, variables: dict[str, tuple[Any, dict[str, int]]]) -> None:
        self.file, self.model = file, model
        self.position = {name: i for i, name in enumerate(variables)}
        self.states = [states for _, states in variables.values()]
        self.named: dict[str, npt.NDArray[np.float64]] = {}

    def add(self, block: _Block) -> None:
        name: _Word | None = None
        for item in block.items:
            if isinstance(item, _Word):
                if name is not None:
                    raise self.file.error(item.at, f"expected the cost function {name.text[:30]!r} in brackets")
                name = item
                continue
            self._add_one(name.text if name is not None else "", item)
            name = None
        if name is not None:
            raise self.file.error(name.at, f"nothing follows the name {name.text[:30]!r}")

    def _add_one(self, name: str, block: _Block) -> None:
        file, model = self.file, self.model

        def blame(message: str) -> FormatError:
            return file.error(block.at, message)

        given = file.pairs(block, ("scope", "costs", "defaultcost", "type", "params"))
        if "scope" not in given:
            raise blame("a cost function needs a scope")
        scope = self._scope(file.block(given["scope"], "the scope"))
        if "type" in given:
            kind = given["type"]
            if not isinstance(kind, _Word):
                raise file.error(kind.at, "the type of a cost function must be a name")
            params = _Given(file, file.block(given.get("params", _Block((), block.at, False)), "params"), kind.text)
            add_named(model, scope, kind.text, params, blame)
            params.finish()
            return
        if "costs" not in given:
            raise blame("a cost function needs costs or a type")
        costs = given["costs"]
        if isinstance(costs, _Word):
            if costs.text not in self.named or self.named[costs.text].shape != model.shape(scope):
                raise file.error(costs.at, f"there is no cost function {costs.text[:30]!r} of this shape to share")
            table = self.named[costs.text]
            model.check_room(scope, blame)
        else:
            size = model.check_room(scope, blame)
            table = self._table(scope, size, costs, given.get("defaultcost"))
        if name:
            self.named[name] = table
        model.table([scope], table, blame)

    def _scope(self, block: _Block) -> list[int]:
        scope: list[int] = []
        for item in block.items:
            if not isinstance(item, _Word):
                raise self.file.error(item.at, "a scope is a list of variables")
            if item.text in self.position:
                v = self.position[item.text]
            elif item.text.isdecimal() and len(item.text) < 10 and int(item.text) < len(self.position):
                v = int(item.text)
            else:
                raise self.file.error(item.at, f"there is no variable {item.text[:30]!r}")
            if v in scope:
                raise self.file.error(item.at, f"the scope names {item.text[:30]!r} twice")
            scope.append(v)
        return scope

    def _table(self, scope: list[int], size: int, costs: _Block, default: Any) -> npt.NDArray[np.float64]:
        file, shape = self.file, self.model.shape(scope)
        items = [inner for item in costs.items for inner in (item.items if isinstance(item, _Block) else (item,))]
        if default is None:
            if len(items) != size:
                raise file.error(costs.at, f"the costs need {size} numbers by the scope, got {len(items)}")
            return np.array([file.number(item, "a cost") for item in items]).reshape(shape)
        table = np.full(shape, file.number(default, "the default cost"))
        wide = len(scope) + 1
        if len(items) % wide:
            raise file.error(costs.at, f"the costs must be tuples of {len(scope)} states and a cost")
        for i in range(0, len(items), wide):
            at = tuple(self._state(v, items[i + axis]) for axis, v in enumerate(scope))
            table[at] = file.number(items[i + wide - 1], "a cost")
        return table

    def _state(self, v: int, item: Any) -> int:
        if isinstance(item, _Word) and item.text in self.states[v]:
            return self.states[v][item.text]
        return self.file.integer(item, f"a state of {self.model.names[v]!r}", 0, self.model.cards[v] - 1)


def cfn_pieces(graph: FactorGraph, tables: list[npt.NDArray[np.int64]], top: int, digits: int) -> Iterator[str]:
    """A graph as a cfn file; ``tables`` are integer costs in steps of 10^-digits, their largest forbidden."""
    s = graph.structure
    names = as_text(s.names.variables, "variables")
    for name in names:
        _check_text(name)
    forbidden = np.iinfo(np.int64).max
    # Beyond the bound even where all other functions are at their lowest.
    beyond = top - sum(min(0, int(table.min(initial=0))) for table in tables)

    def number(cost: int) -> str:
        if not digits:
            return str(cost)
        sign, whole = ("-" if cost < 0 else ""), abs(cost)
        return f"{sign}{whole // 10**digits}.{whole % 10**digits:0{digits}d}"

    yield f'{{\n"problem": {{"name": "markovfield", "mustbe": "<{number(top)}"}},\n"variables": {{'
    for v, name in enumerate(names):
        states = s.names.states.get(v)
        shown: Any = int(s.cardinalities[v])
        if states is not None:
            texts = as_text(states, f"states of {name!r}")
            for text in texts:
                _check_text(text)
            shown = "[" + ", ".join(f'"{text}"' for text in texts) + "]"
        yield f'{"," if v else ""}\n"{name}": {shown}'
    yield '},\n"functions": {'
    for f, table in enumerate(tables):
        scope = ", ".join(f'"{names[v]}"' for v in s.scope(f).tolist())
        costs = ", ".join(number(beyond if cost == forbidden else cost) for cost in table.ravel().tolist())
        yield f'{"," if f else ""}\n"f{f}": {{"scope": [{scope}], "costs": [{costs}]}}'
    yield "}\n}\n"


def _check_text(name: str) -> None:
    if not name or '"' in name or "\n" in name or name.endswith(":"):
        raise ModelError(f"the name {name!r} cannot be written in a cfn file: quotes and line ends have no escape")
