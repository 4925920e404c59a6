"""
How many are there?
===================

A sum over structures counts them when every part scores nothing: one algorithm gives log Z, probabilities and
numbers. The numbers are known in closed form, by Catalan, Cayley and others, which is a check of every algorithm at
once.
"""

from math import comb, factorial

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

s = mf.structures
zeros = np.zeros

# %%
# Each row: the form of size n, and the closed formula.

families = {
    "binary trees of n words": (lambda n: s.SpanTree(zeros((n, n, 1))), lambda n: comb(2 * n - 2, n - 1) // n),
    "projective trees, one root": (
        lambda n: s.ProjectiveTree(zeros((n + 1, n + 1))),
        lambda n: comb(3 * n - 2, n - 1) // n,
    ),
    "spanning trees, one root": (lambda n: s.SpanningTree(zeros((n + 1, n + 1))), lambda n: n ** (n - 1)),
    "spanning trees": (
        lambda n: s.SpanningTree(zeros((n + 1, n + 1)), single_root=False),
        lambda n: (n + 1) ** (n - 1),
    ),
    "segmentations": (lambda n: s.SemiMarkov(zeros((n, n, 1))), lambda n: 2 ** (n - 1)),
    "alignments of n with n": (lambda n: s.MonotoneAlignment(zeros((n, n))), lambda n: comb(2 * n, n)),
    "rankings, perfect matchings": (lambda n: s.Ranking(zeros(n)), factorial),
}
sizes = np.arange(1, 13)
counts = {name: [make(int(n)).n_structures() for n in sizes] for name, (make, _) in families.items()}
for name, (_, formula) in families.items():
    known = [formula(int(n)) for n in sizes]
    assert np.allclose(counts[name], known, rtol=1e-12), name
    print(f"{name:28s} {[int(c) for c in counts[name][:6]]}, ..., {known[-1]:,}")

# %%
# All grow exponentially or faster. All are summed in polynomial time, but for rankings and matchings, whose sums are
# permanents.

figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
for name, values in sorted(counts.items(), key=lambda one: -one[1][-1]):
    axis.semilogy(sizes, values, "o-", ms=3, label=name)
axis.set_xlabel("n")
axis.set_ylabel("structures")
axis.legend(fontsize=8)
axis.grid(alpha=0.3)
plt.show()
