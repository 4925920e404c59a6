"""Tree-reweighted message passing: an upper bound on log Z from a mixture of spanning trees, at every step.

Sources: Sudderth 24; Wainwright, Jaakkola and Willsky. The score is split among weighted trees; by convexity the mean
of their log Z is at least the model's, and messages look for the best split.

In reading order:

* ``tree_reweighted.py``: the method and its settings;
* ``stars.py``, ``stars_kernel.py``: any factor graph as a graph of pairs, large factors as auxiliary variables;
* ``spanning_trees.py``: mixtures of spanning trees, and how often each edge is in them;
* ``messages.py``: a run: messages, trees, the best bound so far;
* ``sweeps_kernel.py``: sweeps, and the bound from the trees themselves;
* ``pseudo_marginals_kernel.py``: marginals, mutual information of edges, counts.

Cost: a sweep takes, for each edge, the product of its variables' states; the bound about as much as
two sweeps. A factor of three or more variables counts with its cells above -inf as states.
"""
