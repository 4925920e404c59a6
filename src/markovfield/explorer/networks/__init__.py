"""What the page of discrete networks asks of the library; variables and states go by number, names are for showing.

* `network`: the model with its plans, and evidence as the browser says it;
* `shown`: names as text of one line;
* `posteriors`: marginals with their guarantee, contributions of evidence, its conflict;
* `apart`: boxes of a drawing that do not lie on each other;
* `structure`: drawings, Markov blankets, separation, moral graph, junction tree, elimination step by step;
* `separation`: why two sets are separated, or by which paths they are not, in words;
* `studies`: best assignments, what to observe, sensitivity, what a verb would do;
* `messages`: belief propagation step by step on small models;
* `exports`: evidence as code, pictures, a report as one file.
"""
