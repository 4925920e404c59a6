"""Sequence models: a label for each token of a sequence.

Estimators in the manner of scikit-learn. Sequences are short and many, so these models have kernels of their own in
place of a planned junction tree; ``to_factor_graph`` of a linear-chain CRF gives the same model to every other method
of the library. Sources: Murphy 19.6 (linear-chain CRF, MEMM, label bias), Murphy 17 (hidden Markov models),
Andres 6.3.

In reading order:

* `text`: from tokens, columns and templates to flat arrays; labels and scores of chunks;
* `interface`: what all of the following answer, and names of sklearn-crfsuite;
* `chain`: linear-chain conditional random fields, of first and second order;
* `memm`: maximum-entropy Markov models, normalised at each token;
* `hmm`: hidden Markov models, of symbols and of Gaussian observations;
* `tagger`: features and a linear-chain CRF as one object, trained, used and saved together.

All are linear in the number of tokens, and quadratic in labels (cubic for triples of labels).
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
