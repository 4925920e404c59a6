"""Objectives: what training minimises, one file each. All are sums over examples, without the penalty.

Each is settings with ``on(batch, running=, rng=)``, which gives a function of weights that returns the value and the
gradient.

* `likelihood`, `form_likelihood`: conditional likelihood (Murphy 19.71 to 19.73), expectations by any method of
  inference; of structures, by their dynamic programs;
* `pseudo_likelihood`: every variable given all others;
* `piecewise`, `forests_kernel`: every factor, or every tree, normalised by itself;
* `expected_loss`: the loss expected of predictions (Murphy 19.80), and the likelihood of single labels;
* `hinge`, `softmax_margin`, `ramp`: the hinge of structural SVMs, its softmax, and differences of two best scores;
* `registry`: all of them by name.
"""
