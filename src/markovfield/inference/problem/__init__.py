"""A factor graph made ready for inference: in plain tables, with evidence absorbed and impossible states removed.

Sources: Caetano 3 for separation; generalised arc consistency on hard zeros; Murphy 19.17, 19.22 for Ising and Potts
models.

In reading order:

* ``problem.py``: what methods solve, and how it is made;
* ``reduction.py``, ``reduction_kernel.py``: fewer states, axes and factors, and the way back;
* ``domains_kernel.py``: evidence, hard zeros, barren variables; ``separation_kernel.py``: what a query depends on;
* ``potentials_kernel.py``: log-potentials and evidence in linear space;
* ``feasible.py``, ``feasible_kernel.py``: assignments that no hard zero rules out;
* ``pairwise.py``: unary and pairwise factors, their incidence, and the lattice, once for all methods;
* ``pairs.py``: problems of single variables and pairs, for cuts; ``merged_pairs.py``: tables on the same two variables
  as one;
* ``spins.py``: pairwise problems that are Ising or Potts models, as couplings and fields.

Cost: linear in the axes and, for each look at a factor with hard zeros, at most its arity times its cells; what depends
on the structure or the tables alone is kept with them.
"""
