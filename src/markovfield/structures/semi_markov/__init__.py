"""Semi-Markov models: sequences cut into labelled segments of bounded length (Sarawagi and Cohen 2004).

A segmentation scores ``start[label]`` of its first segment, ``segments[start, length - 1, label]`` of each,
``transitions[before, after]`` of neighbours and ``end[label]`` of its last. With segments of length one this is the
linear chain (Murphy 19.6.1). Sums, maxima and draws of a sequence of n positions take ``n (L K + K^2)`` steps for K
labels and segments of at most L positions, and memory for ``n K`` numbers beside the scores.

Reading order: `semi_markov_kernel`, `family` (many sequences), `semi_markov` (one, with its scores).
"""
