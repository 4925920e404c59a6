"""
Linear-Gaussian networks
========================

When every variable is a weighted sum of its parents plus Gaussian noise, the joint distribution is a Gaussian: sparse
as regressions along the arcs, and sparse again, differently, as a precision matrix (Murphy 19.4.4).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

import markovfield as mf

# %%
# A field of wheat: the weights stand on the arcs. Variables may be written in any order.

net = mf.LinearGaussianNetwork()
net.add_variable("yield", ["growth", "hail"], [0.9, -1.2], bias=4.0, variance=0.2)
net.add_variable("rain", bias=3.0, variance=0.8)
net.add_variable("sun", ["rain"], [-0.3], bias=8.0, variance=0.5)
net.add_variable("growth", ["rain", "sun"], [0.9, 0.4], variance=0.3)
net.add_variable("hail", ["rain"], [0.2], variance=0.1)
net.add_variable("price", ["yield"], [-0.8], bias=20.0, variance=0.4)
mf.plot.graph(net)

# %%
# In information form the parents of a common child are neighbours too: the moral graph. Nothing is inverted for it.

field = net.compile()
print(field.precision.toarray().round(2))
mf.plot.graph(field, title="Nonzeros of the precision")

# %%
# Seeing a high price tells of the rain; *setting* the price does not.

mean, covariance = net.joint()
rain = net.variables.index("rain")
seen = field.condition({"price": 15.0}).marginal(["rain"])
print(f"rain, nothing known:     {mean[rain]:.3f} +- {np.sqrt(covariance[rain, rain]):.3f}")
print(f"rain, price seen as 15:  {seen.mean[0]:.3f} +- {np.sqrt(seen.variances[0]):.3f}")
print(f"rain, price set to 15:   {net.do({'price': 15.0}).joint()[0][rain]:.3f}")

# %%
# The weights come back from data, one least-squares regression for each variable.

fitted = mf.fit(net, net.sample(20_000, rng=0))
mf.plot.graph(fitted, title="Estimated from 20,000 rows")

# %%
# The same Gaussian along another order has other arcs, and more of them: directed models depend on the order.

turned = mf.LinearGaussianNetwork.from_moments(mean, covariance, net.variables, order=net.order()[::-1])
mf.plot.graph(turned, title=f"Against the arrows: {len(turned.arcs)} arcs instead of {len(net.arcs)}")

# %%
# Undirected fields can be large. On a lattice of 200 by 300 sites that want to be like their neighbours, forty are
# known: the rest follows by one sparse solve, and how sure it is by selected inversion.

rows, columns = 200, 300
site = np.arange(rows * columns).reshape(rows, columns)
pairs = np.vstack(
    [
        np.column_stack([site[:, :-1].ravel(), site[:, 1:].ravel()]),
        np.column_stack([site[:-1].ravel(), site[1:].ravel()]),
    ]
)
links = sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(site.size, site.size))
links = links + links.T
precision = sparse.diags_array(links.sum(axis=1) + 1e-3) - links
rng = np.random.default_rng(1)
known = dict(zip(rng.choice(site.size, 40, replace=False).tolist(), rng.normal(size=40), strict=True))
rest = mf.GaussianField(precision).condition(known)
for what, values in (("mean", rest.mean), ("standard deviation", np.sqrt(rest.variances))):
    picture = np.zeros(site.size)
    picture[list(known)] = list(known.values()) if what == "mean" else 0.0
    picture[list(rest.variables)] = values
    picture = picture.reshape(rows, columns)
    mf.plot.lattice(picture, title=what, limits=(picture.min(), picture.max()), cmap="viridis")

plt.show()
