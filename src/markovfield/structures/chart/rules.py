"""The rules of a grammar as arrays that kernels read, and sums over chains of unary rules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.structures.chart.dense import DenseGrammar
from markovfield.structures.chart.inside_kernel import Rules, Scores

__all__ = ["RuleTable"]


@dataclass(frozen=True, eq=False)
class RuleTable:
    """Rules over symbols 0, 1, ...; their scores are the first cells of a pool, binary rules first.

    Attributes
    ----------
    n_symbols
        How many symbols there are.
    binary
        ``int64[rules, 3]``: parent, left child and right child.
    unary
        ``int64[unary rules, 2]``: parent and child, both symbols. There may be cycles.
    tokens
        ``int64[columns]``: the symbol of each column of token scores, which a single word can be.
    start
        The symbol of a whole sentence.
    names
        Of symbols, for messages.
    """

    n_symbols: int
    binary: IntArray
    unary: IntArray
    tokens: IntArray
    start: int
    names: tuple[str, ...] = ()

    @property
    def n_rules(self) -> int:
        """Binary and unary rules: how many cells all sentences share."""
        return len(self.binary) + len(self.unary)

    @cached_property
    def branching(self) -> IntArray:
        """Symbols that are the parent of a binary rule: the columns of span scores."""
        return np.unique(self.binary[:, 0])

    @cached_property
    def dense(self) -> DenseGrammar:
        """The same as tables of all rules, where that fits."""
        return DenseGrammar(self)

    def name(self, symbol: int) -> str:
        """A symbol as a message names it."""
        return self.names[symbol] if self.names else str(symbol)

    @cached_property
    def _sorted(self) -> tuple[IntArray, IntArray]:
        """Binary rules by left child, right child and parent; unary rules by parent."""
        parent, left, right = self.binary.T
        return np.lexsort((parent, right, left)), np.lexsort((self.unary[:, 1], self.unary[:, 0]))

    @cached_property
    def _blocks(self) -> list[list[int]]:
        """Symbols that unary rules lead around between, children first; those without unary rules are left out."""
        graph = nx.DiGraph(map(tuple, self.unary.tolist()))
        linked = nx.condensation(graph)
        found = [sorted(linked.nodes[c]["members"]) for c in reversed(list(nx.topological_sort(linked)))]
        return [block for block in found if len(block) > 1 or graph.out_degree(block[0])]

    def _has_cycle(self, block: list[int]) -> bool:
        return len(block) > 1 or bool(((self.unary[:, 0] == block[0]) & (self.unary[:, 1] == block[0])).any())

    @cached_property
    def cyclic(self) -> list[list[int]]:
        """Blocks in which unary rules lead around."""
        return [block for block in self._blocks if self._has_cycle(block)]

    def arrays(self, spans: bool) -> Rules:
        """As kernels read them, with or without scores of spans."""
        return self._with_spans if spans else self._without_spans

    @cached_property
    def _with_spans(self) -> Rules:
        column = np.full(self.n_symbols, -1, np.int64)
        column[self.branching] = np.arange(len(self.branching))
        return self._without_spans._replace(span_column=column, span_columns=len(self.branching))

    @cached_property
    def _without_spans(self) -> Rules:
        order, unary_order = self._sorted
        binary, unary = self.binary[order], self.unary[unary_order]
        lefts, left_of = _numbered(binary[:, 1], self.n_symbols)
        rights, right_of = _numbered(binary[:, 2], self.n_symbols)
        left, right = left_of[binary[:, 1]], right_of[binary[:, 2]]
        new = np.flatnonzero(np.diff(left * (len(rights) + 1) + right, prepend=-1))
        block_of = np.full(self.n_symbols, -1, np.int64)
        for number, block in enumerate(self._blocks):
            block_of[block] = number
        sizes = np.array([len(block) for block in self._blocks], np.int64)
        squares = np.array([len(block) ** 2 if self._has_cycle(block) else 0 for block in self._blocks], np.int64)
        where = offsets_of(squares)[:-1].astype(np.int64)
        within = (block_of[unary[:, 0]] == block_of[unary[:, 1]]).astype(np.int64)
        return Rules(
            left_of=left_of,
            right_of=right_of,
            left_symbol=lefts,
            right_symbol=rights,
            left_pairs=_starts(left[new], len(lefts)),
            pair_right=np.ascontiguousarray(right[new]),
            pair_rules=np.concatenate([new, [len(binary)]]).astype(np.int64),
            parent=np.ascontiguousarray(binary[:, 0]),
            rule_left=left,
            rule_right=right,
            by_parent=np.argsort(binary[:, 0], kind="stable"),
            parent_rules=_starts(np.sort(binary[:, 0]), self.n_symbols),
            rule_cell=order.astype(np.int64),
            unary_rules=_starts(unary[:, 0], self.n_symbols),
            unary_child=np.ascontiguousarray(unary[:, 1]),
            unary_cell=(unary_order + len(binary)).astype(np.int64),
            unary_within=within,
            blocks=offsets_of(sizes),
            block_symbols=np.array([a for block in self._blocks for a in block], np.int64),
            star_offsets=np.where(squares > 0, where, -1),
            token_symbols=self.tokens,
            span_column=np.full(self.n_symbols, -1, np.int64),
            start=self.start,
            lefts=len(lefts),
            rights=len(rights),
            span_columns=0,
        )

    def scores(self, pool: FloatArray, maximum: bool) -> Scores:
        """Scores of rules in the order of `arrays`, and of chains within blocks.

        Raises
        ------
        ModelError
            Where unary rules lead around at no cost, so that sums (or maxima) over chains of them have no limit.
        """
        order, unary_order = self._sorted
        rules, unary = pool[order], pool[len(order) + unary_order]
        shift = float(rules.max(initial=-np.inf))
        shift = shift if shift > -np.inf else 0.0
        stars = [self._star(block, pool, maximum).ravel() for block in self.cyclic]
        star = np.concatenate(stars) if stars else np.zeros(0)
        return Scores(rules, np.exp(rules - shift), shift, unary, star)

    def _star(self, block: list[int], pool: FloatArray, maximum: bool) -> FloatArray:
        """log of (I - U)^-1 for unary rules within a block, by Kleene's elimination, which subtracts nothing."""
        add: Any = np.maximum if maximum else np.logaddexp
        place = {symbol: x for x, symbol in enumerate(block)}
        table = np.full((len(block), len(block)), -np.inf)
        for (a, b), score in zip(self.unary.tolist(), pool[len(self.binary) : self.n_rules].tolist(), strict=True):
            if a in place and b in place:
                table[place[a], place[b]] = add(table[place[a], place[b]], score)
        for k, symbol in enumerate(block):
            around = table[k, k]
            if around >= 0.0:
                verb = "maxima" if maximum else "sums"
                raise ModelError(
                    f"{verb} over chains of unary rules have no limit: those from {self.name(symbol)!r} to itself "
                    f"weigh {np.exp(min(around, 700.0)):.3g} together, which must be less than 1; lower their scores, "
                    "or make one symbol of such chains"
                )
            often = 0.0 if maximum else -np.log1p(-np.exp(around))
            table = add(table, table[:, k, None] + (often + table[None, k, :]))
        diagonal = np.diag_indices(len(block))
        table[diagonal] = add(table[diagonal], 0.0)
        return table


def _numbered(symbols: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Which symbols there are, and for each symbol its number among them, or -1."""
    found = np.unique(symbols).astype(np.int64)
    number = np.full(n, -1, np.int64)
    number[found] = np.arange(len(found))
    return found, number


def _starts(sorted_keys: IntArray, n: int) -> IntArray:
    """Where each of n keys begins."""
    return np.searchsorted(sorted_keys, np.arange(n + 1)).astype(np.int64)
