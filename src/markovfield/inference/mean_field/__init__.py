"""Mean field: a lower bound on log Z, and marginals, from distributions that factorise over clusters of variables.

Every variable is a cluster by itself (naive mean field), or clusters are linear chains or trees within which inference
is exact. One cluster after the other takes its best distribution given all others, so the bound never falls.

In reading order:

* ``mean_field.py``: the method, its starts and its answer;
* ``clusters.py``: which clusters, and how factors reach into them;
* ``clusters_kernel.py``: growing, joining and rooting clusters that are trees;
* ``mean_field_kernel.py``: updates, the bound and expected counts.

Cost: a sweep takes the cells of each factor once for each cluster that it reaches into.
"""
