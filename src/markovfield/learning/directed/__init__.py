"""Parameters of directed models, from complete and incomplete data (Caetano 6).

Files, in reading order:

* `parameters`, `statistics`: rows of the pool that are normalised together, and their expected counts;
* `estimators`: counts with or without a prior;
* `expectation_maximization`: EM, also with hidden variables; `linear_gaussian`: least squares;
* `linear_gaussian_em`: EM for those with missing values.

Counting costs rows times the sizes of the families. A step of EM costs one batched pass of the junction tree over the
distinct incomplete rows.
"""
