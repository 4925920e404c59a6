"""Satisfaction of weighted formulas: searching for the best world, and sampling worlds slice by slice.

A factor is *satisfied* where it reads its largest log-potential. That is what a clause of weight w says of its literals
(a negative weight: of their opposites), and it makes sense of any table.

Sources: WalkSAT and MaxWalkSAT (Selman, Kautz and Cohen 1996; Kautz, Selman and Jiang 1997), components searched apart
(Niu, Re, Doan and Shavlik 2011), MC-SAT (Poon and Domingos 2006); Murphy 19.4.5.

In reading order:

* ``max_walk_sat.py``: decoding by repairing one unsatisfied factor after the other;
* ``walk_kernel.py``: the walk within a connected component, and the lists of what is not satisfied;
* ``mc_sat.py``: samples and marginals by slices;
* ``slices.py``: a problem as the constraints that slices are made of;
* ``slice_kernel.py``: a sweep: which constraints hold, what they force, the components that are left;
* ``solutions_kernel.py``: domains of variables, what constraints leave of them, and a draw among all solutions.

Cost: a step of the walk takes the factors of one variable times what they hold; a sweep of slices is linear in the
cells of formulas where components are small or tied, and limited by a budget where they are not.
"""
