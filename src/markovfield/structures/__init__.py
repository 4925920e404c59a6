"""Structures with their own dynamic programs: trees, charts, segmentations, alignments, matchings, rankings.

A form is the set of structures of one instance (a sentence, a pair of sentences) with a score for every part: arcs,
spans, segments, links. It answers the verbs as every model does: `markovfield.log_partition`, `marginals`, `decode`
(also the n best), `sample`. A family is the same for many instances at once, without scores, which is what training
and prediction of `markovfield.structured` stand on. Sums over structures are semirings in disguise (Caetano lecture
5): the number of structures is the sum with scores of zero, the entropy is log Z less the expected score.

One folder for each form: `span_tree`, `chart`, `projective_tree`, `spanning_tree`, `semi_markov`, `alignment`,
`matching`, `ranking`; `core` has what they share.
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
