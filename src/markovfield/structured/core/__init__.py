"""The protocol of conditional models: operators, batches, models.

* `operators`: how weights become log-potentials, and counts become features (Murphy 19.75);
* `batch`: examples as one factor graph, with the operator and the labels;
* `model`: what every model says of its inputs and outputs;
* `conditional`: what models of graphs and of structures share; `form_model`, `form_batch`: those of structures;
* `inference`: which method infers where nobody says;
* `reading`, `labels`: checks of inputs and of labels that name the example.
"""
