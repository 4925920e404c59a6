"""Dependency trees whose arcs may cross: arborescences from a root over words, each with one head.

Sums by the matrix-tree theorem (Koo, Globerson, Carreras and Collins 2007, section 3, also with a single arc from the
root), here as elimination without subtraction: exact to the last digits for scores of any size. The best tree by Chu
and Liu and Edmonds in O(n^2), the n best by partitioning, draws by putting eliminated words back.

Read `spanning_tree` (the form), `arcs` (what it shares with `projective_tree`: cells, labels, evidence), `family`;
then `elimination_kernel`, `log_elimination_kernel` (scores far apart, and draws), `best_kernel`. Cost of n words:
n^3 / 3 multiplications for log Z, n^3 with marginals, n^2 for the best tree, n^3 once and about n^2 for every draw.
"""
