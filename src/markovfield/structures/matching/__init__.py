"""Matchings of rows with columns: every row and column has a link at most, or as many as its fertility.

The best is an assignment (`assignment`: `scipy.optimize.linear_sum_assignment`; with fertilities or scores of pairs of
links an integer program by HiGHS, proven optimal), the n best come by partitioning (Murty 1968). Sums are permanents:
exact by a dynamic program over how often each column of the shorter side is taken (`permanent_kernel`, ``m n 2^n``), as
long as its tables fit; above that the Bethe approximation (`bethe_kernel`), which for matchings is a lower bound
(Gurvits 2011; Vontobel 2013; Straszak and Vishnoi 2019 with unmatched rows and columns), and its maximising
pseudo-marginals are the derivatives of it. Upper bounds: a product over rows, after columns were scaled; for perfect
matchings also ``2^(n/2)`` times Bethe (Anari and Rezaei 2019). The answer says which it is.

Read `matching` (the form), `family`, `assignment`, `sums`, `permanent_kernel`, `bethe_kernel`; `quadratic` has
scores of pairs of links, whose sums go through all matchings.
"""
