"""Learning of Gaussian graphical models: their numbers on a given graph, and the graph itself.

Sources: Murphy 19.4.4 (zeros of the precision and of the covariance), 19.5.7.3 (IPF for Gaussian models), 19.5.7.4
(closed form and conjugate posterior of decomposable ones).

Files, in reading order:

* `moments`: columns of numbers, and the means and covariances that all else reads; `learned`, what comes back;
* `goodness`, `graph_maximum`, `graph_maximum_kernel`, `newton_on_graph`, `conjugate_gradients`: maximum likelihood with
  zeros in the precision; `covariance_graph_maximum`: with zeros in the covariance; `incomplete`: EM where values are
  missing; `covariance_selection`, `covariance_graphs`: the methods of `fit` that call these;
* `lasso_solver`, `lasso_kernel`, `lasso_path`, `graphical_lasso`: sparse precisions by a penalty; `joint_solver`,
  `joint_kernel`, `joint_graphical_lasso`: of several classes; `neighbourhood_selection`, `neighbourhood_kernel`: by
  regressions;
* `hyper_wishart`, `decomposable_search`: posteriors on chordal graphs, and the search among these;
* `hyperparameters`: of priors on lattices and graphs, by the marginal likelihood;
* `independence`: tests of zeros of the precision and of the covariance.

Cost: a Newton step takes the n^3 operations of a dense factorisation, by LAPACK, and about n for each entry that is not
zero and sweep; components that the data part are solved for by themselves. Matrices are dense, n by n.
"""
