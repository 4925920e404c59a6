"""
Side chains: learning the weights of energies
=============================================

The energy of the side chains of a protein is a weighted sum of a few terms (Murphy 19.6.2.6): how much a residue likes
a rotamer by itself, clashes, contacts, charges. The terms come from physics; how much each counts can be learnt, as the
few weights of a conditional model, from structures that are known.
"""

import copy

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Proteins made by code: a backbone folded at random, rotamers that point somewhere, and five terms. The truth is ours,
# too: structures are drawn from the model with the weights below, and these are to be found again.

TERMS = ("rotamer", "backbone", "clash", "contact", "charge")
TRUE = np.array([1.0, 2.0, 0.5, 1.5, 3.0])


def protein(rng, n_residues=20, n_rotamers=5):
    """Number of rotamers of each residue, and factors with the energies of each term."""
    ways = np.vstack([np.eye(3), -np.eye(3)])
    path = np.zeros((1, 3))
    while len(path) < n_residues:
        free = [p for p in path[-1] + ways if not (path == p).all(axis=1).any()]
        path = np.vstack([path, free[rng.integers(len(free))]]) if free else path[:1]
    backbone = 3.8 * path
    way = rng.normal(size=(n_residues, n_rotamers, 3))
    way *= rng.uniform(1.5, 4.0, (n_residues, n_rotamers, 1)) / np.linalg.norm(way, axis=2, keepdims=True)
    ends, charge = backbone[:, None] + way, rng.choice([-1.0, 0.0, 1.0], n_residues)
    factors = []
    for i in range(n_residues):
        apart = np.linalg.norm(ends[i][:, None] - np.delete(backbone, i, axis=0), axis=2)
        energies = np.zeros((n_rotamers, len(TERMS)))
        energies[:, 0] = rng.normal(size=n_rotamers)
        energies[:, 1] = np.maximum(3.0 - apart, 0).sum(axis=1)
        factors.append(([i], energies))
        for j in range(i):
            apart = np.linalg.norm(ends[i][:, None] - ends[j], axis=2)
            if apart.min() < 3.2:
                energies = np.zeros((n_rotamers, n_rotamers, len(TERMS)))
                energies[..., 2] = np.maximum(3.5 - apart, 0) ** 2
                energies[..., 3] = -np.exp(-((apart - 3.5) ** 2))
                energies[..., 4] = charge[i] * charge[j] / np.maximum(apart, 2.0)
                factors.append(([i, j], energies))
    return [n_rotamers] * n_residues, factors


def folded(X, weights, rng):
    """A structure for each protein, drawn exactly from the model with some weights."""
    batch = mf.structured.EnergyModel().shaped(X, None).encode(X)
    return batch.split(mf.sample(batch.graph(weights), 1, method="junction_tree", rng=rng).states[0])


rng = np.random.default_rng(0)
X = [protein(rng) for _ in range(120)]
Y = folded(X, TRUE, rng)
train, test = (X[:80], Y[:80]), (X[80:], Y[80:])

# %%
# What weights are good for, on proteins not seen: rotamers predicted right, by the best structure as a whole or one by
# one, and the log-probability of the structure for each residue. Beside learnt weights stand the true ones, which
# nobody beats on average; all weights one, as if the terms came in the right units; and rotamers alone.


def learnt(X, Y, terms=TERMS):
    """Weights of greatest likelihood, with a slight penalty."""
    return mf.StructuredClassifier(mf.structured.EnergyModel(terms), l2=0.01).fit(X, Y)


def judged(crf, weights, X, Y):
    """The three measures."""
    crf = copy.copy(crf)
    crf.weights_ = np.asarray(weights, float)
    choice = np.concatenate([x[0] for x in X]) > 1
    truth = np.concatenate(Y)[choice]
    right = [np.mean(np.concatenate(crf.predict(X, decision=how))[choice] == truth) for how in ("map", "mpm")]
    return [*right, crf.log_likelihood(X, Y).sum() / choice.sum()]


def table(crf, weights, X, Y):
    """Print all of it."""
    width = max(map(len, weights))
    print(f"{'':{width}s}  as a whole  one by one  log-probability  " + "".join(f"{t:>9s}" for t in crf.model_.terms))
    for name, w in weights.items():
        whole, single, value = judged(crf, w, X, Y)
        print(f"{name:{width}s} {whole:11.1%} {single:11.1%} {value:16.3f}  " + "".join(f"{v:9.2f}" for v in w))


sizes = (2, 5, 10, 20, 40, 80)
found = {n: [learnt(train[0][at : at + n], train[1][at : at + n]) for at in range(0, 80, max(n, 20))] for n in sizes}
best = found[80][0]
compared = {"learnt from 80": best.weights_, "true": TRUE, "all one": np.ones(5), "rotamers alone": np.eye(5)[0]}
compared["learnt from 2"] = found[2][0].weights_
print("proteins made by code, 80 to learn from, 40 to test")
table(best, compared, *test)

