"""Colour refinement: variables and factors that messages cannot tell apart have the same colour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence

__all__ = ["Colours", "refined"]

Hash = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Colours:
    """A partition that is stable: variables of a colour have, for every colour of factors and axis, as many of them.

    Attributes
    ----------
    variables, factors
        The colour of each, from zero.
    rounds
        How often colours were refined.
    """

    variables: IntArray
    factors: IntArray
    rounds: int

    @property
    def n_variables(self) -> int:
        """Number of colours of variables."""
        return int(self.variables.max(initial=-1)) + 1

    @property
    def n_factors(self) -> int:
        """Number of colours of factors."""
        return int(self.factors.max(initial=-1)) + 1


def refined(structure: Structure, evidence: Evidence) -> Colours:
    """The coarsest stable colours in which cardinalities, evidence and tables agree.

    Tables are the same where they are the same cells of the pool, read alike. Colours are told apart by hashes of 64
    bits. Each round is linear in the edges, but for a sort of the variables and one of the factors; there are as many
    rounds as the distance over which a difference is still seen, at most the number of variables.
    """
    s = structure
    size, scopes = np.diff(s.scope_offsets), s.scopes.astype(np.int64)
    owner = np.repeat(np.arange(s.n_factors), size)
    axis = (np.arange(len(s.scopes)) - s.scope_offsets[:-1][owner]).astype(np.uint64)
    own = np.zeros(s.n_variables, np.uint64)
    for v, vector in evidence.likelihoods:
        own[v] += np.uint64(hash(vector.tobytes()) & (2**64 - 1))
    first = np.stack([s.cardinalities.astype(np.uint64), (evidence.states + 1).astype(np.uint64), own])
    variables = _numbered(
        _mixed(first[0]) + _mixed(_mixed(first[1]) + np.uint64(1)) + _mixed(_mixed(own) + np.uint64(2))
    )
    read = _mixed(_mixed(s.table_strides.astype(np.uint64)) + axis)
    table = _mixed(s.table_offsets.astype(np.uint64)) + _mixed(s.kind.astype(np.uint64) + np.uint64(77))
    table = _mixed(table) + _sums(owner, read, s.n_factors) + _mixed(size.astype(np.uint64) + np.uint64(5))
    factors, count, rounds = _numbered(table), -1, 0
    while True:
        n = int(variables.max(initial=-1)) + 1
        if n == count:
            return Colours(variables, factors, rounds)
        count, rounds = n, rounds + 1
        seen = _mixed(_mixed(variables.astype(np.uint64)[scopes]) + axis)
        factors = _numbered(_mixed(table) + _sums(owner, seen, s.n_factors))
        told = _mixed(_mixed(factors.astype(np.uint64)[owner]) + axis)
        before = _mixed(variables.astype(np.uint64))
        variables = _numbered(before + _sums(scopes, told, s.n_variables))


def _sums(group: IntArray, values: Hash, n: int) -> Hash:
    """Sums of hashes by group, which do not depend on their order."""
    out = np.zeros(n, np.uint64)
    np.add.at(out, group, values)
    return _mixed(out + np.uint64(3))


def _numbered(hashes: Hash) -> IntArray:
    """Hashes as numbers from zero, in the order in which they first occur."""
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[inverse.ravel()]


def _mixed(x: Hash) -> Hash:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
