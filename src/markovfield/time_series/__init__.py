"""Time series of real values: vector autoregressions as dynamic chain graphs, linear state-space models.

A vector autoregression is a directed model across time and an undirected one within a time step (Murphy 19.4.4.1): an
arrow from one series to another where the past of the first has a weight in the second, an edge where the precision of
the noise has an entry. A state-space model is a Markov chain of hidden Gaussian states; the Kalman filter and smoother
are exact inference in the field that it unrolls to, and give the same numbers.

Files, in reading order:

* `series`: columns of any library as ``float64[time, series]``;
* `regression`: lagged regressions: least squares; maximum likelihood where a graph has missing arrows and edges; lasso;
* `chain_graph`: graphs as masks of weights, and back;
* `estimation`, `vector_autoregression`: `VectorAutoregression`, the estimator, and what it is fitted by;
* `forecasts`, `causality`, `order_selection`: what one is asked: forecasts, impulse responses, tests, orders;
* `unrolled`: both models as a `GaussianField`, a variable for each series and time step;
* `state_space`: `LinearStateSpace`; `kalman`, `kalman_kernel`: filter and smoother;
* `state_space_fit`: parameters by expectation maximisation;
* `archive`: files.

Fitting n time steps of k series with p lags takes n (k p)^2 operations and then (k^2 p)^3 where a graph has missing
arrows or edges; filter and smoother are linear in time and cubic in states.
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
