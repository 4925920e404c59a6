"""
Bounds that close in on log Z
=============================

A lattice with couplings of both signs has no exact answer that is cheap once it is large. Mini-buckets bound its log
partition function from both sides, and tighten as ``i_bound`` grows; tree-reweighted messages bound it from above, mean
field from below, and belief propagation guesses without a bound. On this small lattice the true value is known.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

side, rng = 10, np.random.default_rng(0)
net = mf.MarkovNetwork(dict.fromkeys(range(side * side), 2))
for v in range(side * side):
    net.add_factor([v], log_table=rng.uniform(-0.25, 0.25, 2))
for v in range(side * side):
    for other in ([v + 1] if v % side < side - 1 else []) + ([v + side] if v + side < side * side else []):
        w = rng.uniform(-1.5, 1.5)
        net.add_factor([v, other], log_table=[[w, -w], [-w, w]])

exact = float(mf.log_partition(net, method="junction_tree"))
warnings.filterwarnings("ignore", message=".*did not converge.*")
widths = range(2, 11)
bounds = [mf.log_partition(net, method=mf.methods.MiniBucket(i_bound=i)).log_partition_bounds for i in widths]
upper = float(mf.log_partition(net, method="tree_reweighted"))
lower = float(mf.log_partition(net, method=mf.methods.MeanField(structure="chains")))
guess = float(mf.log_partition(net, method="generalized_bp"))

# %%
# The gap closes as mini-buckets may hold more variables.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.fill_between(widths, [b[0] for b in bounds], [b[1] for b in bounds], alpha=0.25, label="mini-buckets")
ax.axhline(exact, color="black", linewidth=1, label="exact")
ax.axhline(upper, color="tab:red", linestyle="--", label="tree-reweighted (upper)")
ax.axhline(lower, color="tab:green", linestyle="--", label="mean field on chains (lower)")
ax.axhline(guess, color="tab:orange", linestyle=":", label="generalised BP (no bound)")
ax.set_xlabel("i_bound")
ax.set_ylabel("log Z")
ax.legend(loc="right")

# %%
# Messages on cycles need not converge. The answer says whether they did; damping may help.

answers = {
    "synchronous": mf.marginals(net, method=mf.methods.BeliefPropagation("synchronous", max_iterations=300)),
    "damped": mf.marginals(net, method=mf.methods.BeliefPropagation("synchronous", damping=0.5, max_iterations=300)),
    "sequential": mf.marginals(net, method=mf.methods.BeliefPropagation("sequential", max_iterations=300)),
}
mf.plot.residuals(answers)
print({name: answer.converged for name, answer in answers.items()})
plt.show()
