"""
Restoring a noisy image, exactly
================================

An Ising model on the lattice of pixels (Murphy 19.4.1) takes noise off a binary image. The width of a lattice is
about its smaller side: a long, low image can be restored by exact inference, however many pixels it has.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# Letters, and what is left of them under Gaussian noise.

image = mf.datasets.noisy_letters("MARKOVFIELD", level=0.4, rng=4)
mf.plot.image_grid([image.clean, image.noisy], ["clean", "seen"])

# %%
# Neighbouring pixels want to be equal, and each wants to be what was seen. Before running anything, `explain` tells
# what it would cost.

net = mf.datasets.ising_denoiser(image.noisy, coupling=0.6, field=0.25 / 0.4**2)
print(mf.explain(net, "marginals"))

# %%
# Two ways to read an image off the posterior: the likeliest state of each pixel, which has the fewest wrong pixels in
# expectation, and the likeliest image as a whole.

answer = mf.marginals(net)
best = mf.decode(net)
ink = answer.values[1::2].reshape(image.clean.shape)
restored = {
    "as seen, cut at one half": image.noisy > 0.5,
    "likeliest state of each pixel (MPM)": ink > 0.5,
    "likeliest image (MAP)": best.states.reshape(image.clean.shape),
}
for name, pixels in restored.items():
    print(f"{np.mean(pixels != image.clean):6.1%} wrong pixels: {name}")
print(f"log Z = {answer.log_partition:.4f}, {answer.guarantee}, width {answer.width}")

mf.plot.image_grid([ink, *restored.values()], ["probability of ink", *restored])

# %%
# Samples from the posterior show what the probabilities alone do not: which doubtful pixels go together.

drawn = mf.sample(net, 4, rng=0)
samples = drawn.states.reshape(4, *image.clean.shape)
mf.plot.image_grid(samples, [f"sample {i}" for i in range(1, 5)])

plt.show()
