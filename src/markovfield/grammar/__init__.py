"""Grammars: trees of constituents, and the models that parse sentences into them.

Sources: Murphy 19.6.2.4 (probabilistic and discriminative context-free grammars); Klein and Manning (2003) for
Markovisation and annotation by parents; Collins (1999) for heads.

Files, in reading order:

* `trees`, `brackets`: a constituent and what it is made of; trees written in brackets;
* `heads`, `binarisation`: which child is the head; trees with at most two children below each node, and back;
* `drawing`: trees as characters and as SVG;
* `scoring`: brackets of parses against those of gold trees, as evalb counts them;
* `binary_grammar`, `lexicon`, `treebank`: rules of at most two symbols, words with their tags, both read off trees;
* `productions`, `grammar_text`: rules of any length, and grammars as text;
* `probabilities`, `inside_outside`, `expected_brackets`, `pcfg`: grammars with probabilities; EM; the tree of highest
  expected F1; the estimator;
* `span_features`, `pairs`, `pairs_kernel`: features of runs of words; weights of features and of pairs with labels;
* `parser`, `span_model`, `span_parser`, `grammar_ssvm`: what parsers share; trees of labelled spans without a grammar,
  by likelihood or by margins;
* `discriminative`: trees of a grammar, with weights of rules and features of spans.

A tree of n words takes time and memory linear in its nodes everywhere, and nothing here is recursive.
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
