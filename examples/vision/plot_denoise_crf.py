"""
A denoiser that learns its own strength
=======================================

An Ising prior cleans a noisy image when somebody sets its coupling well (Murphy 19.4.1). As a conditional random field
the same model learns coupling and field from pairs of clean and noisy images, and may look at more than single pixels.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Text to learn from, and other text to test; the noise is Gaussian. The images are low, so that inference is exact: the
# junction tree's width is the number of rows.

rng = np.random.default_rng(0)
texts = ["QUICK", "BROWN", "JUMPS", "MARKOV", "FIELDS"]
clean = [mf.datasets.letters(text, height=12, thickness=1.8) for text in texts]
noisy = [image + rng.normal(scale=0.45, size=image.shape) for image in clean]
X, X_test, y, y_test = noisy[:3], noisy[3:], clean[:3], clean[3:]


def errors(found):
    """Share of wrong pixels of the test images."""
    return np.mean(np.concatenate([(a != b).ravel() for a, b in zip(found, y_test, strict=True)]))


# %%
# The Ising denoiser by hand: how good it is depends on its coupling.

couplings = np.linspace(0.0, 1.6, 9)
by_hand = []
for coupling in couplings:
    found = []
    for image in X_test:
        net = mf.datasets.ising_denoiser(image, coupling=coupling, field=1.5)
        found.append(mf.decode(net).states.reshape(image.shape))
    by_hand.append(errors(found))
print(f"couplings set by hand: {min(by_hand):.1%} wrong at best, {max(by_hand):.1%} at worst")

# %%
# Learned: pixels by themselves, the same model as by hand, and one that sees the 3 x 3 neighbourhood of a pixel and
# tells strokes that go across from those that go down.

models = {
    "pixels by themselves": mf.GridCRF(edge_features=None, l2=0.1),
    "trained Ising model": mf.GridCRF(edge_features="constant", interaction="equal", l2=0.1),
    "windows and directions": mf.GridCRF(
        node_features="neighbourhood", edge_features="constant", directional=True, l2=1.0
    ),
}
found = {}
for name, crf in models.items():
    found[name] = crf.fit(X, y).predict(X_test)
    report = crf.report_
    print(
        f"{name:>23}: {errors(found[name]):.1%} wrong, log-likelihood {report.log_likelihood:.0f}, "
        f"{len(crf.weights_)} weights, {report.iterations} steps in {report.seconds:.1f} s"
    )
coupling = float(models["trained Ising model"].coef_["edges"][0, 0]) / 2
print(f"the learned coupling is {coupling:.2f}")

# %%
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(couplings, 100 * np.array(by_hand), "o-", color="#888888", label="set by hand")
ax.plot([coupling], [100 * errors(found["trained Ising model"])], "o", color="#d04000", label="learned")
ax.axhline(100 * errors(found["windows and directions"]), color="#1f77b4", label="windows and directions, learned")
ax.set(xlabel="coupling", ylabel="wrong pixels, %", ylim=(0, None))
ax.legend(frameon=False)

doubt = models["windows and directions"].predict_entropy(X_test)
rows = {"noisy": X_test, **found, "doubt": doubt, "truth": y_test}
figure, axes = plt.subplots(len(rows), 2, figsize=(9, 7), layout="constrained")
for row, (name, images) in zip(axes, rows.items(), strict=True):
    for ax, image in zip(row, images, strict=True):
        ax.imshow(image, cmap="magma" if name == "doubt" else "gray_r")
        ax.set_axis_off()
    row[0].set_title(name, loc="left", fontsize=10)
plt.show()
