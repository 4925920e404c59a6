"""Factor graphs: the compiled form of every discrete model, and the kinds of factor in it.

A factor graph is a frozen structure and one pool of log-potentials. A factor is a plain table, or structured: a clause,
a parity, a count of true literals (cardinality), a distance of two states (Potts, truncated linear and quadratic) or a
noisy-max, whose few cells mean a much larger table. Sources: Murphy 19.3 (potentials, partition function), 19.4.5
(ground clauses); Felzenszwalb and Huttenlocher for the envelopes of distances.

Files, in reading order:

* `kinds_kernel`: the kinds as numbers, and what each reads from the pool;
* `structure`: scopes, offsets and strides; `remembered`: what is derived from a structure, worked out once;
* `lattice`: the lattice that its variables are the sites of, as its model tells it;
* `factor_graph`: a structure with numbers: scores, other tables on the same structure;
* `factor_kinds`: literals, caps and cells of structured factors, and the checks of a structure;
* `conditional_marks`: which factors are conditional distributions, checked against their numbers;
* `to_tables`: structured factors in plain tables with auxiliary variables, for exact methods;
* `dispatch_kernel`: messages and expected statistics of structured factors, by kind;
* `literals_kernel`, `distance_kernel`, `noisy_max_kernel`: the same for each family of kinds;
* `oracles_kernel`: the best configuration of a single factor, given scores of its variables' states.

A plain table costs its cells. Messages of structured factors are linear in the arity or in the states for most kinds
(the table is in `dispatch_kernel`). In plain tables, a factor of k literals is O(k) small tables, of O(c^2) cells for
counts with a cap c; a noisy-max of k parents has 2k auxiliary variables of K states and one constant of K^3 cells.
"""
