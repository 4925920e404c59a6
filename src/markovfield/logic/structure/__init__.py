"""Clauses of Markov logic from databases (Kok and Domingos 2005).

Files, in reading order: `clauses` (clauses as tuples, one form for all names of variables, how they grow), `counts`
(what a ground atom changes in the number of true groundings, by SQL), `objective` (pseudo-likelihood over cases that
agree, and how it gains by another clause), `search` (the beam), `clause_search` (the method).
"""
