"""What all methods share: evidence, limits, the registry, and the answers with what they claim.

In reading order:

* ``method.py``: what a method is, one protocol for each verb;
* ``registry.py``: the one list of methods, which verbs each answers and for which form;
* ``evidence.py``: observed states and virtual evidence, checked;
* ``answers.py``: marginals, log Z and samples, immutable, with their guarantee;
* ``decodings.py``: the best assignment, its score, the gap to a proven bound;
* ``counts.py``: expected counts by any method (Murphy 19.40, 19.47, 19.48; Andres 6.24 to 6.28);
* ``component_counts.py``: the same of a union of many examples, with the log Z and the weight of each;
* ``row_counts.py``: those of many rows of clamps, as copies of the graph in one union where the method allows it;
* ``loss_counts.py``: the same weighted by a loss (Murphy 19.80);
* ``batches.py``: marginals for many rows of evidence;
* ``running.py``: threads, time limit and callback; ``limits.py``: memory;
* ``convergence.py``: the one warning of what did not converge;
* ``diagnostics.py``, ``autocovariance_kernel.py``: effective sample sizes, split R-hat and standard errors (Vehtari,
  Gelman, Simpson, Carpenter and Bürkner 2021);
* ``_end_with_parent.py``: solvers in other processes that end with this one.

Cost: nothing of the size of a model but the answers' own arrays; diagnostics are linear in the samples for each lag.
"""
