"""Inference: the verbs, and one folder or file for each algorithm that answers them.

A verb (marginals, log_partition, decode, sample) compiles the model, reads the evidence, chooses a method and hands
over. All methods take the same `Problem` and dress what they find in the same answers, so that each can be held against
another.

In reading order:

* ``verbs.py``: the questions; ``discrete.py``, ``gaussian``: the same for factor graphs and for Gaussian fields;
* ``predict.py``: what each row of a table says of the variables it does not show;
* ``automatic.py``, ``explain.py``: what ``method="auto"`` tries, and what it would cost;
* ``core``: the answers, evidence, limits of time and memory, the registry of methods;
* ``problem``, ``constants``: a graph made ready for inference, and the constants of its tables taken out;
* exact: ``enumeration.py``, ``variable_elimination.py``, ``junction_tree``, ``planar_ising``, ``model_counting``;
* messages: ``belief_propagation``, ``generalized_bp``, ``mean_field``;
* bounds on log Z: ``tree_reweighted``, ``mini_bucket``, ``sandwich.py`` (several methods against each other);
* the best assignment: ``graph_cuts``, ``trws``, ``dual_decomposition``, ``linear_programming``, ``local_search``,
  ``branch_and_bound``, ``portfolio`` (several of them), ``marginal_map`` (with other variables summed out);
* samples: ``sampling`` (what samplers share), ``gibbs``, ``cluster_sampling``, ``perfect_sampling``,
  ``annealed_importance``;
* ``analysis``: queries, sensitivity, information, semirings and repeated decoding, on top of the verbs.
"""
