"""Strings as outputs: which word was meant by a misspelt one, and what frames of features spell.

`EditModel` learns what edits cost from pairs of strings whose alignment nobody gives (McCallum, Bellare and Pereira
2005; Ristad and Yianilos 1998): a word of a lexicon is as probable as all its alignments with the string together.
`CTCLabeller` learns to label frames from strings of labels alone (Graves et al. 2006).

Reading order: `lexicon` (words, and candidates among them), `edit_features`, `string_edits` (what is learned),
`edit_model` (the estimator); then `frame_labels` and `ctc_labeller`.
"""
