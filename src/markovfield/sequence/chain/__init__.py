"""Linear-chain conditional random fields: labels of sequences, their probabilities, and training.

Sources: Murphy 19.6.2 and 19.6.3, Andres 6.3; online solvers: Collins (2002), Crammer et al. (2006), Crammer, Kulesza
and Dredze (2009).

Files, in reading order:

* `crf`, `settings`: the estimator `ChainCRF` and its settings, checked;
* `observed_features`, `features`, `layout_kernel`: which features there are, where their weights lie, what tokens read;
* `model`, `second_order`: a linear chain with weights and every question it answers; triples of labels;
* `explicit`: one sequence with its log-potentials written out, of a linear chain, an HMM or a MEMM;
* `queries`, `archive`: what a fitted estimator can be asked; its file;
* `weighted_tokens`: what training minimises where tokens weigh differently;
* `batch`: labelled sequences for objectives, by the kernels of chains or as a factor graph of `markovfield.structured`;
* `training`, `watch`, `objective`, `online`: choosing a solver; early stopping; the batch objective; online solvers;
* `scores_kernel`: scores of tokens from sparse attributes, and posteriors back into the gradient;
* `sums_kernel`, `logs_kernel`: log Z and posteriors in scaled linear space; in log space where that underflows;
* `paths_kernel`: the best path, the n best, and draws;
* `second_kernel`, `online_kernel`: the same for triples of labels; passes of the online solvers;
* `blocks_kernel`: rows of labels, eight numbers at a time (`kernels.products` has small products).

For T tokens, K labels and A attributes of a token, scores take O(T A) rows or pairs, sums and best paths O(T K^2),
second order O(T K^3), the n best O(T K^2 n). Memory for one sequence of first order is O(T K).
"""
