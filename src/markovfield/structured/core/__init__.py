"""The protocol of conditional models: operators, batches, models.

* `operators`: how weights become log-potentials, and counts become features (Murphy 19.75);
* `batch`: examples as one factor graph, with the operator and the labels;
* `model`: what every model says of its inputs and outputs;
* `reading`: checks of inputs that name the example.
"""
