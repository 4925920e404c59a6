"""Models of discrete and real-valued variables together; both compile to a `MixedField`.

Files, in reading order:

* `conditional_gaussian`: `ConditionalGaussianNetwork`: discrete parents choose the regressions of real-valued children;
* `mixed_graphical_model`: `MixedGraphicalModel`: the undirected pairwise model, learned from data frames with both.

Sources: Lauritzen (1992) for inference (`markovfield.inference.strong_junction_tree`), Lee and Hastie (2013) for the
pairwise model.
"""
