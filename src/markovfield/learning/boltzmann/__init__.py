"""Boltzmann machines from data, restricted ones above all (Murphy 19.5.5, 27.7.2).

Files, in reading order:

* `rows`: data as rows of visible units;
* `updates`: contrastive divergence and stochastic maximum likelihood on arrays, with `divergence_kernel`;
* `flow`: minimum probability flow, with `flow_kernel`;
* `annealed`: log Z, exactly or by annealed importance sampling with whole layers at a time;
* `training`: a model in, a fitted model with its report out;
* `dense`: machines whose units are all joined, with `dense_kernel`;
* `transformer`: the same as a scikit-learn transformer;
* `products`: how many threads matrix products may take.

An epoch of either divergence costs 3 + 2k products of a mini-batch with the weights for each mini-batch, and is bound
by them from about a hundred units on; flow costs as many operations for each row as there are weights, times the number
of visible units.
"""
