"""Rankings: which item stands at which position, all of them or the first k; or which k items are the first, as a set.

A ranking with scores of items at positions is a matching of items with positions, so that what `matching` has serves:
the best is an assignment (and a sort, where one is enough: `order`), the n best come by partitioning, sums are
permanents. They are exact where the tables of positions fit: ``n k 2^k`` for the first k of n items in order, ``n k``
for sets of k, which are elementary symmetric polynomials. Above that, log Z is Bethe's lower bound with an upper bound
beside it, and draws are refused. `PlackettLuce` is another distribution of rankings, which chooses the first, then the
second of those left, and so on: it is normalised by itself, and its draws are exact at any size.

Read `ranking` (the form), `family`, `sums`, `order`, `plackett_luce`.
"""
