"""Objectives: what training minimises, one file each. All are sums over examples, without the penalty.

Each is settings with ``on(batch, running=, rng=)``, which gives a function of weights that returns the value and the
gradient.

* `likelihood`: conditional likelihood (Murphy 19.71 to 19.73), expectations by any method of inference;
* `pseudo_likelihood`: every variable given all others;
* `piecewise`: every factor, or every tree, normalised by itself;
* `expected_loss`: the loss expected of predictions (Murphy 19.80), and the likelihood of single labels.
"""
