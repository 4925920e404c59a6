"""
1. A network: from a question to a decision
===========================================

A Bayesian network is written down, asked, checked against what it rests on, used to decide what to do, and in the end
learnt from data with holes. It needs the extras ``plot`` and ``frames``; every step is a line or two.

In a notebook the last line of a cell shows itself: a model as a drawing, an answer as a table.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Write it down
# -------------
#
# A small bakery asks why its bread did not rise. The yeast may be old, the room may be cold; either keeps the dough
# flat, and a cold room also leaves the thermostat's light on. Variables have names, and so have their states; a table
# has one axis for each parent, and the variable's own last, so that rows sum to one.

net = mf.BayesianNetwork(
    {"yeast": ["fresh", "old"], "room": ["warm", "cold"], "dough": ["rises", "flat"], "light": ["off", "on"]}
)
net.add_cpt("yeast", [], [0.9, 0.1])
net.add_cpt("room", [], [0.7, 0.3])
net.add_cpt("dough", ["yeast", "room"], [[[0.97, 0.03], [0.7, 0.3]], [[0.3, 0.7], [0.05, 0.95]]])
net.add_cpt("light", ["room"], [[0.95, 0.05], [0.1, 0.9]])
net

# %%
# A mistake is an error at once, and says what was expected:

try:
    net.add_cpt("light", ["room"], [[0.95, 0.05], [0.1, 0.8]])
except mf.ModelError as error:
    print(error)

# %%
# Ask it
# ------
#
# What is seen goes into a dict. The dough is flat: which is to blame?

answer = mf.marginals(net, {"dough": "flat"})
answer

# %%
# The answer says how it was found and how far it can be trusted. It is exact here, because the network is small;
# where exact inference does not fit, ``auto`` takes something else, and the word changes.

print(answer.method, answer.guarantee)
print(f"probability of what was seen: {np.exp(answer.log_partition):.3f}")

# %%
# The light is off, so the room is warm, most likely, and the yeast takes the blame. Had the light been on, the cold
# room would have explained the flat dough, and the yeast would look better.

for light in ("off", "on"):
    found = mf.query(net, "yeast", {"dough": "flat", "light": light})
    print(f"light {light}: the yeast is old with probability {found.values[1]:.2f}")

# %%
# The same as a picture: before anything is seen, and after.

mf.plot.posteriors(net, {"dough": "flat", "light": "off"}, prior=mf.marginals(net))

# %%
# Why is that so, and how sure is it?
# -----------------------------------
#
# The graph alone tells what can matter. Yeast and room are independent until somebody looks at the dough:

graph = net.to_networkx()
print(mf.graphs.d_separated(graph, "yeast", "light"), mf.graphs.d_separated(graph, "yeast", "light", given="dough"))
print(mf.graphs.active_path(graph, "yeast", "light", given="dough"))

# %%
# Every number in the tables was somebody's guess. Which of them does the conclusion hang on? The derivative of the
# posterior by each entry, largest first; and how far one entry may be wrong before the conclusion changes.

seen = {"dough": "flat", "light": "off"}
sensitivity = mf.analysis.sensitivity(net, {"yeast": "old"}, seen)
for entry in sensitivity.top(3):
    print(f"{entry.derivative:6.2f}  P({entry.variable} = {entry.state} | {entry.given}) = {entry.value:.2f}")

# %%
sensitivity.curve("yeast", "old").plot()

# %%
# What to look at next, what to do
# --------------------------------
#
# Before the light was looked at: which observation tells most about the yeast, and what is it worth? Throwing the
# yeast away costs 7; baking with old yeast costs 20.

print(mf.analysis.mutual_information(net, "yeast", evidence={"dough": "flat"}))
gains = [[0, -20], [-7, -7]]  # [keep or throw away, fresh or old]
print(mf.analysis.value_of_information(net, "yeast", gains, evidence={"dough": "flat"}))
print(mf.decode(net, seen, loss={"yeast": [[0, 7], [20, 7]]})["yeast"])

# %%
# Doing is not seeing. A light that somebody switched on by hand says nothing about the room; ``do`` cuts it off from
# its cause.

print(f"seen on:     {mf.probability(net, {'room': 'cold'}, {'light': 'on'}):.2f}")
print(f"switched on: {mf.probability(net.do({'light': 'on'}), {'room': 'cold'}):.2f}")

# %%
# Learn its numbers
# -----------------
#
# Two months of records, in which nobody wrote down the room on every other day. The rows with holes count as well: EM
# sums over what is missing. The arcs are kept, the tables are learnt.

records = mf.sample(net, 400, rng=0).to_frame()
records.loc[::2, "room"] = None
bare = mf.BayesianNetwork({v: net.states(v) for v in net})
for v in net:
    bare.set_parents(v, net.parents(v))
learnt = mf.fit(bare, records, rng=0)
print(learnt.fit_report.method, learnt.fit_report.missing)
print(np.round(learnt.cpt("light"), 2).tolist())
learnt.fit_report.plot()

# %%
# Its arcs can be learnt, too, from complete rows. Data cannot tell all directions: those without an arrow can be
# turned around without changing what the graph states.

structure = mf.learn_structure(mf.sample(net, 5000, rng=1))
print(structure.cpdag)

# %%
# A frame of new cases is answered row by row.

new = mf.sample(net, 4, rng=2).to_frame().drop(columns="yeast")
mf.predict(learnt, new, targets="yeast")

# %%
# Keep it
# -------
#
# ``mf.save`` keeps anything exactly, ``mf.write`` writes what other programs read. The command line asks the same
# questions: ``markovfield query bakery.bif --target yeast --evidence dough=flat``, and ``markovfield explore
# bakery.bif`` opens it in the browser.

with TemporaryDirectory() as folder:
    path = Path(folder) / "bakery.bif"
    mf.write(learnt, path)
    print(mf.read(path))
plt.show()
