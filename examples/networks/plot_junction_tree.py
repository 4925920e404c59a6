"""
Junction trees
==============

Exact inference runs on a tree of cliques. The largest of them, less one, is the width: cost grows exponentially with
it, and with nothing else.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# The tree of a small network. Each ellipse is a clique; what two neighbours share, their separator, is on the edge.

net = mf.datasets.diagnosis_network()
mf.plot.junction_tree(net)

# %%
# Evidence is absorbed before the tree is built, so the tree of the remaining variables is never wider.

mf.plot.junction_tree(net, evidence={"weather": "freezing", "coil": "iced"})

# %%
# The elimination order decides. A bad one makes large cliques of the same model.

order = ("weather", "heating", "refrigerant", "coil", "compressor", "airflow")
order += tuple(v for v in net.variables if v not in order)
mf.plot.junction_tree(net, method=mf.methods.JunctionTree(order=order), title="A bad order")

# %%
# A lattice of 3 by 6 pixels ...

lattice = mf.datasets.ising_denoiser(np.zeros((3, 6)))
mf.plot.graph(lattice, kind="primal")

# %%
# ... has a tree that is close to a path, and a width close to its smaller side.

mf.plot.junction_tree(lattice)

plt.show()
