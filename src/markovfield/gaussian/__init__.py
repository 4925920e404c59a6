"""Gaussian fields: marginals, conditionals, samples and densities of real-valued variables.

The compiled form of linear-Gaussian models: a sparse precision matrix and an information vector (Murphy 19.27), where
a zero of the precision is a missing edge (Murphy 19.28). The verbs take it by
`markovfield.inference.gaussian`.

Files, in reading order:

* `gaussian_field`: `GaussianField`, what can be asked of it, and its graphs;
* `sparse_cholesky`: plans of factorisations, factors, and what they answer; `dense_factor`: small ones, by LAPACK;
* `fill_reducing`: the order of elimination; `degree_kernel` (minimum degree), `dissection_kernel` (lattices);
* `symbolic_kernel`: tree, counts, supernodes; `factor_kernel`, `solve_kernel`, `inverse_kernel`: their numbers;
* `dense_kernel`: what these do inside a supernode, by `markovfield.kernels.tiles`;
* `subspace`: a Gaussian whose precision may be singular in known directions, under linear constraints;
* `constrained_field`: `ConstrainedField`, a field with those, or on a lattice; `grid_names`: names of its sites;
* `mixed_field`: `MixedField`, of discrete and real-valued variables together.

One factorisation, made once and kept, answers all questions. For a planar lattice of n variables it takes about n^1.5
operations and n log n memory; in the worst case n^3 and n^2. Dense matrices are made only where asked for, and up to
10,000 variables.
"""
