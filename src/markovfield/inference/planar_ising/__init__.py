"""Planar Ising models: exact log Z and marginals in polynomial time, by Pfaffians.

Sources: Kasteleyn (1963), Fisher (1966); Murphy 19.4.1 mentions the result. Models on a torus are a sum of four
Pfaffians.

In reading order:

* ``planar.py``: the method, and which problems are such models;
* ``plan.py``: a plane graph before any couplings; ``layout_kernel.py``: faces, signs, and a tree of regions;
* ``solve.py``: the Pfaffians, their sum, and the check of their digits;
* ``elimination.py``, ``pfaffian_kernel.py``: sparse elimination along the tree of regions, entries of the inverse, and
  an assignment of low energy to count the flips of spins from;
* ``moments.py``: moments of spins as small Pfaffians.

Cost: time grows like n^1.5 on the plane, at least four times that on a torus. With unary potentials, marginals also
solve for every variable that has none, which grows like n^2.
"""
