"""Structural SVMs of linear chains, by the kernels of chains.

* `worst_paths_kernel`: loss-augmented Viterbi for many sequences in one call, feature differences of paths, and the
  dynamic program that counts for losses of counts;
* `decoder`: these as a decoder of `markovfield.structured.oracles`, and shards of a batch;
* `kernel_chain`: chains whose tokens are scored by a kernel;
* `chain_ssvm`: the estimator.
"""
