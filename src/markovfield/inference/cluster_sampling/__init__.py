"""Cluster sampling: Markov chains that move whole clusters of Ising and Potts models on any graph.

Sources: Swendsen and Wang (1987), Wolff (1989). Neighbours are joined by random bonds where they agree as their
coupling asks, and the clusters that result change their state as one; so chains mix near critical couplings, where
moves of single variables do not.

In reading order:

* ``swendsen_wang.py``: which models these are, all clusters in every sweep, and what both methods share;
* ``wolff.py``: one cluster at a time, grown from a random variable;
* ``cluster_moves_kernel.py``: the moves.

Cost: a sweep of Swendsen-Wang takes some nanoseconds for each pair, whatever the couplings, and one of Wolff visits
every variable about once; memory is linear in the graph. On frustrated models clusters
grow too large to be of use.
"""
