"""Alignments without crossings of two sequences, and CTC's of frames to labels.

`MonotoneAlignment` (rows i, columns j; links never cross) is the pair hidden Markov model with affine gaps (Durbin et
al. 1998, chapter 4; Gotoh 1982). Between two links the rows without a link come first, then the columns, so that an
alignment is one path, and there are ``C(m + n, m)`` of them. With M, X, Y for paths that end with a link, in a gap of
rows, in a gap of columns: ``M(i, j) = s(i, j) + log sum exp of M, X, Y at (i - 1, j - 1)``, ``X(i, j)`` from M and X at
(i - 1, j), ``Y(i, j)`` from all three at (i, j - 1). What lies before the first link and after the last is summed in
closed form, which gives free ends (local and semi-global alignment) for nothing.

`CTC` (Graves et al. 2006): frames take a label or a blank; runs of a label are one, blanks are dropped. A path goes
through labels with blanks between them, and may leave out the blank between two labels that differ.

Read `monotone` (the form), `family`, `alignment_kernel`, `choice`, `choice_family` (one of several pairs); then `ctc`,
`ctc_family`, `ctc_kernel`, `ctc_linear_kernel` (numbers instead of logs), `free_paths` (any labels), `reading` (the
best of them). Counts are had by sending probability back along the steps, in which each step has the share that it had
in the sum. Cost: m n operations
(with a band of width b, m b), T (2 L + 1) for CTC; memory the same.
"""
