"""Feature induction: random fields over words that grow one pattern at a time.

Sources: Murphy 19.5.6 (19.52 to 19.54); Della Pietra, Della Pietra and Lafferty (1997).

Files, in reading order:

* `patterns`: alphabets, atoms (characters and classes of them), and patterns, which are rows of atoms;
* `corpus`: words as numbers, and where patterns occur in them;
* `automaton`: one deterministic automaton that sees every occurrence of all patterns;
* `word_field`: the distribution itself; its expectations are exact, by a dynamic program over the automaton;
* `gains`: what a further pattern is worth, by samples and exactly;
* `candidates`: which patterns could come next;
* `induction`: the greedy growth, `FeatureInduction`.

An evaluation of the likelihood with its gradient takes states of the automaton x classes of characters x the longest
word operations.
"""
