"""Sequential tree-reweighted max-product (TRW-S): a bound on the best score that never rises, and assignments.

Sources: Kolmogorov (2006); Sudderth 24 for max-product and its dual. The bound falls towards the optimum of the local
relaxation, though it may stop above it; on forests one pass is exact.

In reading order:

* ``trws.py``: the method, when passes end and when assignments are rounded;
* ``plan.py``: factors, tables and the order of visits;
* ``passes_kernel.py``: collecting and pushing, the bound, rounding; trees that hang on the rest, taken off first;
* ``lattice.py``, ``lattice_kernel.py``: rectangular lattices, diagonal by diagonal.

Cost: an iteration takes, for each factor, its cells times its variables; tables of pairs that are constant off a band
(Potts, truncated linear or quadratic) cost the band, or O(K) for K states. Memory is that of the messages and of the
distinct tables.
"""
