"""
Pseudo-likelihood, where it works and where it fails
====================================================

Pseudo-likelihood asks each variable to be likely given all others, and never needs log Z (Murphy, 19.5.4). For data
that a model of this kind has made it is as good as maximum likelihood, nearly. Where neighbours tell everything about
each other it learns little else.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# A lattice of spins with a coupling for every edge. Both estimates come closer as one over the root of the rows;
# pseudo-likelihood needs about as many rows, and its steps cost the same on a lattice of any width.

truth = mf.Ising((4, 4), coupling=np.full(24, 0.4))
start = mf.Ising((4, 4), coupling=np.zeros(24))
rows = np.array(mf.sample(truth, 30_000, rng=0).states)
sizes = [100, 300, 1000, 3000, 10_000, 30_000]
errors = {"maximum likelihood": [], "pseudo-likelihood": [], "contrastive divergence, 1 sweep": []}
methods = [
    mf.methods.MaximumLikelihood(),
    mf.methods.PseudoLikelihood(),
    mf.methods.ContrastiveDivergence(k=1, n_steps=400),
]
for n in sizes:
    for name, method in zip(errors, methods, strict=True):
        fitted = mf.fit(start, rows[:n], method=method, rng=1)
        errors[name].append(np.sqrt(np.mean((fitted.coupling - 0.4) ** 2)))

figure, axes = plt.subplots(figsize=(6, 4))
for (name, values), mark in zip(errors.items(), "os^", strict=True):
    axes.loglog(sizes, values, f"{mark}-", label=name)
axes.loglog(
    sizes, errors["maximum likelihood"][0] * np.sqrt(sizes[0] / np.array(sizes)), "k:", label="1 / root of rows"
)
axes.set_xlabel("rows")
axes.set_ylabel("error of a coupling")
axes.legend()
figure.tight_layout()

# %%
# Now the failure. Four sites are all but perfectly alike, and each has a noisy observation. The model shall tell the
# sites from their observations, so that only the sites are made likely, given the observations: one block of all sites
# is the conditional likelihood, a block for each site is pseudo-likelihood. Given its neighbours a site has nothing to
# learn from its own observation: pseudo-likelihood relies on the neighbours and gives the observations half the weight
# they deserve. When the sites are to be found, the neighbours are not there to be relied on.

rng = np.random.default_rng(2)
n = 4000
state = rng.integers(0, 2, n)
data = {i: np.where(rng.random(n) < 0.002, 1 - state, state) for i in range(4)}
data |= {4 + i: np.where(rng.random(n) < 0.3, 1 - state, state) for i in range(4)}
rows = np.stack([data[i] for i in range(8)], axis=1)
train, test = rows[:400], rows[400:]
near = mf.Feature([0, 1], np.eye(2), places=[[1, 2], [2, 3]], name="neighbours")
seen = mf.Feature([0, 4], np.eye(2), places=[[i, i + 4] for i in range(1, 4)], name="observations")
model = mf.LogLinear(dict.fromkeys(range(8), 2), [near, seen])
blocks = {"conditional likelihood": [range(4)], "pseudo-likelihood": [[i] for i in range(4)]}
for name, sites in blocks.items():
    fitted = mf.fit(model, train, method=mf.methods.CompositeLikelihood(sites, l2=1.0))
    evidence = np.concatenate([np.full((len(test), 4), -1), test[:, 4:]], axis=1)
    beliefs = mf.methods.JunctionTree.compile(fitted).run_batch(evidence)[0]
    loss = -np.log(beliefs[np.arange(len(test)), test[:, 0]]).mean()
    weights = dict(zip(fitted.parameter_names, fitted.parameters.round(2).tolist(), strict=True))
    print(f"{name:23} {weights}  log-loss of a site given all observations {loss:.4f}")

# %%
# Data that separate perfectly have no finite optimum. The report says so, and a penalty gives it one.

same = {"A": [0, 0, 1, 1], "B": [0, 0, 1, 1]}
pair = mf.LogLinear({"A": 2, "B": 2}, [mf.Feature(["A", "B"], np.eye(2), name="agree")])
free = mf.fit(pair, same, method="pseudo_likelihood")
print(free.fit_report.converged, "-", free.fit_report.message)
print(mf.fit(pair, same, method=mf.methods.PseudoLikelihood(l2=0.1)).parameters.round(2))
