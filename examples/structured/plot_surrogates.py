"""
Likelihoods that can be computed
================================

On a graph with circles the likelihood of a conditional random field needs a sum that may be out of reach. Bounds of
log Z that are convex give surrogates in its place: tree-reweighted messages an upper bound, and so a lower bound of the
likelihood (Sudderth, lecture 24). On images small enough for the true thing, all are compared.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Images of 8 x 10 pixels of two labels, seen through noise.

rng = np.random.default_rng(0)


def image(rng):
    """A blob and what is seen of it."""
    r, c = np.mgrid[:8, :10]
    y = ((r - rng.uniform(2, 6)) ** 2 / 6 + (c - rng.uniform(2, 8)) ** 2 / 9 < rng.uniform(0.6, 1.4)).astype(int)
    return y + 0.9 * rng.normal(size=y.shape), y


train, test = ([image(rng) for _ in range(n)] for n in (25, 60))
X, Y = zip(*train, strict=True)
X_test, Y_test = zip(*test, strict=True)

# %%
# Training with four ways to have log Z and its gradient, and with two objectives that never ask for it.

trained = {
    "exact": {"inference": "junction_tree"},
    "tree-reweighted bound": {"inference": "tree_reweighted"},
    "Bethe (loopy messages)": {"inference": "belief_propagation"},
    "mean field": {"inference": "mean_field"},
    "pseudo-likelihood": {"objective": "pseudo_likelihood"},
    "piecewise": {"objective": "piecewise"},
}
models, own, true, wrong = {}, {}, {}, {}
for name, settings in trained.items():
    model = mf.GridCRF(edge_features="constant", l2=0.1, **settings).fit(list(X), list(Y))
    guess = model.predict(list(X_test))
    wrong[name] = np.mean([np.mean(a != b) for a, b in zip(guess, Y_test, strict=True)])
    if "inference" in settings:
        own[name] = np.mean(model.log_likelihood(list(X), list(Y)))
    exact = model.set_params(inference="junction_tree")
    true[name] = np.mean(exact.log_likelihood(list(X), list(Y)))
    models[name] = exact
    told = f"{own[name]:8.3f}" if name in own else " " * 8
    print(
        f"{name:>24}: log-likelihood of an image, by itself {told}, in truth {true[name]:8.3f}; {wrong[name]:.1%} wrong"
    )

# %%
# The bound stays below the truth, at any weights: what is learnt by it is safe, and good. The Bethe value may be on
# either side. Mean field bounds log Z from the wrong side, so that raising its "likelihood" may lower the true one,
# which is what happened here. Pseudo-likelihood trusts neighbours too much, as in training they were always right.

assert own["tree-reweighted bound"] <= true["tree-reweighted bound"]
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
at = np.arange(len(trained))
ax.barh(at, [true[n] for n in trained], color="#9db7d1", label="true log-likelihood of the weights")
ax.plot([own.get(n, np.nan) for n in trained], at, "o", color="#e07b39", label="what training saw")
ax.set_yticks(at, [f"{n}: {wrong[n]:.1%} wrong" for n in trained])
ax.set(xlabel="log-likelihood of an image")
ax.invert_yaxis()
ax.legend(frameon=False, fontsize=9, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2)

# %%
# One image of the test: what was seen, and how sure each model is of white.

figure, axes = plt.subplots(1, 2 + len(models), figsize=(14, 2.2), layout="constrained")
shown = {"seen": X_test[3], "true": Y_test[3]}
for name, model in models.items():
    shown[name] = np.asarray(model.predict_marginals([X_test[3]])[0])[..., 1]
for ax, (name, picture) in zip(axes, shown.items(), strict=True):
    ax.imshow(picture, cmap="gray", **({} if name == "seen" else {"vmin": 0, "vmax": 1}))
    ax.set_title(name, fontsize=9)
    ax.set_axis_off()
plt.show()
