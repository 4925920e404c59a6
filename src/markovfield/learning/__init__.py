"""Learning: parameters and structures from data.

Sources: Murphy 19.5, Caetano 6.

Folders, in reading order:

* `core`: data as tables of state numbers, counts, reports;
* `solvers`: minimisers that know no models;
* `directed`: tables of Bayesian networks, also from incomplete data;
* `tables`: contingency tables, fitted to margins and in closed form;
* `boltzmann`: restricted Boltzmann machines, also as a scikit-learn transformer;
* `undirected`: parameters of all undirected models;
* `discriminative`: weights shared by very many factors, by curvature or by decoding alone;
* `structures`: which variables depend on which;
* `gaussian`: the numbers and the graphs of real-valued variables;
* `feature_induction`: random fields over words that grow by patterns.

Files: `fit` and `structure` are the verbs, `registry` lists their methods and `automatic` chooses one;
`maximum_likelihood` and `expectation_maximization` are for directed and undirected models alike.
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
