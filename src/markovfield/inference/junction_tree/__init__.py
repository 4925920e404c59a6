"""The junction tree: exact marginals, log Z, best assignments and samples by two passes over a tree of cliques.

Sources: Caetano 5 (Hugin-style passes, with division at separators); Sudderth 24 for treewidth and cost; Lawler's
partition for the n best assignments.

In reading order:

* ``junction_tree.py``: the method; ``compiled.py``: a plan kept for many rows of evidence;
* ``plan.py``: elimination order, clique tree, layout and cost, before anything of table size is allocated;
* ``clique_tree_kernel.py``: the tree of an order; ``intermediate_kernel.py``: small cliques added under large ones;
* ``layout_kernel.py``: axes, offsets and inputs of all cliques, flat; ``schedule_kernel.py``: subtrees for threads;
* ``propagate.py``: which algebra to run in, both passes, and log space where linear space underflows;
* ``collect_kernel.py``, ``distribute_kernel.py``: the passes; ``blocks_kernel.py``: their algebras and
  inner loops;
* ``clique_queries.py``, ``queries_kernel.py``: joint tables, n best and samples;
* ``batch_kernel.py``: rows of evidence side by side; ``counts.py``: expected counts of many rows;
* ``tilted.py``: expected counts of a model tilted by a loss;
* ``ancestral.py``: directed models without evidence, ancestor set by ancestor set;
* ``noisy_max.py``: decoding where a noisy-max sums over contributions that nobody sees.

Cost: time grows with the states of all cliques, exponentially in the width; memory only with those of the separators,
since clique tables are formed in cache and never stored.
"""
