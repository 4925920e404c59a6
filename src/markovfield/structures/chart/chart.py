"""Trees of a grammar over one sentence."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.structures.chart.family import Charts
from markovfield.structures.chart.rules import RuleTable
from markovfield.structures.core.form import StructureForm, place, score_array

__all__ = ["Chart"]

Symbol = Hashable


class Chart(StructureForm):
    """Trees that a grammar of binary and unary rules makes of a sentence.

    A structure is the tree as nested tuples, ``("S", ("NP", 0), ("VP", ("V", 1), ("NP", 2)))``: a symbol and what it is
    made of, which is two trees by a binary rule, one by a unary rule, or the number of a word. Its score is the sum of
    the scores of rules, each as often as it is used, and of spans: of each word with its symbol, and of each symbol
    that a binary rule makes with the words below it.

    Chains of unary rules may have any length, also around a cycle; sums over them are exact, and a `ModelError` says
    where they have no limit.

    Parameters
    ----------
    words
        For each word a dict from the symbols it can be to their scores.
    rules
        A dict from rules to scores: ``("S", "NP", "VP")`` is S made of NP and VP, ``("NP", "N")`` is NP made of N.
    start
        The symbol of a whole sentence; by default that of the first rule.
    spans
        Further scores of spans, ``{(first, last, symbol): score}``, both words included: of at least two words, and a
        symbol that a binary rule makes. 0 where nothing is said.

    Examples
    --------
    >>> import markovfield as mf
    >>> rules = {("S", "NP", "VP"): 0.0, ("VP", "V", "NP"): -0.4, ("VP", "VP", "PP"): -1.2, ("NP", "NP", "PP"): -1.0,
    ...          ("PP", "P", "NP"): 0.0}
    >>> words = [{"NP": 0.0}, {"V": 0.0}, {"NP": 0.0}, {"P": 0.0}, {"NP": 0.0}]
    >>> chart = mf.structures.Chart(words, rules)
    >>> chart.n_structures()
    2.0
    >>> mf.decode(chart).structure
    ('S', ('NP', 0), ('VP', ('V', 1), ('NP', ('NP', 2), ('PP', ('P', 3), ('NP', 4)))))
    >>> noun = chart.symbols.index("NP")
    >>> mf.marginals(chart)["spans"][2, 4, noun].round(3)
    np.float64(0.55)
    >>> mf.decode(chart, {"spans": {(1, 2, "VP"): True}}).structure[2][0:2]
    ('VP', ('VP', ('V', 1), ('NP', 2)))
    """

    parts: ClassVar[tuple[str, ...]] = ("spans", "rules")
    family: Charts

    def __init__(
        self,
        words: Sequence[Mapping[Symbol, float]],
        rules: Mapping[tuple[Symbol, ...], float],
        *,
        start: Symbol | None = None,
        spans: Mapping[tuple[int, int, Symbol], float] | None = None,
    ) -> None:
        given = _checked(words, rules)
        first = next(iter(given))[0] if start is None else start
        own = dict.fromkeys(symbol for word in words for symbol in word)
        self.symbols: tuple[Symbol, ...] = tuple(
            dict.fromkeys([first, *(symbol for rule in given for symbol in rule), *own])
        )
        number = {symbol: i for i, symbol in enumerate(self.symbols)}
        coded = [[number[symbol] for symbol in rule] for rule in given]
        binary = [i for i, rule in enumerate(coded) if len(rule) == 3]
        unary = [i for i, rule in enumerate(coded) if len(rule) == 2]
        table = RuleTable(
            len(self.symbols),
            np.array([coded[i] for i in binary], np.int64).reshape(-1, 3),
            np.array([coded[i] for i in unary], np.int64).reshape(-1, 2),
            np.array([number[symbol] for symbol in own], np.int64),
            number[first],
            tuple(map(str, self.symbols)),
        )
        tokens = np.full((len(words), len(own)), -np.inf)
        columns = {symbol: t for t, symbol in enumerate(own)}
        for i, word in enumerate(words):
            for symbol, score in word.items():
                tokens[i, columns[symbol]] = score
        self._assemble(table, np.array([*given.values()], np.float64)[binary + unary], tokens)
        order = np.empty(len(coded), np.int64)
        order[binary + unary] = np.arange(len(coded))
        self._rule_cells = order
        for span, score in ({} if spans is None else spans).items():
            cell = self.cell("spans", span)
            if cell < self._first_span:
                raise ModelError(f"spans has a score of {span}, one word; give it with that word")
            self.pool[cell] = float(score_array([score], f"the score of span {span}", 1)[0])

    @classmethod
    def dense(cls, rules: npt.ArrayLike, words: npt.ArrayLike, starts: npt.ArrayLike) -> Chart:
        """Trees of a grammar that has every rule: n symbols of phrases, m of words.

        Parameters
        ----------
        rules
            ``float[n, n + m, n + m]``: entry [a, b, c] is the score of a made of b and c; words' symbols come last.
        words
            ``float[length, m]``: scores of each word with each of its symbols.
        starts
            ``float[n]``: scores of symbols as that of the sentence. The start symbol is ``n + m``, and these are unary
            rules.

        Examples
        --------
        >>> import markovfield as mf
        >>> chart = mf.structures.Chart.dense(np.zeros((1, 2, 2)), np.zeros((4, 1)), np.zeros(1))
        >>> chart.n_structures()
        5.0
        """
        table, tokens = score_array(rules, "rules", 3), score_array(words, "scores of words", 2)
        tops = score_array(starts, "starts", 1)
        n, m = len(table), tokens.shape[1]
        if table.shape != (n, n + m, n + m) or tops.shape != (n,) or not tokens.size or not n:
            raise ModelError(
                "rules must be [n, n + m, n + m], words [length, m] and starts [n], at least one of each, got shapes "
                f"{table.shape}, {tokens.shape} and {tops.shape}"
            )
        self = cls.__new__(cls)
        self.symbols = tuple(range(n + m + 1))
        binary = np.argwhere(np.ones(table.shape, bool)).astype(np.int64)
        unary = np.stack([np.full(n, n + m), np.arange(n)], axis=1).astype(np.int64)
        names = tuple(map(str, self.symbols))
        coded = RuleTable(n + m + 1, binary, unary, np.arange(n, n + m, dtype=np.int64), n + m, names)
        self._assemble(coded, np.concatenate([table.ravel(), tops]), tokens)
        self._rule_cells = np.arange(coded.n_rules)
        return self

    @classmethod
    def from_table(
        cls,
        symbols: Sequence[Symbol],
        table: RuleTable,
        rules: FloatArray,
        tokens: FloatArray,
        spans: FloatArray | None = None,
    ) -> Chart:
        """Trees of rules that are in a table already, and stay there: nothing is copied or sorted again.

        Parameters
        ----------
        symbols
            Names of the table's symbols.
        table
            The rules.
        rules, tokens, spans
            ``float64[n_rules]``, ``float64[n, len(table.tokens)]`` and, when given, ``float64[n (n - 1) / 2,
            len(table.branching)]``: scores.
        """
        self = cls.__new__(cls)
        self.symbols = tuple(symbols)
        self._assemble(table, rules, tokens)
        if spans is not None:
            self.pool[self._first_span :] = spans.ravel()
        self._rule_cells = np.arange(table.n_rules)
        return self

    def _assemble(self, table: RuleTable, rules: FloatArray, tokens: FloatArray) -> None:
        n = len(tokens)
        self.family = Charts.of(np.array([n]), table, spans=True)
        self._first_span = table.n_rules + tokens.size
        self.pool = np.concatenate([rules, tokens.ravel(), np.zeros(self.family.n_cells - self._first_span)])

    def __repr__(self) -> str:
        rules = self.family.rules.n_rules
        return f"Chart of {int(self.family.lengths[0])} words, {len(self.symbols)} symbols, {rules} rules"

    def shaped(self, values: FloatArray) -> dict[str, FloatArray]:
        """Values of spans ``[first word, last word, symbol]`` and of rules, in the order they were given."""
        n, table = int(self.family.lengths[0]), self.family.rules
        spans = np.zeros((n, n, table.n_symbols))
        words = np.arange(n)
        spans[words[:, None], words[:, None], table.tokens] = values[table.n_rules : self._first_span].reshape(
            n, len(table.tokens)
        )
        i, j = np.triu_indices(n, 1)
        branching = values[self._first_span :].reshape(len(i), len(table.branching))
        spans[i[:, None], j[:, None], table.branching] = branching
        return {"spans": spans, "rules": values[self._rule_cells]}

    def cell(self, part: str, index: tuple[Any, ...]) -> int:
        """The cell of ``(first, last, symbol)``, or of a rule, by its symbols or by its number."""
        if part == "rules":
            return self._rule_cell(index)
        n, table = int(self.family.lengths[0]), self.family.rules
        ends = place(index[:2])
        if len(index) == 3 and len(ends) == 2 and 0 <= ends[0] <= ends[1] < n:
            i, j = ends
            symbol = self._number(index[2])
            columns = table.tokens if i == j else table.branching
            where = np.flatnonzero(columns == symbol)
            if len(where):
                if i == j:
                    return table.n_rules + i * len(columns) + int(where[0])
                span = i * (n - 1) - i * (i - 1) // 2 + j - i - 1
                return self._first_span + span * len(columns) + int(where[0])
            made = "a word can be" if i == j else "a binary rule makes"
            raise ModelError(f"span {index} needs a symbol that {made}, and {index[2]!r} is none")
        raise ModelError(f"a span is (first, last, symbol) with 0 <= first <= last < {n}, got {index}")

    def _number(self, symbol: Any) -> int:
        if symbol in self.symbols:
            return self.symbols.index(symbol)
        if isinstance(symbol, int | np.integer) and 0 <= symbol < len(self.symbols):
            return int(symbol)
        raise ModelError(f"there is no symbol {symbol!r} among {len(self.symbols)}")

    def _rule_cell(self, index: tuple[Any, ...]) -> int:
        table = self.family.rules
        if len(index) == 1 and isinstance(index[0], int | np.integer) and 0 <= index[0] < table.n_rules:
            return int(self._rule_cells[int(index[0])])
        if len(index) in (2, 3):
            coded = [self._number(symbol) for symbol in index]
            rows = table.binary if len(index) == 3 else table.unary
            found = np.flatnonzero((rows == coded).all(axis=1))
            if len(found):
                return int(found[0]) + (0 if len(index) == 3 else len(table.binary))
        raise ModelError(f"there is no rule {index}; a rule is (parent, left child, right child) or (parent, child)")

    def structure(self, cells: IntArray) -> Any:
        """The tree of some cells, which come parents before children and left before right."""
        table, columns = self.family.rules, len(self.family.rules.tokens)
        done: list[Any] = []
        for cell in reversed(np.asarray(cells).tolist()):
            if cell < len(table.binary):
                done.append((self.symbols[table.binary[cell, 0]], done.pop(), done.pop()))
            elif cell < table.n_rules:
                done.append((self.symbols[table.unary[cell - len(table.binary), 0]], done.pop()))
            elif cell < self._first_span:
                word, column = divmod(cell - table.n_rules, columns)
                done.append((self.symbols[table.tokens[column]], word))
        (tree,) = done
        return tree

    def cells(self, structure: Any) -> IntArray:
        found: list[int] = []
        word = 0
        waiting: list[Any] = [structure]
        open_spans: list[tuple[int, int, Any]] = []
        while waiting:
            node = waiting.pop()
            if node is None and open_spans:
                at, first, symbol = open_spans.pop()
                found[at] = self.cell("spans", (first, word - 1, symbol))
                continue
            if not isinstance(node, tuple) or len(node) not in (2, 3):
                raise ModelError(f"a tree is (symbol, tree), (symbol, tree, tree) or (symbol, word), got {node!r}")
            if len(node) == 2 and not isinstance(node[1], tuple):
                if node[1] != word:
                    raise ModelError(f"a tree has its words in order, and word {node[1]!r} stands where {word} should")
                found.append(self.cell("spans", (word, word, node[0])))
                word += 1
                continue
            below = node[1:]
            if not all(isinstance(child, tuple) and child for child in below):
                raise ModelError(f"a tree is (symbol, tree), (symbol, tree, tree) or (symbol, word), got {node!r}")
            found.append(self._rule_cell((node[0], *(child[0] for child in below))))
            if len(below) == 2:
                open_spans.append((len(found), word, node[0]))
                found.append(-1)
                waiting.append(None)
            waiting.extend(reversed(below))
        if word != int(self.family.lengths[0]) or structure[0] != self.symbols[self.family.rules.start]:
            raise ModelError(
                f"a tree has {self.symbols[self.family.rules.start]!r} at its top and {int(self.family.lengths[0])} "
                f"words, got {structure[0]!r} and {word}"
            )
        return np.array(found, np.int64)


def _checked(words: Any, rules: Any) -> dict[tuple[Symbol, ...], float]:
    """Rules with their scores, and words that are dicts of scores."""
    if not isinstance(rules, Mapping) or not rules:
        raise ModelError(f"rules must be a dict from rules to scores, at least one, got {rules!r}")
    for rule in rules:
        if not isinstance(rule, tuple) or len(rule) not in (2, 3):
            raise ModelError(f"a rule is (parent, left child, right child) or (parent, child), got {rule!r}")
    if isinstance(words, str) or not isinstance(words, Sequence) or not len(words):
        raise ModelError(f"words must be a sequence of dicts from symbols to scores, at least one, got {words!r}")
    for i, word in enumerate(words):
        if not isinstance(word, Mapping):
            raise ModelError(f"word {i} must be a dict from symbols to scores, got {word!r}")
        score_array(list(word.values()), f"scores of word {i}", 1)
    scores = score_array(list(rules.values()), "scores of rules", 1)
    return dict(zip(rules, scores.tolist(), strict=True))
