"""
Optical flow: how an image moves
================================

Two frames of something that moves. Brightness stays with what it belongs to, which says something of the motion at each
pixel: one equation for two unknowns (Horn and Schunck 1981). A Gaussian prior, that neighbours move alike, does the
rest.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage, sparse

import markovfield as mf

# %%
# A smooth random texture, drawn from a Matern field on a torus, that turns and grows a little.

shape = (96, 96)
texture = mf.GaussianMarkovField.lattice(shape, range=9, alpha=3, periodic=True)
first = mf.sample(texture, 1, rng=3).images[0]
rows, columns = np.indices(shape)
off_row, off_column = rows - 48.0, columns - 48.0
true_down = 0.012 * off_row + 0.02 * off_column
true_right = -0.02 * off_row + 0.012 * off_column
second = ndimage.map_coordinates(first, [rows - true_down, columns - true_right], order=3, mode="grid-wrap")
noise = 0.02
rng = np.random.default_rng(0)
first, second = (frame + rng.normal(scale=noise, size=shape) for frame in (first, second))

# %%
# The prior: two second-order walks side by side, one for each direction; `product` with two independent variables makes
# them one field. Levels and slopes are left open, which a turn and a growth are.

plane = mf.GaussianMarkovField.lattice(shape, kind="rw2", precision=3000.0)
flow = mf.GaussianMarkovField.from_precision(np.eye(2)).product(plane)
print(flow)

# %%
# The data: the change in time is minus the slope in space times the motion, up to noise. Each pixel is a row.

smooth = [ndimage.gaussian_filter(frame, 1.0, mode="wrap") for frame in (first, second)]
slope_down, slope_right = np.gradient((smooth[0] + smooth[1]) / 2)
change = smooth[1] - smooth[0]
inner = np.zeros(shape, bool)
inner[4:-4, 4:-4] = True
seen = np.flatnonzero(inner)
design = sparse.hstack([sparse.diags_array(slope_down.ravel()), sparse.diags_array(slope_right.ravel())]).tocsr()[seen]
posterior = mf.marginals(flow.observe(design, -change.ravel()[seen], noise**2))
found_down, found_right = posterior.mean.reshape(2, *shape)
error = np.hypot(found_down - true_down, found_right - true_right)
speed = np.hypot(true_down, true_right)
print(
    f"mean error {error[inner].mean():.3f} pixels at a mean speed of {speed[inner].mean():.2f}; {posterior.guarantee}"
)

# %%
# The motion found (red) upon the true one (black), and how sure the posterior is of it: the root of the sum of both
# variances at each pixel, largest along the border, where nothing was used.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), constrained_layout=True)
step = (slice(6, None, 9), slice(6, None, 9))
axes[0].imshow(first, cmap="gray", alpha=0.6)
for down, right, colour in ((true_down, true_right, "black"), (found_down, found_right, "tab:red")):
    axes[0].quiver(
        columns[step], rows[step], right[step], down[step], color=colour, angles="xy", scale_units="xy", scale=0.25
    )
axes[0].set_title("motion, four times as long (red: found)", loc="left")
shown = axes[1].imshow(np.sqrt(posterior.variance.sum(axis=0)), cmap="viridis")
axes[1].set_title("standard deviation, pixels", loc="left")
figure.colorbar(shown, ax=axes[1])
for ax in axes:
    ax.set_axis_off()

plt.show()
