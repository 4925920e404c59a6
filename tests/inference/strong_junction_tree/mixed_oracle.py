"""Random small conditional Gaussian networks, and their answers by enumeration with a dense Gaussian for each state."""

from __future__ import annotations

import itertools

import numpy as np

import markovfield as mf


def random_network(rng, n_discrete=3, n_real=3, most_states=3):
    cards = rng.integers(2, most_states + 1, n_discrete)
    names = [*(f"d{i}" for i in range(n_discrete)), *(f"x{i}" for i in range(n_real))]
    net = mf.ConditionalGaussianNetwork({f"d{i}": int(c) for i, c in enumerate(cards)})
    for i in range(n_real):
        net.add_variable(f"x{i}")
    for i in range(n_discrete):
        above = [j for j in range(i) if rng.random() < 0.6]
        table = rng.dirichlet(np.ones(cards[i]), [cards[j] for j in above])
        net.add_cpt(f"d{i}", [f"d{j}" for j in above], table)
    for i in range(n_real):
        discrete = rng.permutation([j for j in range(n_discrete) if rng.random() < 0.5]).astype(int).tolist()
        real = rng.permutation([j for j in range(i) if rng.random() < 0.7]).astype(int).tolist()
        shape = tuple(cards[j] for j in discrete)
        kinds = [[f"x{j}" for j in real], [f"d{j}" for j in discrete]]
        parents = [v for kind in (kinds if rng.random() < 0.5 else kinds[::-1]) for v in kind]
        net.add_cpd(
            f"x{i}",
            parents,
            rng.normal(size=(*shape, len(real))),
            bias=2 * rng.normal(size=shape),
            variance=rng.uniform(0.3, 2.0, shape),
        )
    assert names == list(net)
    return net


def components(net):
    """Every configuration of discrete variables with its log-probability, and the joint Gaussian given it."""
    for states in itertools.product(*(range(net.cardinality(v)) for v in net.discrete)):
        at = dict(zip(net.discrete, states, strict=True))
        with np.errstate(divide="ignore"):
            log_p = sum(np.log(net.cpt(v)[tuple(at[u] for u in (*net.parents(v), v))]) for v in net.discrete)
        n = len(net.continuous)
        mean, covariance = np.zeros(n), np.zeros((n, n))
        place = {v: i for i, v in enumerate(net.continuous)}
        for i, v in enumerate(net.continuous):
            cpd = net.cpd(v)
            cell = tuple(at[u] for u in cpd.discrete)
            above = [place[u] for u in cpd.continuous]
            weights = cpd.weights[cell]
            mean[i] = cpd.bias[cell] + weights @ mean[above]
            cross = covariance[:, above] @ weights
            covariance[i], covariance[:, i] = cross, cross
            covariance[i, i] = cpd.variance[cell] + weights @ covariance[np.ix_(above, above)] @ weights
        yield at, log_p, mean, covariance


def log_normal(x, mean, covariance):
    if not len(x):
        return 0.0
    away = x - mean
    logdet = np.linalg.slogdet(covariance)[1]
    return -0.5 * (away @ np.linalg.solve(covariance, away) + logdet + len(x) * np.log(2 * np.pi))


def conditioned(net, evidence):
    """The same given states and numbers: states, log-density with the evidence, mean and covariance of the rest."""
    seen = [i for i, v in enumerate(net.continuous) if v in evidence]
    rest = [i for i in range(len(net.continuous)) if i not in seen]
    x = np.array([evidence[net.continuous[i]] for i in seen])
    for at, log_p, mean, covariance in components(net):
        if any(at[v] != evidence[v] for v in net.discrete if v in evidence):
            continue
        block = covariance[np.ix_(seen, seen)]
        gain = np.linalg.solve(block, covariance[np.ix_(seen, rest)]).T if seen else np.zeros((len(rest), 0))
        left = covariance[np.ix_(rest, rest)] - gain @ covariance[np.ix_(seen, rest)]
        yield at, log_p + log_normal(x, mean[seen], block), mean[rest] + gain @ (x - mean[seen]), left, rest
