"""
Diagnosis with a Bayesian network
=================================

A heat pump leaves the room cold and rattles. Which part is to blame? And what changes when a warning light comes on?
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# The network has twelve variables with named states: the weather and four parts that may fail, three things that
# happen inside, four that the owner notices.

net = mf.datasets.diagnosis_network()
mf.plot.graph(net)

# %%
# Before anything is known, every part is probably fine. A cold room and a rattling noise point to the compressor.

parts = ["filter", "refrigerant", "compressor", "thermostat"]
complaint = {"room": "cold", "noise": "rattling"}
before = mf.marginals(net)
after = mf.marginals(net, evidence=complaint)
mf.plot.marginals(after, parts, prior=before)

# %%
# Then the light comes on, which is what it does when refrigerant is low. That also explains the cold room and, by way
# of an iced coil, the noise: the compressor is *explained away*, although nothing new was seen of it.

lit = mf.marginals(net, evidence=complaint | {"light": "on"})
mf.plot.marginals(lit, parts, prior=after, labels=("with the light", "without"), title="Explaining away")

# %%
# The three likeliest states of the four parts together, everything else summed out (marginal MAP). The answer says
# how far it can be trusted.

best = mf.decode(net, evidence=complaint | {"light": "on"}, variables=parts, n_best=3)
for solution in best.n_best:
    print(f"{np.exp(solution.score - lit.log_partition):.3f}", solution.assignment)
print("guarantee:", best.guarantee, "by", best.method)

plt.show()
