"""Belief propagation: marginals, log Z and assignments by messages between factors and variables.

Sources: Andres 6.36 to 6.40; Caetano 5; Elidan, McGraw and Koller (2006) for the residual schedule. Two passes are
exact on forests; on other graphs messages are sent until they converge, and log Z is the Bethe value, no bound.

In reading order:

* ``belief_propagation.py``: the method and its settings; ``compiled.py``: one layout for many rows of evidence;
* ``forest.py``, ``forest_kernel.py``: forests, in log space, towards the roots and back;
* ``native_forest.py``: forests with large cardinality potentials, by messages of their own;
* ``edges_kernel.py``: edges, and forests of them; ``log_messages_kernel.py``: single messages in log space, which both
  kinds of graphs use;
* ``layout.py``: what is known of a graph with cycles before the first message: components, unary potentials, ranges;
* ``loopy.py``: messages until they converge; ``beliefs.py``, ``beliefs_kernel.py``: what is read off them;
* ``tables_kernel.py``, ``sweeps_kernel.py``: messages and sweeps in scaled linear space;
* ``logs_kernel.py``: the same in log space, for components in which products would vanish;
* ``structured_kernel.py``: factors without a table; ``residual_kernel.py``: the residual schedule;
* ``lattice.py``, ``lattice_kernel.py``: binary lattices, a plane of ratios for each direction;
* ``batch_kernel.py``: many rows of evidence side by side.

Cost: a sweep takes time in proportion to the cells of all tables (structured factors cost what their kind says), memory
is two messages for each edge. How many sweeps it takes depends on the model; there may be no end.
"""
