"""Dependency trees whose arcs do not cross: Eisner's algorithm (1996), inside and outside.

Read `projective_tree` (the form), `family`, then `inside_outside_kernel` (the two recursions) and `log_chart_kernel`
(scores far apart, the best tree, draws). Cost of n words: n^3 / 2 multiplications for log Z, three times that with
marginals, memory n^2.
"""
