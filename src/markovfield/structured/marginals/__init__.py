"""Marginals of outputs in max-margin training: distributions over them, and their polytope.

* `augmented`: factor graphs with what labels cost, of which a likelihood is a softmax margin;
* `shards`: what solvers by marginals ask of the batches of a problem;
* `polytope`: marginals as sparse equations, for the quadratic program over them.
"""
