"""Bayesian networks that everybody knows, and one as large as a real one, written by code: examples need no files."""

from __future__ import annotations

import numpy as np

from markovfield.models import BayesianNetwork

__all__ = ["alarm_like", "asia", "sprinkler"]

NO_YES = ["no", "yes"]


def sprinkler() -> BayesianNetwork:
    """Whether it rained or the sprinkler was on, when the grass is wet (Russell and Norvig; Murphy 2001).

    Returns
    -------
    BayesianNetwork
        ``cloudy``, ``sprinkler`` ("off" or "on"), ``rain`` and ``wet_grass``.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.datasets.sprinkler()
    >>> round(mf.probability(net, {"sprinkler": "on"}, {"wet_grass": "yes"}), 4)
    0.4298
    >>> round(mf.probability(net, {"sprinkler": "on"}, {"wet_grass": "yes", "rain": "yes"}), 4)
    0.1945
    """
    net = BayesianNetwork({"cloudy": NO_YES, "sprinkler": ["off", "on"], "rain": NO_YES, "wet_grass": NO_YES})
    net.add_cpt("cloudy", [], [0.5, 0.5])
    net.add_cpt("sprinkler", ["cloudy"], [[0.5, 0.5], [0.9, 0.1]])
    net.add_cpt("rain", ["cloudy"], [[0.8, 0.2], [0.2, 0.8]])
    net.add_cpt("wet_grass", ["sprinkler", "rain"], [[[1.0, 0.0], [0.1, 0.9]], [[0.1, 0.9], [0.01, 0.99]]])
    net.name = "sprinkler"
    return net


def asia() -> BayesianNetwork:
    """The chest clinic: eight variables about lungs, a journey to Asia and smoking (Lauritzen and Spiegelhalter 1988).

    Returns
    -------
    BayesianNetwork
        ``asia``, ``tub``, ``smoke``, ``lung``, ``bronc``, ``either``, ``xray`` and ``dysp``, each "no" or "yes".

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.datasets.asia()
    >>> round(mf.probability(net, {"lung": "yes"}, {"xray": "yes", "smoke": "yes"}), 4)
    0.646
    """
    names = ("asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp")
    net = BayesianNetwork(dict.fromkeys(names, NO_YES))
    net.add_cpt("asia", [], [0.99, 0.01])
    net.add_cpt("tub", ["asia"], [[0.99, 0.01], [0.95, 0.05]])
    net.add_cpt("smoke", [], [0.5, 0.5])
    net.add_cpt("lung", ["smoke"], [[0.99, 0.01], [0.9, 0.1]])
    net.add_cpt("bronc", ["smoke"], [[0.7, 0.3], [0.4, 0.6]])
    net.add_deterministic("either", ["tub", "lung"], lambda tub, lung: "yes" if "yes" in (tub, lung) else "no")
    net.add_cpt("xray", ["either"], [[0.95, 0.05], [0.02, 0.98]])
    net.add_cpt("dysp", ["bronc", "either"], [[[0.9, 0.1], [0.3, 0.7]], [[0.2, 0.8], [0.1, 0.9]]])
    net.name = "asia"
    return net


def alarm_like() -> BayesianNetwork:
    """A made-up network of the size of the alarm network: 37 variables of two to four states, 46 arcs.

    It is the same on every call. Its variables are ``v1`` to ``v37``, parents before children, with at most four
    parents from among the ten before; states are "a" to "d". Most rows of its tables prefer one state strongly.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.datasets.alarm_like()
    >>> net, "v37" in net
    (BayesianNetwork(37 variables, 46 arcs), True)
    """
    rng, n_variables, n_arcs, most, reach = np.random.default_rng(1989), 37, 46, 4, 10
    cards = 2 + (3 * rng.random(n_variables)).astype(int)
    parents: list[list[int]] = [[] for _ in range(n_variables)]
    arcs = 0
    while arcs < n_arcs:
        child = int(n_variables * rng.random())
        parent = child - 1 - int(reach * rng.random())
        if parent >= 0 and parent not in parents[child] and len(parents[child]) < most:
            parents[child].append(parent)
            arcs += 1
    names = [f"v{i + 1}" for i in range(n_variables)]
    net = BayesianNetwork({name: list("abcd"[:card]) for name, card in zip(names, cards.tolist(), strict=True)})
    for v, above in enumerate(parents):
        shape = [int(cards[p]) for p in above] + [int(cards[v])]
        table = 0.02 + rng.random(shape) ** 4
        net.add_cpt(names[v], [names[p] for p in above], table / table.sum(axis=-1, keepdims=True))
    net.name = "alarm_like"
    return net
