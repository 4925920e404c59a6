"""Trees of a grammar with binary and unary rules over words: inside and outside sums (Murphy 19.6.2.4).

The inside sum of a symbol over words i to j is that over rules and splits, ``sum_{rules a -> b c} sum_k w(rule)
inside(b, i, k) inside(c, k, j)``, and then over all chains of unary rules, ``(I - U)^-1`` times that, where U are their
weights. Expected numbers of everything are the derivatives of log Z (Baker 1979; Lari and Young 1990); the best tree
and chain replace sums by maxima, and random trees are drawn from the top down (Goodman 1998).

Read `chart` (the form), `family` (many sentences at once), `rules` (a grammar as arrays, and chains of unary rules),
`inside_kernel`, `outside_kernel`, `descent_kernel`, `ways` (the n best); `dense`, `dense_kernel`, `products_kernel` do
sums of grammars that have most of all rules as products of matrices, `lanes_kernel` those with few phrases. Cost: for n
words n^3 / 6 steps for each pair of children that some rule has, and n^2 / 2 for each rule; memory n^2 symbols.
"""
