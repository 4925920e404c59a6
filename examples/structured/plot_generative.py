"""
Learning the joint or the conditional
=====================================

A model of everything, p(x, y), can be asked for p(y | x); a model of that alone spends nothing on x (Sudderth, lecture
24; Murphy 19.6). The first learns faster from little, the second ends better where the first one's assumptions are
wrong: naive Bayes against logistic regression, and hidden Markov models against conditional random fields.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Two classes, and twelve binary features. Naive Bayes takes them for independent given the class. On the left they
# are; on the right nine of them are copies of one, which says little, and naive Bayes counts it nine times.

names = [f"x{i}" for i in range(12)]
repeats = [5, 10, 20, 50, 100, 300, 1000, 3000]


def drawn(n, rng, copies):
    """Classes, and features: the first of them stands there so many times, with a few errors."""
    y = rng.integers(0, 2, n)
    sources = np.where(y[:, None] == 1, 0.7, 0.4) > rng.random((n, 13 - copies))
    x = np.concatenate([np.repeat(sources[:, :1], copies, axis=1), sources[:, 1:]], axis=1).astype(int)
    return np.where(rng.random(x.shape) < 0.03, 1 - x, x), y


def naive_bayes(x, y):
    """A network with the class above every feature, fitted by counts with a prior of one case."""
    net = mf.BayesianNetwork({"y": 2, **dict.fromkeys(names, 2)})
    for name in names:
        net.set_parents(name, ["y"])
    data = {"y": y, **dict(zip(names, x.T, strict=True))}
    fitted = mf.fit(net, data, mf.methods.DirichletEstimate(prior="bdeu", equivalent_sample_size=2))
    return lambda new: np.asarray(mf.predict(fitted, dict(zip(names, new.T, strict=True)), targets="y")["y"], int)


def logistic(x, y):
    """The conditional model with the same features."""
    return mf.structured.MulticlassCRF(l2=0.1).fit(x.astype(float), y).predict


figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, copies in zip(axes, (1, 9), strict=True):
    rng = np.random.default_rng(0)
    x_test, y_test = drawn(4000, rng, copies)
    for name, learner in (("naive Bayes", naive_bayes), ("logistic regression", logistic)):
        errors = []
        for n in repeats:
            few = []
            for _ in range(8 if n < 300 else 2):
                x, y = drawn(n, rng, copies)
                y[:2] = 0, 1
                few.append(np.mean(np.asarray(learner(x, y)(x_test)) != y_test))
            errors.append(np.mean(few))
        ax.semilogx(repeats, errors, marker="o", label=name)
        told = ", ".join(f"{e:.3f} from {n}" for n, e in list(zip(repeats, errors, strict=True))[:: len(repeats) - 1])
        print(f"{copies} of 12 alike, {name:>20}: error {told}")
    ax.set(
        title="independent features" if copies == 1 else f"{copies} of 12 say the same",
        xlabel="cases learnt from",
        ylabel="error",
    )
axes[0].legend(frameon=False)

# %%
# The same for numbers: two normal classes with covariances of their own. The linear features ``1, x`` give a straight
# border, as linear discriminant analysis has it; with squares and products the border is that of quadratic analysis.

rng = np.random.default_rng(1)
y = rng.integers(0, 2, 600)
spread = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.3], [0.0, 1.6]]])
X = rng.normal(size=(600, 1, 2)) @ spread[y]
X = X[:, 0] + np.array([[0.0, 0.0], [1.6, 0.8]])[y]


def quadratic(x):
    """Squares and the product beside the numbers."""
    return np.column_stack([x, x**2, x[:, 0] * x[:, 1]])


axis = np.linspace(-4, 5, 200)
grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, (name, of) in zip(axes, (("1, x", lambda x: x), ("1, x, squares", quadratic)), strict=True):
    model = mf.structured.MulticlassCRF(l2=0.01).fit(of(X), y)
    share = np.asarray(model.predict_marginals(of(grid)))[..., 1].reshape(200, 200)
    ax.contourf(axis, axis, share, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.6)
    ax.contour(axis, axis, share, levels=[0.5], colors="black")
    ax.scatter(*X.T, c=y, cmap="RdBu_r", s=6)
    ax.set(title=f"{name}: {np.mean(np.asarray(model.predict(of(X))) != y):.1%} wrong", xticks=[], yticks=[])
    ax.set(xlim=(-4, 5), ylim=(-4, 5))

# %%
# Sequences. Tokens show two things at once, the second mostly a copy of the first; a hidden Markov model of pairs of
# symbols must learn every pair, a conditional random field a weight for each part.

labels = list("abc")
stay = 0.8 * np.eye(3) + 0.2 / 3


def sequences(n, rng):
    """Labels that mostly stay, and two attributes of each token."""
    X, Y = [], []
    for _ in range(n):
        y = [int(rng.integers(3))]
        while len(y) < 15:
            y.append(int(rng.choice(3, p=stay[y[-1]])))
        first = [int((5 * k + rng.integers(8)) % 15) for k in y]
        second = [f if rng.random() < 0.8 else int(rng.integers(15)) for f in first]
        X.append(list(zip(first, second, strict=True)))
        Y.append([labels[k] for k in y])
    return X, Y


rng = np.random.default_rng(2)
X_test, Y_test = sequences(100, rng)
sizes = [3, 10, 30, 100, 300]
curves = {"hidden Markov model": [], "conditional random field": []}
for n in sizes:
    X, Y = sequences(n, rng)
    hidden = mf.HMM(smoothing=0.1, emission_smoothing=0.1).fit(X, Y)
    field = mf.ChainCRF(l2=0.5).fit([[[f"1={a}", f"2={b}"] for a, b in x] for x in X], Y)
    found = hidden.predict(X_test), field.predict([[[f"1={a}", f"2={b}"] for a, b in x] for x in X_test])
    for curve, guess in zip(curves.values(), found, strict=True):
        curve.append(np.mean(np.array(list(guess)) != np.array(Y_test)))
figure, ax = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
for name, curve in curves.items():
    ax.semilogx(sizes, curve, marker="o", label=name)
ax.set(xlabel="sequences learnt from", ylabel="share of wrong labels")
ax.legend(frameon=False)
plt.show()
