"""
Posteriors on the graph
=======================

What evidence does to a network is best seen on the network: every node is a panel with the probabilities of its states.
"""

import matplotlib.pyplot as plt

import markovfield as mf

# %%
# A heat pump before anything is known of it.

net = mf.datasets.diagnosis_network()
before = mf.marginals(net)
mf.plot.posteriors(net, before)

# %%
# The room is cold and the pump rattles. What was seen is orange; the upright lines mark the probabilities before.

seen = {"room": "cold", "noise": "rattling"}
mf.plot.posteriors(net, seen, prior=before)

# %%
# Only some of the variables, with the arcs among them.

parts = ["filter", "refrigerant", "coil", "compressor", "heating", "light"]
mf.plot.posteriors(net, seen | {"light": "on"}, variables=parts, prior=before, title="With the light on")

plt.show()
