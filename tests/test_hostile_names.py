"""Notebooks: names that are code for a browser, or for TeX, stay names in every table and every drawing."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest

import markovfield as mf

mpl.use("Agg")
import matplotlib.pyplot as plt

EVIL = [
    "<img src=x onerror=alert(1)>",
    "</td></table><script>alert(2)</script>",
    "\" onclick='alert(3)",
    "$\\frac{a$&amp;",
]
STATES = ["<b onmouseover=alert(4)>", "&lt;i&gt;", "]]>{{7*7}}"]
FORBIDDEN = {"script", "img", "iframe", "object", "embed", "b", "i", "form", "foreignobject", "math"}


class Tags(HTMLParser):
    """Every tag, every attribute and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def network() -> mf.BayesianNetwork:
    net = mf.BayesianNetwork(dict.fromkeys(EVIL, STATES))
    net.add_cpt(EVIL[0], [], [0.2, 0.3, 0.5])
    for before, name in pairwise(EVIL):
        net.add_cpt(name, [before], [[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]])
    return net


def field() -> mf.GaussianField:
    return mf.GaussianField(np.eye(4) * 2 - 0.4, variables=EVIL)


def numbers() -> dict[str, Any]:
    x = np.random.default_rng(0).normal(size=(80, 4))
    x[:, 1] += x[:, 0]
    return dict(zip(EVIL, x.T, strict=True))


def mixed() -> mf.ConditionalGaussianNetwork:
    net = mf.ConditionalGaussianNetwork({EVIL[0]: STATES, EVIL[1]: None})
    net.add_cpt(EVIL[0], [], [0.2, 0.3, 0.5])
    net.add_cpd(EVIL[1], [EVIL[0]], bias=[0.0, 1.0, 2.0], variance=[1.0, 1.0, 1.0])
    return net


def tagger() -> mf.ChainCRF:
    return mf.ChainCRF().fit([[[EVIL[0]], [EVIL[1]]]], [[STATES[0], STATES[1]]])


def aligner() -> Any:
    return mf.alignment.IBM1(iterations=2).fit([([EVIL[0], "a"], [EVIL[1], "b"]), (["a"], ["b"])])


def series() -> Any:
    data = np.random.default_rng(0).normal(size=(80, 2))
    return mf.VectorAutoregression(order=1).fit(dict(zip(EVIL, data.T, strict=False)))


def boltzmann() -> Any:
    pair = mf.MarkovNetwork.from_edges(dict.fromkeys(EVIL, STATES), [(EVIL[0], EVIL[1])])
    return mf.fit(pair, mf.sample(network(), 60, rng=0))


SEEN = {EVIL[3]: STATES[1]}
MADE: dict[str, Callable[[], Any]] = {
    "network": network,
    "graph": lambda: network().compile(),
    "undirected": lambda: mf.MarkovNetwork.from_edges(dict.fromkeys(EVIL, STATES), [(EVIL[0], EVIL[1])]),
    "marginals": lambda: mf.marginals(network(), SEEN),
    "gibbs": lambda: mf.marginals(network(), SEEN, method="gibbs", rng=0),
    "chains": lambda: mf.marginals(network(), SEEN, method="gibbs", rng=0).monte_carlo,
    "decoding": lambda: mf.decode(network(), SEEN, n_best=2),
    "samples": lambda: mf.sample(network(), 5, SEEN, rng=0),
    "weighted": lambda: mf.sample(network(), 5, SEEN, "likelihood_weighting", rng=0),
    "distribution": lambda: mf.query(network(), EVIL[0], SEEN, given=EVIL[1]),
    "explanation": lambda: mf.explain(network(), evidence=SEEN),
    "batch": lambda: mf.methods.JunctionTree.compile(network()).run_batch({EVIL[0]: [STATES[0], None]}),
    "ranking": lambda: mf.analysis.mutual_information(network(), EVIL[0]),
    "sensitivity": lambda: mf.analysis.sensitivity(network(), {EVIL[0]: STATES[0]}, SEEN),
    "fit": lambda: mf.fit(network(), mf.sample(network(), 60, rng=0)).fit_report,
    "fit undirected": lambda: boltzmann().fit_report,
    "data": lambda: mf.learning.encode(mf.sample(network(), 9, rng=0).to_frame()),
    "structure": lambda: mf.learn_structure(mf.sample(network(), 90, rng=0)),
    "cpdag": lambda: mf.graphs.cpdag(network().to_networkx()),
    "mixed graph": lambda: mf.graphs.MixedGraph(EVIL, directed=nx.DiGraph([(EVIL[0], EVIL[1])])),
    "joint": lambda: mf.graphs.JointTable.of(network()),
    "field": field,
    "gaussian marginals": lambda: mf.marginals(field(), {EVIL[0]: 1.0}),
    "gaussian decoding": lambda: mf.decode(field()),
    "gaussian samples": lambda: mf.sample(field(), 3, rng=0),
    "gaussian path": lambda: mf.learn_structure(numbers(), method="graphical_lasso"),
    "moments": lambda: mf.learning.GaussianMoments(np.eye(4), 50, variables=EVIL),
    "mixed network": mixed,
    "mixed marginals": lambda: mf.marginals(mixed(), {EVIL[1]: 0.5}),
    "mixed samples": lambda: mf.sample(mixed(), 4, rng=0),
    "weights": lambda: tagger().explain_weights(),
    "training": lambda: tagger().report_,
    "entities": lambda: mf.sequence.entity_report([[f"B-{EVIL[0]}"]], [[f"B-{EVIL[1]}"]]),
    "tokens": lambda: mf.sequence.token_report([[STATES[0]]], [[STATES[1]]]),
    "tree": lambda: mf.grammar.Tree("<img/src=x>", [mf.grammar.Tree("</td><script>", ["<i>"])]),
    "translations": lambda: aligner().table_,
    "forecast": lambda: series().forecast(2),
    "responses": lambda: series().impulse_responses(2),
    "causality": lambda: series().granger_tests(),
    "autoregression": series,
    "logic": lambda: mf.MarkovLogic("Knows(person, person)  1.1 Knows(x, y) => Knows(y, x)").ground(
        'Knows("<img src=x>", "&lt;b&gt;")', query=["Knows"]
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_names_stay_names(name: str):
    answer = MADE[name]()
    seen = Tags(answer._repr_html_())
    assert not FORBIDDEN & set(map(str.lower, seen.tags)), "a name became a tag"
    assert not [a for a, _ in seen.attributes if a.lower().startswith("on")], "a name became code"
    assert not [v for a, v in seen.attributes if a in {"href", "src"} and v and "alert" in v]
    ax = answer.plot()
    ax.figure.canvas.draw()  # a dollar is no formula
    plt.close("all")


def test_names_are_there_to_be_read():
    """What is escaped once is read back as it was; twice would show the escapes."""
    for name in ("marginals", "decoding", "distribution", "gaussian marginals", "samples"):
        text = Tags(MADE[name]()._repr_html_()).text
        assert (EVIL[0] in text and EVIL[3] in text) or (EVIL[0] in text and name == "distribution"), name


def test_a_bundle_of_types_is_that_of_the_table():
    """Notebooks ask for `_repr_mimebundle_` first; without one they take `_repr_html_` and the text."""
    answer = MADE["marginals"]()
    assert not hasattr(answer, "_repr_mimebundle_")
    assert "image/svg+xml" not in answer._repr_html_()
