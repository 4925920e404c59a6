"""Generalised belief propagation: marginals and log Z by messages between regions, for graphs with short cycles.

Sources: Kikuchi's cluster variation method; Yedidia, Freeman and Weiss; the convergent double loop of Heskes, Albers
and Kappen. log Z is the negative Kikuchi free energy, no bound, and exact where the regions form a junction tree.

In reading order:

* ``generalized_bp.py``: the method, its sweeps and its answer;
* ``regions.py``: outer regions, their intersections and counting numbers;
* ``short_cycles_kernel.py``: the cycles that regions are made of by default;
* ``layout.py``: a region graph as flat arrays;
* ``messages_kernel.py``: sweeps over the inner regions, in log space, and what is read off them.

Cost: a sweep takes the states of each outer region times the intersections inside it, so it is exponential in the size
of a region; memory is the states of all regions.
"""
