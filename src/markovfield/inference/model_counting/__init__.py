"""Weighted model counting: exact sums of models full of hard zeros by search, and bounds where time is short.

Sources: sharpSAT (Thurley 2006), Cachet (Sang and others 2004), decisions guided by a clique tree (Korhonen and
Jaervisalo 2021).

In reading order:

* ``model_counting.py``: the method, and when it is worth trying;
* ``formula.py``, ``tables_kernel.py``: a problem as clauses, weights and tables;
* ``state_kernel.py``: what a search reads and writes; ``search.py``: the search as an object that can be stopped;
* ``search_kernel.py``: decide, propagate, split, count; bounds where it stands;
* ``units_kernel.py``: unit propagation and learned clauses;
* ``components_kernel.py``: components that share no variable; ``cache_kernel.py``: their counts, kept;
* ``flow_kernel.py``: marginals from the trace of a count;
* ``exact_counts.py``: counts to the last digit, modulo primes.

Cost: exponential in the worst case, and far less where clauses decide much; where potentials have no zeros a junction
tree is the better choice. Memory is that of the cache, which forgets the oldest counts.
"""
