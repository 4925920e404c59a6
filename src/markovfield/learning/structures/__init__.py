"""Which variables depend on which: the methods of ``learn_structure``.

Sources: Chow and Liu (1968), the PC algorithm of Spirtes and Glymour.

Files, in reading order:

* `scores`, `local_scores`, `family_scores_kernel`: scores of families, counted together and remembered;
* `hill_climbing`, `climber`, `chow_liu`, `pc`: directed structures.

A move of hill climbing scores the families of at most two children anew.
"""
