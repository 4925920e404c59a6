"""Structural SVMs as a problem of planes, and its solvers, which know no models (Murphy 19.7; Teo et al. 2010).

Minimise ``1/2 |w|^2 + sum_i C_i h_i(w)`` where the hinge of block i is ``h_i(w) = max_y [loss(y) - <w, a_iy>]``, and
``a_iy = features of the truth - features of y``. Nothing but an *oracle* is known of the outputs y: at some w it gives
for each block the plane ``(a, loss)`` that is highest, by loss-augmented decoding. The dual is a maximum over masses of
planes; it never is above the primal, and the gap between both says how far a solver is from the end.

In reading order: `problem` (planes, what a problem says, where a solver ends), `restraint` (an l1, and weights that are
not negative), `working_set`, `working_set_kernel` (planes that are kept, and ascent of the dual over them), then a file
for each solver:

* `block_frank_wolfe`: a few blocks at a time, the dual rising at every step (Lacoste-Julien et al. 2013);
* `frank_wolfe`: all blocks at a time, with nothing kept;
* `cutting_plane`: all blocks at a time, and the dual over what is kept to its end: n slacks (Murphy algorithm 19.3)
  or one (19.4);
* `subgradient`: steps along subgradients that shrink as 1 / t (Ratliff et al. 2007; Shalev-Shwartz et al. 2007);
* `marginal_problem`, what distributions over outputs expect, and solvers by them: `exponentiated_gradient` (Collins et
  al. 2008), `dual_extragradient` (Taskar et al. 2006), `excessive_gap` (Zhang et al. 2011);
* `multiclass`, `multiclass_kernel`: one label for each example, all classes at a time (Crammer and Singer 2001), with
  weights or with inner products of a kernel in blocks;
* `kernel_frank_wolfe` and `mass_steps_kernel`: coefficients of tokens and labels in place of weights, for chains and
  graphs (`kernel_expansion`);
* `dual_loss`: inference and learning interleaved (Meshi et al. 2010);
* `max_margin_network`: all of it as one quadratic program over marginals, the check on all others (Taskar et al. 2003);
* `perceptron`: Collins' perceptron (2002), averaged, and its margin-infused relative (Crammer et al. 2006).

Cost of a pass: one call of the oracle for each block; the rest is linear in the numbers that are kept of the planes.
"""
