"""Parameters of undirected models: every row of Murphy's table 19.1 that is not for tables alone.

Sources: Murphy 19.5.1 to 19.5.5; Besag (1975), Lindsay (1988), Younes (1989), Hinton (2002), Hyvarinen (2007), Sohl-
Dickstein, Battaglino and DeWeese (2011).

Files, in reading order:

* `problem`: a log-linear model and its data, rows told apart and counted once; `moments`: of data and of models;
* `likelihood`: minus the log-likelihood and its gradient, clamped less free expectations; `likelihood_fit`: by it;
* `sites_kernel`, `local_objective`: one variable given the others; `local_fit`, and the methods that fit by it:
  `pseudo_likelihood`, `ratio_matching`, `minimum_probability_flow`; `differences`: binary variables as logistic
  regressions; `dense_spins`: fully connected machines;
* `composite_likelihood`: blocks of variables given the others;
* `stochastic`: Markov chains that follow the parameters; `persistent_chains` (stochastic maximum likelihood) and
  `contrastive_divergence`; `slice_chains`: those of MC-SAT; `layers`: machines with a training of their own;
* `hidden`: generalised EM; `posterior`: uncertainty of the parameters;
* `iterative_scaling`: generalised and improved;
* `fitting`: penalties, starts and reports.

An evaluation of the likelihood costs one inference in the model, whatever the rows; of a local objective, the distinct
configurations of each variable's neighbours. Nothing is planned after the first evaluation.
"""
