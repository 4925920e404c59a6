"""Contingency tables: hierarchical log-linear models fitted to margins (Murphy 19.5.7).

Files, in reading order:

* `hull`, `projection_kernel`, `scaling_kernel`: the tree of cliques, and the walk that fits margins on it;
* `fitting`: arrays in, arrays out;
* `model_tables`: generators, structural zeros and counts of a network;
* `proportional`: the method of `fit`; `raking`: tables and networks fitted to given margins;
* `closed_form`, `hyper_dirichlet`: decomposable models, with and without a prior;
* `bayesian_fitting`: posterior draws of any hierarchical model;
* `goodness_of_fit`: deviance, Pearson's statistic, degrees of freedom.

A sweep costs the states of the cliques times the number of blocks of margins in each; a joint table is never made.
"""