# %%
# The side chains of Yanover and Weiss (2003), where those are there. Nothing tells where the crystals had them: the
# truth here is that of the published energies, which come as one table for each residue and each pair. Three terms are
# made of them: residues by themselves, contacts, and clashes (the lowest entry that a table may have). Structures are
# drawn from the published energies, three for each protein, so the true weights are ones; but two terms of the
# learner's are spoiled by noise, and it has to find out how far to trust each. It trusts all of them less, which makes
# the probabilities better and leaves the best structures about as good as they were.


def spoiled(graph, noise, rng):
    """Terms of a protein; rotamers that are ruled out are left out. And which rotamers are left."""
    s, tables = graph.structure, []
    kept = [np.ones(k, bool) for k in s.cardinalities]
    for f in range(s.n_factors):
        scope = s.scopes[s.scope_offsets[f] : s.scope_offsets[f + 1]]
        shape = s.cardinalities[scope]
        tables.append((scope, graph.log_tables[s.table_offsets[f] :][: shape.prod()].reshape(shape)))
        if len(scope) == 1:
            kept[scope[0]] &= np.isfinite(tables[-1][1])
    factors = []
    for scope, table in tables:
        value = -table[np.ix_(*(kept[v] for v in scope))]
        energies = np.zeros((*value.shape, 3))
        some = np.where(value > 0, value + noise[len(scope) - 1] * rng.normal(size=value.shape), 0.0)
        if len(scope) == 1:
            energies[..., 0] = some
        else:
            energies[..., 1] = np.where(value < 13.8, some, 0.0)
            energies[..., 2] = np.where(value < 13.8, 0.0, value)
        factors.append((scope, energies))
    return ([int(k.sum()) for k in kept], factors), kept


REAL = ("residue", "contact", "clash")
# Of those that the junction tree takes in a moment; others are wide.
quick = ("pdb1akg", "pdb1etm", "pdb1etn", "pdb2erl", "pdb2fdn", "pdb2mcm")
try:
    there = [p for p in mf.datasets.side_chains() if p.name in quick]
except FileNotFoundError as missing:
    there = []
    print(missing)
if len(there) > 3:
    data = {"train": ([], []), "test": ([], [])}
    for k, chains in enumerate(there):
        x, kept = spoiled(chains.model, (3.0, 0.5), np.random.default_rng(k))
        for states in mf.sample(chains.model, 3, method="junction_tree", rng=k).states:
            X_part, Y_part = data["test" if k % 2 else "train"]
            X_part.append(x)
            Y_part.append([int(k[:state].sum()) for k, state in zip(kept, states, strict=True)])
    n_test = len(there) // 2
    print(f"\nproteins of Yanover and Weiss with noise, {len(there) - n_test} to learn from, {n_test} to test")
    crf = learnt(*data["train"], REAL)
    table(crf, {"learnt": crf.weights_, "all one": np.ones(3), "residues alone": np.eye(3)[0]}, *data["test"])

# %%
# Weights approach the true ones as proteins are added, and with them predictions; five weights need few.

figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.9), layout="constrained")
colours = plt.get_cmap("tab10")(range(5))
for j, (name, colour) in enumerate(zip(TERMS, colours, strict=True)):
    for n in sizes:
        spread = [crf.weights_[j] for crf in found[n]]
        axes[0].plot([n] * len(spread), spread, ".", color=colour, alpha=0.6)
    axes[0].plot(sizes, [np.mean([crf.weights_[j] for crf in found[n]]) for n in sizes], color=colour, label=name)
    axes[0].axhline(TRUE[j], color=colour, linewidth=0.8, linestyle=":")
axes[0].set_ylim(-0.3, 6)
axes[0].set_title("weights learnt (dotted: true)", loc="left", fontsize=10)
values = [np.mean([judged(crf, crf.weights_, *test)[2] for crf in found[n]]) for n in sizes]
axes[1].plot(sizes, values, "o-", color="#d1663a", label="learnt")
for name, colour in (("true", "0.2"), ("all one", "#2b6cb0"), ("rotamers alone", "#8a97a3")):
    axes[1].axhline(judged(best, compared[name], *test)[2], color=colour, linestyle="--", linewidth=1, label=name)
axes[1].set_title("log-probability of the structure, for each residue", loc="left", fontsize=10)
for ax in axes:
    ax.set_xscale("log")
    ax.set_xticks(sizes, sizes)
    ax.minorticks_off()
    ax.set_xlabel("proteins to learn from")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, fontsize=8, ncols=3, loc="upper right")
axes[1].legend(frameon=False, fontsize=8, loc="center right")
plt.show()
