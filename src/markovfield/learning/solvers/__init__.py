"""Solvers of smooth and penalised objectives; they know no models.

Sources: Andres 002, algorithm 1 (steepest descent with a line search); Chen, Wang and Zhou (2014) for the recursion of
L-BFGS; Andrew and Gao (2007) for OWL-QN.

Files, in reading order:

* `quasi_newton`, `history_products_kernel`: L-BFGS and OWL-QN.

An iteration costs an evaluation of the objective and a few passes over the vectors that it remembers.
"""
