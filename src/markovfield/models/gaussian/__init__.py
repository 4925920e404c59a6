"""Gaussian Markov random fields: priors on lattices, graphs, meshes and time, by their sparse precision.

Sources: Rue and Held 2005 (random walks, intrinsic fields, seasonal models), Besag 1974 and Besag, York and Mollie 1991
(conditional autoregressions), Lindgren, Rue and Lindstrom 2011 (Matern fields as solutions of a stochastic partial
differential equation, on lattices and meshes), Murphy 19.4.4 and 19.6.2.7.

Files, in reading order:

* `kinds`: the kinds of priors, by name, and what each takes;
* `precisions`: the precision of each kind, what it leaves open, and a root of it;
* `mesh`: triangle meshes, their finite elements, and where points lie in them;
* `markov_field`: `GaussianMarkovField`, what a user writes; compiles to a `ConstrainedField`.

Building is linear in the entries of the precision.
"""
