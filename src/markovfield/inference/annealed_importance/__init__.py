"""Annealed importance sampling: an estimate of log Z with its standard error, and weighted samples (Neal 2001).

Markov chains start with exact draws from a spanning forest of the strongest factors, whose log Z is known, and the
other factors are raised from power 0 to 1 in steps. The mean weight of the chains, times the forest's Z, is an unbiased
estimate of Z.

In reading order:

* ``annealed_importance.py``: the method, its settings, the estimate and its standard error;
* ``paths.py``: the forest that chains start from, the chains and their weights;
* ``annealing_kernel.py``: weights and single-variable Gibbs moves along the path.

Cost: time is that of ``n_chains * n_temperatures`` Gibbs sweeps, memory that of the chains' states. Twice as many
temperatures about halve the variance of the log-weights.
"""
