"""Questions about a model that are answered by asking the verbs: each file is one of them.

Sources: Sudderth 24 for the generalised distributive law (semirings), Murphy 19.7 and 19.7.3.1 for loss-augmented
decoding.

In reading order:

* ``query.py``: the posterior of a few variables jointly, on what is left of the model once barren and separated
  variables are gone;
* ``information.py``: mutual information with a target, and the value of information for a decision;
* ``sensitivity.py``: how a probability changes with single entries of a network's tables;
* ``aggregate.py``: one elimination or junction tree read in any semiring;
* ``augmented.py``: decoding the same model again and again with other unary scores, and diverse good assignments;
* ``loss_counts.py``: expected counts weighted by a loss, for learning that minimises it.

Cost: a query is one run of the method on the reduced model; mutual information takes a run of all marginals for each
state of the target; sensitivity takes two passes of a junction tree for all entries of all tables; a decoding of an
`AugmentedDecoder` reuses every plan.
"""
