"""Branch and bound: the best assignment with a proof, and on the way there better ones with better bounds.

Sources: hybrid best-first search (Allouche et al. 2015), soft local consistency up to EDAC (Cooper et al. 2010),
sequential reweighted message passing at the root (Kolmogorov 2015); toulbar2 (Hurley et al. 2016).

In reading order:

* ``branch_and_bound.py``: the method, its components and open subtrees;
* ``costs.py``: log-potentials as integer costs, and a connected component as a network of them;
* ``consistency_kernel.py``: costs moved between functions of one and two variables, exactly, so that a bound rises;
* ``propagate_kernel.py``: the same for functions of three variables or more, and restoring consistency, in every node
  of the search;
* ``root_kernel.py``, ``descent_kernel.py``: message passing and dead-end elimination, and a first assignment, once
  before the search;
* ``search_kernel.py``: depth-first search in one subtree, in pieces that can be interrupted;
* ``toulbar2.py``, ``_toulbar2_worker.py``: handing a model to toulbar2, in a process of its own.

Cost: exponential in the worst case. Memory is that of the tables, of the trail to go back by, and of the subtrees put
aside.
"""
