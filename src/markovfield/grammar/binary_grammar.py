"""A grammar whose rules have at most two symbols on their right: symbols by number, and trees as cells of a chart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.grammar.binarisation import ABOVE, NEW
from markovfield.grammar.trees import Tree
from markovfield.structures.chart.chart import Chart
from markovfield.structures.chart.family import Charts
from markovfield.structures.chart.rules import RuleTable

__all__ = ["BinaryGrammar", "plain_label"]

# A rule: its parent, then one or two children.
Rule = tuple[str, ...]


def plain_label(symbol: str) -> str:
    """The label that a symbol stands for in trees: without names of ancestors; empty for nodes that trees lack.

    Examples
    --------
    >>> plain_label("NP^S"), plain_label("@NP[DT]")
    ('NP', '')
    """
    return "" if symbol.startswith(NEW) else symbol.partition(ABOVE)[0]


@dataclass(frozen=True, eq=False)
class BinaryGrammar:
    """Symbols and rules without numbers: what probabilities, or weights of features, are given to.

    Attributes
    ----------
    symbols
        Names of symbols. Those that begin with ``@`` are in no tree that a user sees: what is below them stands in
        their place. What follows ``^`` in a name is not shown either.
    table
        The rules by numbers of symbols; its ``tokens`` are the symbols that a word can be, column by column.

    Examples
    --------
    >>> grammar = BinaryGrammar.of([("S", "NP", "VP"), ("VP", "V")], ["NP", "V"], start="S")
    >>> grammar.table.n_symbols, grammar.table.n_rules
    (4, 2)
    >>> family = grammar.family([2])
    >>> cells = grammar.cells(Tree.parse("(S (NP rain) (VP (V fell)))"), family, 0)
    >>> print(grammar.tree(cells, family, 0, ["rain", "fell"]))
    (S (NP rain) (VP (V fell)))
    """

    symbols: tuple[str, ...]
    table: RuleTable

    @classmethod
    def of(cls, rules: Iterable[Rule], tokens: Iterable[str], *, start: str) -> BinaryGrammar:
        """The grammar of some rules, all different, and of symbols that a word can be.

        Rules are numbered with binary ones first, otherwise in the order given.
        """
        given = list(rules)
        columns = list(dict.fromkeys(tokens))
        symbols = tuple(dict.fromkeys([start, *(symbol for rule in given for symbol in rule), *columns]))
        number = {symbol: i for i, symbol in enumerate(symbols)}
        binary = [[number[symbol] for symbol in rule] for rule in given if len(rule) == 3]
        unary = [[number[symbol] for symbol in rule] for rule in given if len(rule) == 2]
        table = RuleTable(
            len(symbols),
            np.array(binary, np.int64).reshape(-1, 3),
            np.array(unary, np.int64).reshape(-1, 2),
            np.array([number[symbol] for symbol in columns], np.int64),
            0,
            symbols,
        )
        return cls(symbols, table)

    @property
    def start(self) -> str:
        """The symbol of a whole sentence."""
        return self.symbols[self.table.start]

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Symbols that a word can be: the columns of token scores."""
        return tuple(self.symbols[s] for s in self.table.tokens.tolist())

    @property
    def rules(self) -> list[Rule]:
        """Rules by name, in the order of their cells: binary ones, then unary ones."""
        rows = [*self.table.binary.tolist(), *self.table.unary.tolist()]
        return [tuple(self.symbols[s] for s in row) for row in rows]

    @cached_property
    def parents(self) -> IntArray:
        """``int64[n_rules]``: the symbol on the left of each rule."""
        return np.concatenate([self.table.binary[:, 0], self.table.unary[:, 0]])

    @cached_property
    def cell_of(self) -> dict[Rule, int]:
        """The cell of each rule."""
        return {rule: cell for cell, rule in enumerate(self.rules)}

    @cached_property
    def column_of(self) -> dict[str, int]:
        """The column of each symbol that a word can be."""
        return {symbol: t for t, symbol in enumerate(self.tokens)}

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels of constituents that trees can have, sorted: those of symbols on the left of a rule."""
        return tuple(sorted({plain_label(self.symbols[s]) for s in set(self.parents.tolist())} - {""}))

    @cached_property
    def label_of(self) -> IntArray:
        """``int64[n_symbols]``: the number of each symbol's label, -1 of those that trees lack and of bare tags."""
        number = {label: x for x, label in enumerate(self.labels)}
        heads = set(self.parents.tolist())
        found = [number.get(plain_label(s), -1) if i in heads else -1 for i, s in enumerate(self.symbols)]
        return np.array(found, np.int64)

    @cached_property
    def _plain(self) -> list[str]:
        return [plain_label(symbol) for symbol in self.symbols]

    def family(self, lengths: Any, *, spans: bool = False) -> Charts:
        """Charts of sentences of some lengths; with ``spans`` also scores of spans."""
        return Charts.of(np.asarray(lengths, np.int64), self.table, spans=spans)

    def form(self, rules: FloatArray, tokens: FloatArray, spans: FloatArray | None = None) -> Chart:
        """The trees of one sentence: scores ``[n_rules]``, ``[n, columns]``, and ``[spans, branching symbols]``."""
        return Chart.from_table(self.symbols, self.table, rules, tokens, spans)

    def cells(self, tree: Tree, family: Charts, instance: int) -> list[int]:
        """The cells of a tree that has a rule at each node, in the order of charts.

        Raises
        ------
        ModelError
            Where the grammar lacks a rule, or the start symbol is another.
        """
        n, table = int(family.lengths[instance]), self.table
        begin, columns = int(family.cell_offsets[instance]), len(table.tokens)
        if tree.label != self.start:
            raise ModelError(f"tree {instance} begins with {tree.label}, and the grammar with {self.start}")
        column, branching, found = self.column_of, self._branching, []
        for node, i, j in tree.constituents():
            if node.is_preterminal:
                if node.label not in column:
                    raise ModelError(f"tree {instance} has the tag {node.label}, which the grammar lacks")
                found.append(begin + i * columns + column[node.label])
                continue
            rule = (node.label, *(child.label if isinstance(child, Tree) else repr(child) for child in node.children))
            if rule not in self.cell_of:
                raise ModelError(f"tree {instance} has the rule {shown_rule(rule)}, which the grammar lacks")
            found.append(self.cell_of[rule])
            if family.spans and len(rule) == 3:
                span = i * (n - 1) - i * (i - 1) // 2 + j - i - 2
                found.append(begin + n * columns + span * len(table.branching) + branching[node.label])
        return found

    @cached_property
    def _branching(self) -> dict[str, int]:
        return {self.symbols[s]: x for x, s in enumerate(self.table.branching.tolist())}

    def tree(self, cells: Any, family: Charts, instance: int, words: Sequence[str]) -> Tree | None:
        """The tree of some cells, without new nodes and names of ancestors; None where there are no cells."""
        table, n_binary = self.table, len(self.table.binary)
        begin, columns = int(family.cell_offsets[instance]), len(table.tokens)
        ends = begin + int(family.lengths[instance]) * columns
        plain, parents, tokens = self._plain, self._parent_list, self._token_list
        done: list[list[Tree | str]] = []
        for cell in reversed(np.asarray(cells).tolist()):
            if cell < table.n_rules:
                below = done.pop() if cell >= n_binary else done.pop() + done.pop()
                symbol = parents[cell]
            elif cell < ends:
                word, column = divmod(cell - begin, columns)
                below, symbol = [words[word]], tokens[column]
            else:
                continue
            done.append([Tree(plain[symbol], below)] if plain[symbol] else below)
        if not done:
            return None
        (found,) = done
        if len(found) != 1 or not isinstance(found[0], Tree):
            raise ModelError(f"the start symbol {self.start} is none that trees have, and makes {len(found)} of them")
        return found[0]

    @cached_property
    def _parent_list(self) -> list[int]:
        return list(map(int, self.parents))

    @cached_property
    def _token_list(self) -> list[int]:
        return list(map(int, self.table.tokens))

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What an archive keeps: JSON and vectors."""
        table = self.table
        arrays = {"binary": table.binary.ravel(), "unary": table.unary.ravel(), "tokens": table.tokens}
        return {"symbols": list(self.symbols), "start": table.start}, arrays

    @classmethod
    def restored(cls, about: Any, arrays: Any) -> BinaryGrammar:
        """The grammar that an archive describes; a `FormatError` where it describes none."""
        symbols, start = about.get("symbols"), about.get("start")
        if not isinstance(symbols, list) or not symbols or not all(type(s) is str and s for s in symbols):
            raise FormatError("it has no symbols")
        if len(set(symbols)) < len(symbols):
            raise FormatError("it has a symbol twice")
        n = len(symbols)
        if type(start) is not int or not 0 <= start < n:
            raise FormatError("its start symbol is not there")
        found = {}
        for name, width in (("binary", 3), ("unary", 2), ("tokens", 1)):
            own = arrays.get(name)
            if own is None or own.dtype != np.int64 or len(own) % width or (len(own) and own.min() < 0):
                raise FormatError(f"its {name} rules are not there or broken")
            if len(own) and own.max() >= n:
                raise FormatError(f"its {name} rules name a symbol that is not there")
            rows = own.reshape(-1, width)
            if len(np.unique(rows, axis=0)) < len(rows):
                raise FormatError(f"it has one of its {name} rules twice")
            found[name] = rows
        table = RuleTable(n, found["binary"], found["unary"], found["tokens"].ravel(), start, tuple(symbols))
        return cls(tuple(symbols), table)


def shown_rule(rule: Rule) -> str:
    """A rule as a message shows it."""
    return f"{rule[0]} -> {' '.join(rule[1:])}"
