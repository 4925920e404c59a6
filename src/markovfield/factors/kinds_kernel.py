"""The kinds of factor, as numbers that kernels and structures share; what each reads is said here.

Invariant: the numbers, and how the "strides" of structured factors are read, are part of the archive format and of
every compiled structure. A new kind gets the next number; none is ever used for something else.
"""

__all__ = ["CARDINALITY", "CLAUSE", "DISTANCE", "NOISY_MAX", "PARITY", "TABLE", "cap_of", "literal_of"]

TABLE = 0
"""Kind of a plain table: cell = base + sum of stride * state."""
CLAUSE = 1
"""Kind of a logical clause: two cells, ``base`` when every literal is false and ``base + 1`` when one is true.

The "stride" of an axis holds its literal: ``v >= 0`` is true unless the variable is in state v, and ``-(s + 1)`` is
true only in state s. Conjunctions are clauses too, of the opposite literals: "all hold" is the cell ``base``.
"""
NOISY_MAX = 2
"""Kind of a noisy-max (noisy-or): scope (parents..., child), the child the largest of independent contributions.

The "stride" of a parent's axis is where its block of cells starts, counted from the base: ``[its states, K]``, the
log-probabilities of its contribution, with K the child's states. That of the child's axis is where the leak's block
``[K]`` starts. Blocks may be shared. An entry of its table is a sum of products of cells, so it is no cell of the pool.
"""
CARDINALITY = 3
"""Kind of a potential of how many literals are true: cell = base + min(number of true literals, cap).

It has ``cap + 1`` cells, of which the last speaks of "cap or more". The "stride" of an axis is ``cap * 2^32 +
literal``, with a literal as in a clause and the same cap on every axis; see `literal_of` and `cap_of`.
"""
PARITY = 4
"""Kind of a parity (xor): two cells, ``base`` when an even number of literals is true and ``base + 1`` when an odd
number is. The "stride" of an axis holds its literal, as in a clause.
"""
DISTANCE = 5
"""Kind of a potential of how far apart the states of two variables are: cell = base + min(distance, cap).

It has ``cap + 1`` cells, and the "stride" of both axes is the cap. With a cap of one it is a Potts factor: two cells,
equal and different. A truncated linear or quadratic potential is one whose cells are ``-weight * min(d^p,
truncation)``: its weight's sufficient statistic is the sum of ``-min(d^p, truncation)`` times the count of cell d.
"""


def literal_of(stride):
    """The literal in the stride of a cardinality potential (a number or an array)."""
    return stride - (((stride + 2147483648) >> 32) << 32)


def cap_of(stride):
    """The cap in the stride of a cardinality potential (a number or an array)."""
    return (stride + 2147483648) >> 32
