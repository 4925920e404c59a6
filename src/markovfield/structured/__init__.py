"""Conditional models of any graph: structured prediction as a form and a linear operator.

A model says three things about inputs X: the factor graph of its outputs, how the log-potentials depend on the weights
(``pool = base + A w``, never written out as a matrix), and where outputs lie in it. All examples together are one
`Batch`, a union of their graphs, so that inference runs once for all of them. The rest follows, and is written once
(Murphy 19.6.3; Andres 6.3): features of outputs are A' counts, the gradient of the likelihood is A' (counts - expected
counts).

In reading order:

* `core`: operators, batches, the protocol of models;
* `models`: what x and w mean: factors of any arity, graphs, several labels, taxonomies, energies, hidden states;
* `objectives`: what training minimises: likelihood, pseudo-likelihood, piecewise, expected loss;
* `losses`, `oracles`: what mistakes cost, and outputs of highest score and loss, for max-margin training
  (`margin_fit`, `kernel_fit`, `margin_report`, `latent_margin`; solvers stand in `learning.max_margin`, those of hinges
  by name in `margin_training`);
* `prediction`, `hidden_labels`, `constraints`: best outputs, marginals, samples, and how far they can be trusted;
  labels whose hidden states are summed over; combinations of labels that are ruled out;
* `conditional_estimator`, `settings`, `estimator`, `form_estimator`, `margin_estimator`: what estimators share: of all
  models, of factor graphs, of structures, and structural SVMs; `archive`: their files;
* `classifier`, `estimators`, `margin_estimators`, `ranking_ssvm`: a model, an objective and a solver as one, and
  the named estimators; `training` runs the solver, `examples` reads files.

Models of text and of images stand in `sequence` and `vision`.
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
