"""Lifted inference: what is alike in a model is computed once.

Sources: Kersting, Ahmadi and Natarajan (2009), counting belief propagation; Singla and Domingos (2008).

Networks grounded from relations repeat themselves: individuals of whom nothing special is known have the same factors.
Files in reading order: `colours` (colour refinement: which variables and factors no message could tell apart),
`lifted_belief_propagation` (messages between colours in place of variables), `components` (connected components that
are the same but for names), `lifted_components` (each kind of component solved once, exactly).

Cost: refining sorts all edges a few times; what follows grows with the number of colours or kinds of components.
"""
