"""What sequence models have in common for those who ask them.

* `queries`: labels, probabilities and draws, under the same names and in the same shapes;
* `weights_report`: weights by name, and a report of the strongest;
* `crfsuite`: the settings and the tagger of sklearn-crfsuite.
"""
