"""The verbs for Gaussian fields: exact, by one sparse Cholesky factorisation (Murphy 19.4.4, equations 19.24 to 19.28).

Files in reading order: `answers` (what comes back: means, variances, draws), `evidence` (values, and values seen with
noise), `cholesky` (the exact method), `decoding` (the score of an answer), `verbs` (the choice of a method).

Cost: a factorisation of the precision that is left once the evidence is known. About n^1.5 operations for a planar
lattice of n variables, n for a forest, n^3 for a dense matrix.
"""
