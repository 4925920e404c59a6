"""A grammar as a conditional random field: weights of rules, and of features of spans (Murphy 19.6.2.4).

Read `symbol_scores` (from labels of spans to symbols of a chart), `grammar_model` (what is learned), `grammar_crf` (the
estimator).
"""
