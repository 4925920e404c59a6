"""
From expected loss to hinge
===========================

What one wants of a classifier is a small expected loss (Murphy 19.80). That is neither convex nor easy; bounds of
log-sum-exp by its largest term lead from it to objectives that are (19.84 to 19.90): the ramp, the hinge of structural
SVMs, the softmax margin, the likelihood. All of them are sums and maxima of the same scores, so the verbs compute them.
"""

import matplotlib.pyplot as plt
import numpy as np

import markovfield as mf

# %%
# The bound with three labels and ``f(y) = y`` (19.86): the largest term, the log of the sum, and the largest plus log
# 3.

three = mf.MarkovNetwork({"y": 3})
three.add_factor(["y"], log_table=[0.0, 1.0, 2.0])
largest, log_sum = mf.decode(three).score, mf.log_partition(three).log_partition
print(f"{largest:.4f} <= {log_sum:.4f} <= {largest + np.log(3):.4f}")
print(f"{mf.decode(three, {'y': 1}).score:.4f} <= {log_sum:.4f}   (19.88 with y' = 1)")

# %%
# Labels of three tokens in a row. The right ones are known; a knob raises their score, from far below the others to
# far above. For each setting: the loss that is expected, the loss of the best labels, and what the objectives say.

truth = [1, 0, 1]
neighbours = np.array([[0.6, 0.0], [0.0, 0.6]])
names = ["expected loss", "loss of the best", "ramp", "hinge", "softmax margin", "negative log-likelihood"]


def scores(knob, loss):
    """The chain; with a loss, every wrong label scores one more."""
    net = mf.MarkovNetwork(dict.fromkeys(range(3), 2))
    net.add_factors([[0, 1], [1, 2]], log_table=neighbours)
    for i, y in enumerate(truth):
        table = np.array([0.4, 0.0])
        table[y] += knob
        table[1 - y] += loss
        net.add_factor([i], log_table=table)
    return net


knobs = np.linspace(-3, 4, 57)
curves = {name: [] for name in names}
for knob in knobs:
    plain, augmented = scores(knob, 0.0), scores(knob, 1.0)
    answer, best = mf.marginals(plain), mf.decode(plain)
    right = plain.compile().score(truth)
    worst = mf.decode(augmented).score
    values = (
        sum(1 - answer[i][y] for i, y in enumerate(truth)),
        sum(best.assignment[i] != y for i, y in enumerate(truth)),
        worst - best.score,
        worst - right,
        mf.log_partition(augmented).log_partition - right,
        answer.log_partition - right,
    )
    for curve, value in zip(curves.values(), values, strict=True):
        curve.append(value)

figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
for name, curve in curves.items():
    ax.plot(knobs, curve, label=name, linestyle="--" if "best" in name else "-")
ax.set(xlabel="score of the right labels above the others", ylabel="for one sentence", ylim=(-0.1, 6))
ax.legend(frameon=False, fontsize=9)

# %%
# Ramp and hinge are never below the loss of the best labels; the hinge is convex and grows without end where labels
# are hopeless, the ramp levels off. The softmax margin is above the hinge, the likelihood knows no loss, and both go
# on falling where the hinge is content.

table = {name: np.array(curve) for name, curve in curves.items()}
assert (table["ramp"] >= table["loss of the best"] - 1e-9).all() and (table["hinge"] >= table["ramp"] - 1e-9).all()
assert (table["softmax margin"] >= table["hinge"]).all()
print("hinge is zero from", knobs[np.argmax(table["hinge"] < 1e-9)], "on")
plt.show()
