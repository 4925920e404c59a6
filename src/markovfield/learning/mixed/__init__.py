"""Learning from columns of states and of numbers together.

Files, in reading order:

* `columns`: a data frame as state numbers and real numbers;
* `family_moments`, `conditional_gaussian`: conditional Gaussian networks by maximum likelihood, in closed form, and by
  EM where values are missing or variables hidden;
* `pseudo_likelihood`, `mixed_group_lasso`: pairwise graphs of both kinds of variables by penalised pseudo-likelihood
  (Lee and Hastie 2013).

A row costs EM as much as an answer of the strong junction tree does, rows with the same values missing run as one
batch; the graph costs (states)^2 operations for each row and step.
"""
