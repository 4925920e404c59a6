"""Coupling from the past: exact, independent samples of models whose Markov chains keep their order.

Source: Propp and Wilson (1996); Fortuin and Kasteleyn for the random-cluster model. Chains from the highest and from
the lowest state meet before time zero, and with them every other; what they meet in is a draw from the model itself.

In reading order:

* ``coupling_from_the_past.py``: the method, its pilot run and its refusals;
* ``monotone.py``: which models are monotone, as spins or as bonds;
* ``monotone_kernel.py``: doubling the past until chains meet;
* ``random_cluster_kernel.py``: sweeps over bonds.

Cost: a sweep of spins takes some nanoseconds a pair, one of bonds ten to a hundred times as long. How many are needed
is random: a few dozen well below a critical coupling, for spins exponentially many above it; bonds need few on either
side.
"""
