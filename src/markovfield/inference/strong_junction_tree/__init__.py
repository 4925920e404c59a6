"""Exact inference in fields of discrete and real-valued variables, by a tree with a strong root (Lauritzen 1992).

Real-valued variables are integrated before any discrete one is summed, so that every message on the way up is exact:
the probabilities of discrete variables are, and so is log Z. On the way down a sum over discrete variables turns a
mixture into one Gaussian with the same mean and covariance; those are exact for all variables, the shape is not, and
answers say of which variables (``mixture``). The mixtures themselves can be asked for.

Files, in reading order:

* `potential`: tables of canonical forms, a row of a batch first: products, integrals, sums, maxima;
* `plan`: the order, real-valued variables first (`markovfield.graphs.elimination`), and what it costs;
* `passes`: up, and down by moments, which needs no division; draws and maximisers on the way down;
* `evidence`: states, likelihoods, numbers, numbers seen with noise;
* `strong_junction_tree`: the method; `answers`; `verbs`.

A clique of d joint states of its discrete variables and c real-valued ones takes d c^2 operations and numbers, and in
the worst case there is one that holds all discrete variables next to a connected set of real-valued ones.
"""
