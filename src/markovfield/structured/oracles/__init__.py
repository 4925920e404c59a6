"""Loss-augmented decoding: the output of highest score and loss of every example (Murphy 19.7.2 and 19.7.4).

* `decoders`: best outputs of factor graphs and of structures with something added to scores, second best ones, and
  their features beside those of the truth;
* `oracles`: what a loss makes of these: sums by adding costs to scores, zero-one by the second best, counts by
  sorting or by a counting dynamic program;
* `slack`: slack rescaling, by a search over margins;
* `problem`: oracles of shards as the problem that solvers of planes know.


Linear chains bring a decoder of their own (`markovfield.sequence.margin`).
"""
