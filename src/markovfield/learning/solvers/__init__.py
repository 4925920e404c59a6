"""Solvers of smooth, penalised and noisy objectives; they know no models.

Sources: Andres 002, algorithm 1 (steepest descent with a line search); Chen, Wang and Zhou (2014) for the recursion of
L-BFGS; Andrew and Gao (2007) for OWL-QN; Beck and Teboulle (2009) for accelerated proximal steps.

Files, in reading order:

* `minimum`, `penalty`, `checkpoint`: what is answered, what is added to an objective, what is written to go on from;
* `solve`: the verb; `problem` is what it hands to a solver;
* `lbfgs`, `quasi_newton`, `history_products_kernel`: L-BFGS and OWL-QN;
* `steepest_descent`, `proximal_gradient`: first-order methods, also for norms of groups;
* `stochastic`: gradient descent on noisy gradients, AdaGrad and Adam.

An iteration costs an evaluation of the objective or two, and a few passes over vectors.
"""
