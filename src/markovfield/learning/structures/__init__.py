"""Which variables depend on which: the methods of ``learn_structure``.

Sources: Chow and Liu (1968), the PC algorithm of Spirtes and Glymour; Hoefling and Tibshirani (2009), Ravikumar,
Wainwright and Lafferty (2010), Heckerman et al. (2000), Roudi, Aurell and Hertz (2009); Murphy 19.5.4.

Files, in reading order:

* `scores`, `local_scores`, `family_scores_kernel`: scores of families, counted together and remembered;
* `hill_climbing`, `climber`, `chow_liu`, `pc`: directed structures;
* `coded_rows`, `regressions`, `group_lasso_kernel`: all full conditionals of a pairwise model, penalised, at once;
* `penalty_path`, `group_lasso`: sparse pairwise structures along a path of penalties;
* `dependency_network`, `nodewise`: the same conditionals, each by itself;
* `inverse_ising`: couplings of all pairs of spins;
* `stepwise`, `neighbours`, `hierarchical_moves`, `hierarchical_kernel`, `decomposable_moves`: log-linear models of
  contingency tables, one interaction at a time.

A move of hill climbing scores the families of at most two children anew. A penalty costs one product over all pairs of
variables, and some Newton steps on the pairs that interact.
"""
