"""Maximum-entropy Markov models: the label of each token given the label before it (Murphy 19.6.1, 19.66).

Features, weights and their layout are those of `sequence.chain`; only the normalisation differs, which is at each token
and not of the whole sequence. It makes training simple, and is what causes label bias.

Files, in reading order:

* `memm`: the estimator `MEMM`;
* `local_chain`: a locally normalised linear chain with weights: its objective, and what can be asked of it;
* `local_chain_kernel`: sums of the objective, best and greedy labels, and marginals by filtering.

Training costs O(K) for each token beyond its attributes, as the label before is known; decoding and marginals of T
tokens cost O(T K^2).
"""
