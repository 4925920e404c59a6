"""Elimination orders: in which order to eliminate variables so that the cliques made have few states in all.

The cost that is minimised is the number of states of all maximal cliques together, the size of the junction tree; the
best order is NP-hard to find. Sources: safe reductions of Bodlaender, Koster and van den Eijkhof (2005), the quotient
graph of Amestoy, Davis and Duff (1996); elimination itself is in Caetano 5 and Sudderth 24.

Files, in reading order:

* `orders_kernel`: the functions called from Python, and the phases of a search in their order;
* `sparse_kernel`: the primal graph, leaves of trees, components, symbolic elimination, all in linear time;
* `reduce_kernel`: simplicial and almost simplicial vertices, eliminated where that is safe;
* `greedy_kernel`: a greedy run on a dense matrix of bits;
* `rules_kernel`: the portfolio of greedy rules, and noisy rules for the search;
* `improve_kernel`: local search: small connected parts of the elimination tree are ordered anew;
* `large_kernel`: components of more than 8192 vertices: a breadth-first sweep, and minimum weight on a quotient graph.

A greedy run on m vertices takes m^2 / 64 words and at least that much time for each neighbour made; large components
take memory linear in their cliques. Search goes on for as long as its caller allows; work is counted and not timed, so
that the same call gives the same order on every machine.
"""
