"""Hidden Markov models: likelihoods, posteriors, best paths, filtering and learning (Murphy 17).

Files, in reading order:

* `hmm`: the estimator `HMM`;
* `emissions`, `gaussian`: what states show: symbols with probabilities, or vectors with Gaussian densities;
* `model`: a model with its numbers, and every question about sequences;
* `training`: counting where states are known, Baum-Welch where they are not (Murphy 17.5);
* `filtering`: a stream watched as it comes: filtering, prediction, fixed-lag smoothing (Murphy 17.4);
* `hidden_markov_kernel`: sums, posteriors and best paths of many sequences in scaled linear space;
* `archive`: a fitted model as something for JSON and vectors, and back.

T observations and K states take O(T K^2) for sums, posteriors and best paths, and O(T K) memory for one sequence;
Gaussian densities in d dimensions add O(T K d^2). An iteration of Baum-Welch is one such pass. Sequences in which a
message would leave the range of floats are summed again in log space, with the kernels of `sequence.chain`.
"""
