"""Dependency parsing: for every word of a sentence its head, and what it is to it.

Sources: McDonald, Crammer and Pereira (2005), McDonald, Pereira, Ribarov and Hajič (2005) for arc-factored models and
their features; Koo, Globerson, Carreras and Collins (2007) for their likelihood by the matrix-tree theorem; Nivre and
Nilsson (2005) for projective trees from others. Murphy 19.6.2.4 has the idea, a conditional random field on parses.

Files, in reading order:

* `trees`: sentences and trees, checked; arcs that cross;
* `arc_features`, `arc_features_kernel`: what an arc is known by, found in flat arrays for all arcs of many sentences;
* `arc_model`, `dependency_parser`: what is learned, and the estimator;
* `scoring`: heads and labels that are right, with punctuation and without.

The score of a tree is the sum over its arcs. A sentence of n words takes n^3 operations for sums over all trees and n^2
times the features of an arc for its scores.
"""

from markovfield._exports import lazy

__getattr__, __dir__ = lazy(__name__)
