"""What all learning shares: data as tables of state numbers, counts, and the answers of the two verbs.

Files, in reading order:

* `data`: columns of any library as one table of state numbers (`markovfield.columns` reads one column);
* `rows`: arrays in a model's own shape as rows of state numbers;
* `missing`: what data lack, and warnings where that looks like a mistake;
* `counting`, `counting_kernel`: joint counts of families, many in one pass over the rows;
* `report`: what a fitted model says of how it was fitted; `learned_graph`, `learned_structure`: the answers of
  ``learn_structure``; `penalties`: graphs along a path of penalties, and the choice among them.

Counting costs rows times the sizes of the families.
"""
