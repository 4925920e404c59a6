"""Segments of sequences, labelled as wholes: the semi-Markov conditional random field (Sarawagi and Cohen 2004).

A chain of labels sees one token at a time; a segment may be asked how long it is, what it says from end to end, how it
starts and how it ends. Reading order: `strings` (what segments say, as numbers), `operators` (from weights of tokens to
scores of segments), `segment_model` (what is learned), `semi_markov_crf` (the estimator). Scores of all segments of at
most L tokens take T L K numbers for T tokens and K labels; there is no Python object for each.
"""
