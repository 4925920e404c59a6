"""Word alignment: which word of a sentence goes with which word of its translation.

Sources: Brown et al. (1993) for IBM models 1 and 2, Dyer, Chahuneau and Smith (2013) for positions near the diagonal,
Vogel, Ney and Tillmann (1996) and Och and Ney (2003) for the hidden Markov model and for the alignment error rate;
Taskar, Lacoste-Julien and Klein (2005) for alignment as matching.

Files, in reading order:

* `sentences`, `links`, `formats`, `scoring`: words as numbers in flat arrays; gold links and two directions made one;
  links as text; error rates;
* `translation`, `translation_kernel`: sparse tables of translation probabilities;
* `aligner`, `ibm`, `ibm_kernel`, `hmm_aligner`, `hmm_kernel`: models learnt from sentence pairs alone, by EM;
* `symmetric`: both directions;
* `statistics`, `link_features`: what a corpus without links says of a link;
* `alignment_model`, `alignment_crf`, `alignment_ssvm`: a conditional model of matchings, learnt from links, by its
  likelihood or by margins.

Every pair of words that stand opposite each other has one number; an iteration of EM reads it once for each place.
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
