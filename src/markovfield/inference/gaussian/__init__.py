"""The verbs for Gaussian fields: exact, by one sparse Cholesky factorisation (Murphy 19.4.4, equations 19.24 to 19.28).

Files in reading order:

* `answers`, `evidence`: means, variances, draws; values, values seen with noise; `decoding`: scores;
* `verbs`: the choice of a method; `explanations`, `queries`, `moments`: what it would cost, a few variables, learning;
* `cholesky`: exact, by factoring what the evidence leaves; `toeplitz_fft`: exact on a torus;
* `belief_propagation`, `messages_kernel`: exact on forests; `walks`: edges, forests, walk-summability;
* `conjugate_gradient`, `solves`, `roots`: fields too large to factor; `gibbs`, `gibbs_kernel`: a Markov chain.

Cost: a factorisation of the precision that is left once the evidence is known. About n^1.5 operations for a planar
lattice of n variables, n for a forest, n^3 for a dense matrix.
"""
