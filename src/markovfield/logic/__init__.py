"""Markov logic: weighted formulas of first-order logic as templates of Markov networks.

Sources: Murphy 19.4.5; Richardson and Domingos (2006). Grounding by a database: Niu, Re, Doan and Shavlik (2011).

Files, in reading order: `language/` (formulas, read from text or built), `grounding/` (formulas and evidence to a
factor graph), `world` (the ground network, which all verbs take), `markov_logic` (the program), `lazy_network` (a
network that is not grounded yet), `cutting_planes/` (its likeliest world), `learning` (weights), `structure/`
(clauses), `evaluation` (cross-validation).
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
