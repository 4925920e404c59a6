"""Marginal MAP: the best states of some variables with the others summed out, and a bound on the best.

Source: Liu and Ihler (2013) for weighted mini-buckets of mixed problems.

In reading order:

* ``marginal_search.py``: the method: reduce, bound, climb, and prove where that is possible;
* ``reduction.py``: variables to be summed are eliminated exactly while their tables stay small;
* ``bounds.py``: the rest bounded from above by mini-buckets, which makes it plain MAP;
* ``scores.py``: the true score of an assignment, summed component by component.

Cost: eliminated variables cost at most 2^18 cells each. If none is left the cost is that of decoding; else that of the
mini-buckets, and for every assignment that is scored of junction trees over the summed variables (or of bounds, where
those would be too wide).
"""
