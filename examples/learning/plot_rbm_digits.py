"""
Restricted Boltzmann machines: what contrastive divergence does not see
=======================================================================

A restricted Boltzmann machine has a layer of hidden units that explain the visible ones. The gradient of its likelihood
is the statistics of the data less those of the model (Murphy 19.48), and the latter need samples. Stochastic maximum
likelihood (algorithm 19.1) takes them from Markov chains that go on from update to update; contrastive divergence
starts its chains at the data every time, and never gets to see what the model believes elsewhere.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import markovfield as mf
from markovfield.learning import Training, annealed_log_partition

# %%
# Handwritten digits of 8 x 8 pixels, black or white. With 16 hidden units log Z is a sum over 2^16 states, so that
# likelihoods are exact. scikit-learn's ``score_samples`` is another number, the pseudo-likelihood, which is higher.

digits = load_digits()
rows = (digits.data > 7.5).astype(float)
train, test = rows[:1437], rows[1437:]
rates = (train.sum(axis=0) + 0.5) / (len(train) + 1)
print(f"independent pixels: {(test * np.log(rates) + (1 - test) * np.log1p(-rates)).sum(axis=1).mean():.2f}")

sml = mf.methods.StochasticMaximumLikelihood
small = mf.fit(mf.RestrictedBoltzmannMachine(64, 16), train, sml(training=Training(epochs=200)), rng=0)
print(small.fit_report)
print(f"16 hidden units: {small.log_likelihood(test).mean():.2f} for a test row")
estimate = annealed_log_partition(small, base_rates=rates, rng=0)
error = estimate.standard_error
print(f"log Z: exactly {small.log_partition_exact():.3f}, by annealing {estimate.log_partition:.3f} +- {error:.3f}")

# %%
# A hundred hidden units are too many to sum over. Annealed importance sampling goes from independent pixels to the
# machine in small steps, and has an error to show.

large = mf.fit(mf.RestrictedBoltzmannMachine(64, 100), train, sml(training=Training(epochs=200), l2=2.0), rng=0)
estimate = large.fit_report.details.log_partition
likelihood = -large.free_energy(test).mean() - estimate.log_partition
print(f"100 hidden units: {likelihood:.2f} +- {estimate.standard_error:.2f} for a test row")

# %%
# The weights of hidden units are strokes and their absence; Markov chains have drawn digits of their own.

chains = large.fit_report.details.chains
drawn = large.visible_probabilities(
    np.resize(large.gibbs(large.sample_visible(chains, rng=0), 200, rng=1)[1], (20, 100))
)
shown = {
    "weights": (large.weights.T[np.argsort(-np.abs(large.weights).sum(axis=0))], "RdBu_r", 2.5),
    "data": (train, "gray_r", None),
    "drawn": (drawn, "gray_r", None),
}
figure, axes = plt.subplots(3, 12, figsize=(9.6, 3.2), layout="constrained")
for line, (name, (images, colours, top)) in zip(axes, shown.items(), strict=True):
    for ax, image in zip(line, images, strict=False):
        low, high = (-top, top) if top else (0, 1)
        ax.imshow(image.reshape(8, 8), cmap=colours, vmin=low, vmax=high)
        ax.set_xticks([], [])
        ax.set_yticks([], [])
    line[0].set_ylabel(name, fontsize=11)

# %%
# Now the failure. A machine that knows zeros and ones is shown zeros only. The likelihood asks that it forget the ones:
# half of its probability lies where there are no data any more. Chains that start at zeros hardly ever come upon a one,
# so contrastive divergence finds little wrong with them; chains that go on and on get to wherever the machine has
# probability.
#
# With ten hidden units the junction tree draws from the machine exactly.

zeros, ones = rows[digits.target == 0], rows[digits.target == 1]


def draws(machine: mf.RestrictedBoltzmannMachine) -> np.ndarray:
    """Visible units of exact samples."""
    return mf.sample(machine, 400, method="junction_tree", rng=0).states[:, :64]


def share_of_ones(machine: mf.RestrictedBoltzmannMachine) -> float:
    """How many exact samples are nearer to a one in the data than to any zero."""
    states = draws(machine)
    far = [np.abs(states[:, None] - seen[None]).sum(axis=2).min(axis=1) for seen in (zeros, ones)]
    return float(np.mean(far[1] < far[0]))


seen = np.concatenate([zeros, ones])
both = mf.fit(mf.RestrictedBoltzmannMachine(64, 10), seen, sml(training=Training(epochs=1000)), rng=0)
print(f"ones among draws of the machine that has seen both: {share_of_ones(both):.0%}")
cd = mf.methods.ContrastiveDivergence
methods = {"CD-1": (cd, 1), "CD-10": (cd, 10), "SML": (sml, 1)}
epochs = [10, 30, 100, 300]
last = {}
figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained")
for name, (method, k) in methods.items():
    trainings = [Training(k=k, epochs=n, learning_rate=0.05) for n in epochs]
    made = [mf.fit(both, zeros, method(training=training), rng=0) for training in trainings]
    shares = [share_of_ones(machine) for machine in made]
    for ax, values in zip(axes, (shares, [m.fit_report.log_likelihood / len(zeros) for m in made]), strict=True):
        ax.plot(epochs, values, "o-", label=name)
    last[name] = made[2]
    print(
        f"{name} after 100 epochs of zeros: {shares[2]:.1%} ones, {made[2].log_likelihood(zeros).mean():.2f} for a zero"
    )
axes[0].set_ylabel("ones among exact samples")
axes[1].set_ylabel("exact log-likelihood of a zero")
for ax in axes:
    ax.set_xscale("log")
    ax.set_xlabel("epochs of zeros")
axes[0].legend()

# %%
# Draws from both machines after a hundred epochs.

figure, axes = plt.subplots(2, 12, figsize=(9.6, 2.2), layout="constrained")
for line, name in zip(axes, ("CD-1", "SML"), strict=True):
    for ax, image in zip(line, draws(last[name]), strict=False):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set_xticks([], [])
        ax.set_yticks([], [])
    line[0].set_ylabel(name, fontsize=11)
