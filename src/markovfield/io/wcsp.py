"""Cost function networks in toulbar2's formats, wcsp and cfn: costs there are minimised, scores here maximised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.files import PathLike
from markovfield.io._wcsp_globals import Parameters, add_named
from markovfield.io._wcsp_model import LARGEST_EXACT, CostModel, cost_from_score, score_from_cost
from markovfield.models import MarkovNetwork
from markovfield.text_files import Tokens, read_source, write_text

__all__ = ["cost_from_score", "read_wcsp", "score_from_cost", "write_wcsp"]

_MOST_STATES = 1 << 20
_MOST_DECIMALS = 9
_LARGEST_TABLE = 1 << 24


class _Compilable(Protocol):
    def compile(self) -> FactorGraph: ...


def read_wcsp(path: PathLike) -> MarkovNetwork:
    """Read a cost function network in toulbar2's wcsp or cfn format, plain, gzipped or xz-compressed.

    A cost becomes the log-potential ``-cost``, exactly: an assignment's score is minus its cost (see
    `score_from_cost`). A tuple whose cost reaches the file's upper bound, whatever the other functions of a cfn file
    may gain below zero, is forbidden and has the log-potential ``-inf``; that *sums* of costs must stay below the bound
    as well is not kept. A cfn file whose ``mustbe`` begins with ``>`` maximises: its numbers are log-potentials as they
    stand, and those that cannot come above the bound are forbidden.

    Parameters
    ----------
    path
        A file that begins with ``{`` is read as cfn, any other as wcsp.

    Returns
    -------
    MarkovNetwork
        Variables of a wcsp file are named by their index, those of a cfn file as they are there. Functions that a file
        shares share one table.

    Raises
    ------
    FormatError
        With ``file:line:column``, where the file breaks the format, or names a global cost function that has no small
        exact form here. Those that have: ``salldiff`` (as pairwise differences where hard or counted by pairs),
        ``clique`` of one, and as tables of at most 2^16 entries ``salldiff``, ``sgcc``, ``knapsack``, ``max``; all
        binary ones (``>=``, ``>``, ``<=``, ``<``, ``=``, ``disj``, ``sdisj``).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield as mf
    >>> from markovfield.io.wcsp import read_wcsp
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pair.wcsp"
    >>> _ = path.write_text("pair 2 2 2 10  2 2  2 0 1 0 2  0 0 10  1 1 3  1 0 0 1  1 1")
    >>> net = read_wcsp(path)
    >>> answer = mf.decode(net)
    >>> answer.assignment, answer.score
    ({0: 0, 1: 1}, 0.0)
    """
    source = read_source(path)
    if source.data.lstrip().startswith(b"{"):
        from markovfield.io.cfn import parse_cfn

        return parse_cfn(source)
    return _Reader(Tokens(source)).read()


class _Words(Parameters):
    """Parameters as words of a wcsp file."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    def number(self, what: str) -> float:
        tokens = self.tokens
        tokens.require(1, what)
        word = tokens.items[tokens.at]
        try:
            value = float(word) if b"_" not in word else np.nan
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            raise tokens.error(tokens.at, f"{what} must be a finite number, got {tokens.show(tokens.at)}")
        tokens.at += 1
        return value

    def integer(self, what: str, low: int, high: int) -> int:
        return self.tokens.integer(what, low=low, high=high)

    def word(self, what: str) -> str:
        self.tokens.require(1, what)
        self.tokens.at += 1
        return self.tokens.items[self.tokens.at - 1].decode("utf-8", "replace")


class _Reader:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    def read(self) -> MarkovNetwork:
        tokens = self.tokens
        tokens.require(5, "a name, the numbers of variables, of states and of functions, and the upper bound")
        tokens.at = 1
        n_variables = tokens.integer("the number of variables")
        tokens.integer("the largest number of states")
        n_functions = tokens.integer("the number of cost functions")
        top = tokens.integer("the upper bound")
        at = tokens.at
        sizes = tokens.integers(n_variables, "the numbers of states")
        for i, size in enumerate(sizes):
            # A negative number is an interval that toulbar2 keeps as two ends: the same states.
            if not 1 <= abs(size) <= _MOST_STATES:
                raise tokens.error(at + i, f"variable {i} must have from 1 to {_MOST_STATES} states, got {size}")
        if sum(map(abs, sizes)) > max(1 << 24, 16 * len(tokens)):
            raise tokens.error(at, f"the variables have {sum(map(abs, sizes))} states, too many for this file")
        self.model = CostModel({i: abs(size) for i, size in enumerate(sizes)}, float(top))
        self.exact_top = top
        # Tables wait until the end, so that those of shared functions are added once for all their scopes.
        self.shared: list[tuple[list[list[int]], FloatArray]] = []
        tokens.require(n_functions, "the cost functions")
        for f in range(n_functions):
            self._function(f)
        tokens.end("the last cost function")
        for scopes, table in self.shared:
            self.model.table(scopes, table, lambda message: tokens.error(len(tokens), message))
        return self.model.finish()

    def _function(self, f: int) -> None:
        tokens = self.tokens
        start = tokens.at
        n = len(self.model.cards)
        arity = tokens.integer(f"the number of variables of function {f}", low=-n, high=n)
        scope = tokens.integers(abs(arity), f"the variables of function {f}")
        for i, v in enumerate(scope):
            if not 0 <= v < n or v in scope[:i]:
                what = "twice" if 0 <= v < n else f"but there are {n}"
                raise tokens.error(start + 1 + i, f"function {f} names variable {v}, {what}")

        def blame(message: str) -> FormatError:
            return tokens.error(start, message)

        tokens.require(2, f"the default cost and tuples of function {f}")
        default = tokens.integers(1, f"the default cost of function {f}")[0]
        if default == -1 and _is_name(tokens.items[tokens.at]):
            given = _Words(tokens)
            if arity < 0:
                raise blame("a global cost function cannot be shared")
            add_named(self.model, scope, given.word("the name of a cost function"), given, blame)
            return
        count = tokens.integers(1, f"the number of tuples of function {f}")[0]
        if count < 0:
            if -count > len(self.shared):
                raise tokens.error(tokens.at - 1, f"function {f} shares function {-count}, of {len(self.shared)}")
            scopes, table = self.shared[-count - 1]
            if self.model.shape(scope) != table.shape:
                raise blame(f"function {f} shares a table of shape {table.shape}, its own is {self.model.shape(scope)}")
            scopes.append(scope)
            return
        self.model.check_room(scope, blame)
        table = self._table(f, scope, default, count)
        if arity < 0:
            self.shared.append(([scope], table))
        else:
            self.model.table([scope], table, blame)

    def _table(self, f: int, scope: list[int], default: int, count: int) -> FloatArray:
        """The costs of a function: the default, and those of its tuples."""
        tokens = self.tokens
        wide = len(scope) + 1
        self._check_cost(default, tokens.at - 2)
        table = np.full(self.model.shape(scope), float(min(default, self.exact_top)))
        start = tokens.at
        numbers = tokens.integers(count * wide, f"the tuples of function {f}")
        costs = numbers[wide - 1 :: wide]
        if max(map(abs, costs), default=0) >= LARGEST_EXACT:
            for i, cost in enumerate(costs):
                self._check_cost(cost, start + i * wide + wide - 1)
            costs = [min(cost, self.exact_top) for cost in costs]
        index = []
        for axis, card in enumerate(self.model.shape(scope)):
            column = numbers[axis::wide]
            if column and not (min(column) >= 0 and max(column) < card):
                i = next(i for i, value in enumerate(column) if not 0 <= value < card)
                at = start + i * wide + axis
                raise tokens.error(at, f"variable {scope[axis]} has states 0 to {card - 1}, got {tokens.show(at)}")
            index.append(column)
        if count:
            table[tuple(index)] = np.array(costs, float) if index else float(costs[-1])
        return table

    def _check_cost(self, cost: int, at: int) -> None:
        if LARGEST_EXACT <= abs(cost) < self.exact_top or cost <= -LARGEST_EXACT:
            raise self.tokens.error(at, f"the cost {self.tokens.show(at)} is too large to be held exactly")


def _is_name(word: bytes) -> bool:
    try:
        int(word)
    except ValueError:
        return True
    return False


def write_wcsp(model: _Compilable, path: PathLike, *, decimals: int | None = None) -> None:
    """Write a model as a cost function network: cfn where the name says so, else wcsp; ``.gz`` or ``.xz`` compress.

    Costs are minus the log-potentials. In a wcsp file they are integers, ``10**decimals`` times as large, and
    variables are their positions; a cfn file keeps names and writes ``decimals`` digits. The upper bound is beyond the
    cost of every possible assignment, and stands for ``-inf``. A wcsp file has no costs below zero: what a table has
    there is taken out into a negative constant, which `read_wcsp` adds again and toulbar2 leaves out. Tables that
    factors share are written once for each of them, structured factors as tables.

    Parameters
    ----------
    model
        Anything with ``compile()``.
    path
        The file; it is replaced only once the new one is complete.
    decimals
        Digits after the point to round costs to, 0 to 9. None takes as few as hold every cost exactly, and refuses a
        model that nine do not hold; a wcsp file then needs integers.

    Raises
    ------
    ModelError
        When costs would have to be rounded and ``decimals`` is not given, or a table is too large.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield as mf
    >>> from markovfield.io.wcsp import read_wcsp, write_wcsp
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pair.cfn"
    >>> net = mf.MarkovNetwork({"A": 2, "B": ["low", "high"]})
    >>> _ = net.add_factor(["A", "B"], log_table=[[-1.5, -0.25], [0, float("-inf")]])
    >>> write_wcsp(net, path)
    >>> read_wcsp(path).compile().table(0).tolist()
    [[-1.5, -0.25], [0.0, -inf]]
    """
    from markovfield.io.cfn import cfn_pieces

    graph = model.compile()
    graph.check_finite()
    name = str(path).lower().removesuffix(".gz").removesuffix(".xz")
    named = name.endswith(".cfn")
    digits = _decimals(graph, decimals, named)
    tables = list(_tables(graph, digits))
    top = 1 + sum(int(t[t != _FORBIDDEN].max(initial=0)) for t in tables)
    least = sum(int(t[t != _FORBIDDEN].min(initial=0)) for t in tables)
    if max(top, -least) >= LARGEST_EXACT:
        raise ModelError(f"costs in steps of 1e-{digits} add up to {max(top, -least)}, too large for the format")
    write_text(path, cfn_pieces(graph, tables, top, digits) if named else _wcsp_pieces(graph, tables, top))


_FORBIDDEN = np.iinfo(np.int64).max


def _decimals(graph: FactorGraph, decimals: int | None, named: bool) -> int:
    if decimals is not None:
        if not 0 <= decimals <= _MOST_DECIMALS:
            raise ModelError(f"decimals must be from 0 to {_MOST_DECIMALS}, got {decimals}")
        return decimals
    values = np.unique(graph.log_tables[np.isfinite(graph.log_tables)])
    for digits in range(_MOST_DECIMALS + 1 if named else 1):
        if np.array_equal(np.rint(values * 10.0**digits) / 10.0**digits, values):
            return digits
    bad = values[np.rint(values) != values][0]
    kind = "with at most 9 digits" if named else "in a wcsp file"
    raise ModelError(f"the log-potential {bad} is no cost {kind}; give decimals= to round")


def _tables(graph: FactorGraph, digits: int) -> Iterator[npt.NDArray[np.int64]]:
    """Integer costs of each factor, shaped like its table."""
    s = graph.structure
    for f in range(s.n_factors):
        bits = float(np.log2(s.cardinalities[s.scope(f)]).sum())
        if bits > np.log2(_LARGEST_TABLE) or len(s.scope(f)) > 64:
            raise ModelError(f"factor {f} joins {len(s.scope(f))} variables; as a table it has 2^{bits:.1f} entries")
        logs = graph.table(f)
        hard = np.isneginf(logs)
        scaled = np.rint(np.where(hard, 0.0, -logs) * 10.0**digits)
        if np.abs(scaled).max(initial=0.0) >= LARGEST_EXACT:
            raise ModelError(f"factor {f} has a cost of {np.abs(scaled).max():.3g} steps of 1e-{digits}, too large")
        yield np.where(hard, _FORBIDDEN, scaled.astype(np.int64))


def _wcsp_pieces(graph: FactorGraph, tables: list[npt.NDArray[np.int64]], top: int) -> Iterator[str]:
    s = graph.structure
    cards = s.cardinalities.tolist()
    # Costs are at least zero in the format: what a table has below is added to the bound by a constant of its own.
    shift = [min(0, int(t[t != _FORBIDDEN].min(initial=0))) for t in tables]
    constant = sum(shift)
    top -= constant
    n_functions = s.n_factors + (constant < 0)
    yield f"markovfield {s.n_variables} {max(cards, default=0)} {n_functions} {top}\n{' '.join(map(str, cards))}\n"
    if constant < 0:
        yield f"0 {constant} 0\n"
    for f, table in enumerate(tables):
        scope = s.scope(f).tolist()
        costs = np.where(table == _FORBIDDEN, top, table - shift[f])
        if not scope:
            yield f"0 {int(costs)} 0\n"
            continue
        values, counts = np.unique(costs, return_counts=True)
        default = int(values[counts.argmax()])
        index = np.argwhere(costs != default)
        yield f"{len(scope)} {' '.join(map(str, scope))} {default} {len(index)}\n"
        for row, cost in zip(index.tolist(), costs[costs != default].tolist(), strict=True):
            yield f"{' '.join(map(str, row))} {cost}\n"
