"""Dual decomposition: an upper bound on the best score, and assignments, from subproblems that are easy by themselves.

Sources: Sudderth 24; AD3 (Martins et al. 2015). Every factor (or forest) is maximised over copies of its variables, and
multipliers draw the copies together; the minimum of the bound is the optimum of the local relaxation.

In reading order:

* ``dual_decomposition.py``: the method, the alternating direction method of multipliers and subgradients;
* ``subproblems.py``: factors, or forests that share them out, as subproblems;
* ``dual_decomposition_kernel.py``: the best configuration of a factor, and its quadratic program by an active set.

Cost: an iteration looks at the cells of all tables; clauses, cardinality potentials and parities
cost the sorting of their variables. Subgradients have cheaper iterations and need far more of them.
"""
