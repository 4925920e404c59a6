"""Binary trees of labelled spans, without a grammar: the tree CRF (Stern, Andreas and Klein 2017; Zhang et al. 2020).

A tree over n words has 2n - 1 spans, each with a label. Labels of a span are summed (or the best is taken) first, then
spans by the algorithm of Cocke, Kasami and Younger: ``inside(i, j) = score(i, j) + log sum_k exp(inside(i, k) +
inside(k + 1, j))``. Counts come by reverse differentiation of that recursion, which is the outside pass.

Read `span_tree` (the form), `family` (many sentences at once), `span_tree_kernel`. Cost: n^3 / 6 operations for sums,
as many for counts, n^2 labels more for the labels; memory n^2.
"""
