"""Moves of single variables and of trees: samples and marginals of any factor graph by Markov chains.

Sources: Murphy 19.21 for the conditionals of Gibbs sampling; Metropolis; replica exchange between temperatures.

In reading order:

* ``gibbs.py``: Gibbs sampling, variable by variable, colour by colour or tree by tree;
* ``metropolis.py``: proposals of another state;
* ``parallel_tempering.py``: replicas at higher temperatures that trade places;
* ``single_site.py``, ``single_site_kernel.py``: conditional distributions in tables, the moves of single variables, and
  what hard zeros keep them from reaching;
* ``gains.py``, ``gains_kernel.py``: the same where factors are many and long, with what each change gains kept at hand;
* ``tree_blocks.py``, ``tree_blocks_kernel.py``: random blocks without a cycle, each drawn exactly.

Cost: a sweep takes some tens of nanoseconds for a variable with a small Markov blanket, whose conditionals are in
tables, and otherwise its factors times its states. Parallel tempering pays that for every replica. How many sweeps are
needed depends on how fast the chains mix.
"""
