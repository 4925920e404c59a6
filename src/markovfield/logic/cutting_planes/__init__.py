"""Cutting-plane inference: only those ground formulas that some good world violates are ever written down.

Sources: Riedel (2008); as integer programs with aggregated counts, Noessner, Niepert and Stuckenschmidt (2013).

A world in which nothing is known to be true loses the weights of some ground formulas; those are grounded, a best world
of them alone is found, and so on until a world loses nothing that was not grounded. That world is a best one of all, as
the others cannot lose less than nothing; and at every step the best score of what is grounded bounds the best score.

Files in reading order: `violated` (what a world loses, asked of the database), `active` (what is grounded so far, as a
factor graph), `clause_program` (its best world by an integer program), `cutting_plane_inference` (the method).
"""
