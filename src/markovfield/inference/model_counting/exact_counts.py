"""Counts to the last digit: elimination modulo primes, put together by the Chinese remainder theorem."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray
from markovfield.exceptions import MemoryLimitError
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.plan import Tree, grow_tree
from markovfield.inference.problem.problem import Problem

__all__ = ["chinese_remainder", "count_by_elimination", "primes_above"]

# Primes below this: products of two remainders fit in 64 bits.
CEILING = 2**31
# Cells that are worked on at once, all primes together.
MOST_CELLS = 2**24


def _is_prime(n: int) -> bool:
    """Miller and Rabin's test with bases that decide for every number below 2^32."""
    if n % 2 == 0:
        return n == 2
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd //= 2
        twos += 1
    for base in (2, 3, 5, 7):
        x = pow(base, odd, n)
        if n != base and x not in (1, n - 1) and all(pow(x, 2**i, n) != n - 1 for i in range(1, twos)):
            return False
    return n > 1


@lru_cache
def primes_above(bits: int) -> tuple[int, ...]:
    """Primes below 2^31 whose product is at least 2^bits.

    Examples
    --------
    >>> primes_above(40)
    (2147483647, 2147483629)
    """
    found: list[int] = []
    product, n = 1, CEILING - 1
    while product < 2**bits or not found:
        if _is_prime(n):
            found.append(n)
            product *= n
        n -= 2
    return tuple(found)


def chinese_remainder(residues: list[int], primes: tuple[int, ...]) -> int:
    """The number below the product of the primes that has these remainders.

    Examples
    --------
    >>> chinese_remainder([2, 3], (3, 5))
    8
    """
    value, product = 0, 1
    for r, p in zip(residues, primes, strict=True):
        value += product * ((r - value) * pow(product, -1, p) % p)
        product *= p
    return value


def count_by_elimination(problem: Problem, bits: int, *, running: Running | None = None) -> int:
    """The number of assignments of a zero-one problem that are possible, known to be below ``2**bits``.

    Variables are eliminated along a clique tree, with all primes side by side; raises `MemoryLimitError` where a clique
    is too large for that.
    """
    primes = primes_above(bits)
    running = running or Running()
    tree = grow_tree(problem.structure, running=running)
    if tree.log2_largest > math.log2(MOST_CELLS):
        raise MemoryLimitError(
            f"counting to the last digit needs cliques of 2^{tree.log2_largest:.1f} states, while 2^24 fit; "
            "take method 'model_counting', or log_partition for the logarithm"
        )
    lanes = max(1, int(MOST_CELLS // 2.0**tree.log2_largest))
    residues: list[int] = []
    for first in range(0, len(primes), lanes):
        moduli = np.array(primes[first : first + lanes], np.int64)
        residues += _count_modulo(problem, tree, moduli, running).tolist()
    return chinese_remainder(residues, primes)


def _count_modulo(problem: Problem, tree: Tree, primes: IntArray, running: Running) -> IntArray:
    """The count modulo each prime: every clique multiplies what it holds and sends its parent a sum."""
    s = problem.structure
    inside: list[list[tuple[list[int], IntArray]]] = [[] for _ in tree.parent]
    total = np.ones(len(primes), np.int64)
    for f in range(s.n_factors):
        scope, table = _support(problem, f)
        if not scope:
            total *= table
            continue
        inside[int(tree.home[f])].append((scope, table))
    for c in np.argsort(-_depths(tree.parent), kind="stable").tolist():
        running.check()
        members = tree.members[tree.offsets[c] : tree.offsets[c + 1]].tolist()
        parent = int(tree.parent[c])
        above = set() if parent < 0 else set(tree.members[tree.offsets[parent] : tree.offsets[parent + 1]].tolist())
        shape = [int(s.cardinalities[v]) for v in members]
        product = np.ones((*shape, len(primes)), np.int64)
        for scope, table in inside[c]:
            product *= _spread(table, scope, members)
            product %= primes
        inside[c] = []
        for v, vector in _allowed(problem, members, tree, c):
            product *= _spread(vector, [v], members)
        gone = tuple(a for a, v in enumerate(members) if v not in above)
        message = product.sum(axis=gone) % primes
        if parent < 0:
            total = total * message % primes
        else:
            inside[parent].append(([v for v in members if v in above], message))
    return total


def _support(problem: Problem, factor: int) -> tuple[list[int], IntArray]:
    """A factor's free variables and where it is above zero, with a last axis of one for the primes."""
    s = problem.structure
    scope, strides = s.scope(factor).tolist(), s.strides(factor).tolist()
    cells = np.array(s.table_offsets[factor])
    for v, stride in zip(scope, strides, strict=True):
        cells = cells[..., None] + stride * np.arange(int(s.cardinalities[v]))
    table = (problem.potentials.log_tables[cells] > -np.inf).astype(np.int64)
    free = [v for v in scope if s.cardinalities[v] > 1]
    return free, table.reshape([*(int(s.cardinalities[v]) for v in free), 1])


def _spread(table: IntArray, scope: list[int], members: list[int]) -> IntArray:
    """A table with axes of one for the members that it does not speak of, in the order of the members."""
    kept = [v for v in members if v in scope]
    moved = table.transpose([*(scope.index(v) for v in kept), len(scope)])
    sizes = dict(zip(kept, moved.shape[:-1], strict=True))
    return moved.reshape([*(sizes.get(v, 1) for v in members), table.shape[-1]])


def _allowed(problem: Problem, members: list[int], tree: Tree, clique: int) -> list[tuple[int, IntArray]]:
    """What likelihoods allow of the variables that leave at this clique."""
    if not problem.active.any():
        return []
    s, parent = problem.structure, int(tree.parent[clique])
    above = set() if parent < 0 else set(tree.members[tree.offsets[parent] : tree.offsets[parent + 1]].tolist())
    found = []
    for v in members:
        if problem.active[v] and v not in above:
            vector = problem.likelihood[s.value_offsets[v] : s.value_offsets[v + 1]]
            found.append((v, (vector > -np.inf).astype(np.int64)[:, None]))
    return found


def _depths(parent: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How far below its root each clique is."""
    depths = np.full(len(parent), -1, np.int64)
    for c in range(len(parent)):
        path = []
        at = c
        while at >= 0 and depths[at] < 0:
            path.append(at)
            at = int(parent[at])
        below = -1 if at < 0 else int(depths[at])
        for step, clique in enumerate(reversed(path)):
            depths[clique] = below + 1 + step
    return depths
