"""Constants of a model taken out before it is solved, so that large or small scores keep their digits.

A constant in a table changes no probability and no best assignment, but at log-potentials around 10^9 a float knows
seven digits after the point. So methods see a view of the graph without its constants, and answers get them back.

In reading order:

* ``scale.py``: how large the scores are, what they are multiples of, what rounding can make of their sums;
* ``decoding.py``: the view that decoders see, each table less its best;
* ``sums.py``: the view that whoever sums sees, and log Z of the model again;
* ``cancelling.py``: scores that cancel between factors, moved to unary tables and added up exactly;
* ``extremes_kernel.py``: largest and smallest log-potential of every factor.

Cost: linear in the cells that factors read, once per graph; tied tables in a row are looked at once.
"""
