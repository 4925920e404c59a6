"""Marginals of outputs in max-margin training: distributions over them, and their polytope.

* `augmented`: factor graphs with what labels cost, of which a likelihood is a softmax margin;
* `shards`: what solvers by marginals ask of the batches of a problem;
* `polytope`: marginals as sparse equations, for the quadratic program over them;
* `relaxed`: points of the local polytope as outputs, by linear programs, an oracle that overgenerates;
* `dual_losses`, `local_messages_kernel`: hinges bounded by messages between factors and variables, which stay
  between calls.
"""
