"""Published deviances and degrees of freedom of the classic tables; letters are columns in the order of the file."""

from __future__ import annotations

import csv
import math
from itertools import combinations, product

import numpy as np
import pytest

import markovfield as mf
from markovfield.learning.tables.model_tables import model_dimension
from markovfield.models.generators import read_generators
from tests.data import data_path
from tests.learning.tables.naive import fitted, margin

# R's loglin: deviance and degrees of freedom.
PUBLISHED = [
    ("reinis", "A/B/C/D/E/F", 843.957, 57),
    ("reinis", "all 2-way", 47.351, 42),
    ("reinis", "all 3-way", 21.597, 22),
    ("reinis", "ACE/ADE/BC/F", 62.078, 49),
    ("reinis", "AC/AD/AE/BC/CE/DE/F", 64.92, 51),
    ("UCBAdmissions", "AC/BC", 21.736, 6),
    ("UCBAdmissions", "all 2-way", 20.204, 5),
    ("Titanic", "ABC/D", 671.96, 15),
    ("Titanic", "ABC/AD/BD/CD", 112.57, 10),
    ("Titanic", "ABC/ABD/ACD", 1.685, 4),
    ("dumping", "A/B/C", 32.611, 39),
    ("dumping", "all 2-way", 12.503, 18),
]


def read(name):
    with data_path("tables", f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = [k for k in rows[0] if k not in ("rownames", "Freq")]
    data = {letter: [r[k] for r in rows] for letter, k in zip("ABCDEFG", columns, strict=False)}
    return data, [float(r["Freq"]) for r in rows]


@pytest.mark.parametrize(("name", "generators", "deviance", "freedom"), PUBLISHED)
def test_published_deviances(name, generators, deviance, freedom):
    data, counts = read(name)
    net = mf.MarkovNetwork.from_generators({k: sorted(set(v)) for k, v in data.items()}, generators)
    made = mf.fit(net, data, "ipf", weights=counts)
    fit = mf.learning.goodness_of_fit(made, data, weights=counts)
    digits = 3 if deviance != round(deviance, 2) else 2
    assert round(fit.deviance, digits) == deviance
    assert fit.plain_degrees_of_freedom == freedom
    assert fit.degrees_of_freedom == freedom or name == "Titanic"
    same = made.fit_report.details.goodness_of_fit
    assert same.deviance == pytest.approx(fit.deviance, abs=1e-6) and same.pearson == pytest.approx(fit.pearson)


def test_titanic_has_fewer_degrees_of_freedom_on_its_support():
    """No children in the crew: two of the sixteen margins, four of the 32 cells are empty."""
    data, counts = read("Titanic")
    net = mf.MarkovNetwork.from_generators({k: sorted(set(v)) for k, v in data.items()}, "ABC/D")
    fit = mf.fit(net, data, "ipf", weights=counts).fit_report.details.goodness_of_fit
    # 28 cells are left, 14 margins of ABC and one of D describe them.
    assert fit.degrees_of_freedom == 28 - 14 - 1


def test_statistics_by_their_definitions():
    rng = np.random.default_rng(4)
    counts = rng.poisson(1.0, (2, 3, 2)).astype(float)
    scopes = [(0, 1), (1, 2), (0, 2)]
    expected = fitted(np.ones(counts.shape), scopes, [margin(counts, s) for s in scopes], 5000)
    states = np.indices(counts.shape).reshape(3, -1)
    data = dict(zip("ABC", states, strict=True))
    net = mf.MarkovNetwork.from_generators({"A": 2, "B": 3, "C": 2}, "all 2-way")
    made = mf.fit(net, data, mf.methods.IterativeProportionalFitting(tolerance=1e-12), weights=counts.ravel())
    fit = mf.learning.goodness_of_fit(made, data, weights=counts.ravel())
    seen, possible = counts > 0, expected > 1e-9
    assert fit.deviance == pytest.approx(
        2 * float((counts[seen] * np.log(counts[seen] / expected[seen])).sum()), abs=1e-6
    )
    assert fit.pearson == pytest.approx(
        float(((counts - expected)[possible] ** 2 / expected[possible]).sum()), abs=1e-5
    )
    assert fit.aic == pytest.approx(fit.log_likelihood - fit.n_parameters)
    assert fit.bic == pytest.approx(fit.log_likelihood - fit.n_parameters * math.log(counts.sum()) / 2)
    assert made.fit_report.bic == pytest.approx(fit.bic)


def test_p_value():
    fit = mf.learning.GoodnessOfFit(
        deviance=3.841458820694124, pearson=0.0, degrees_of_freedom=1, plain_degrees_of_freedom=1, log_likelihood=0.0,
        n_parameters=1, total=1.0,
    )  # fmt: skip
    assert fit.p_value == pytest.approx(0.05) and fit.pearson_p_value == 1.0


@pytest.mark.parametrize("seed", range(10))
def test_dimension_is_the_rank_of_the_design(seed):
    rng = np.random.default_rng(seed)
    n = 5
    cards = rng.integers(1, 4, n).tolist()
    scopes = [tuple(rng.permutation(n)[: rng.integers(1, 4)].tolist()) for _ in range(4)]
    states = np.indices(cards).reshape(n, -1)
    columns = [
        (np.ravel_multi_index(tuple(states[v] for v in s), [cards[v] for v in s])[:, None]
         == np.arange(np.prod([cards[v] for v in s]))).astype(float)
        for s in scopes
    ]  # fmt: skip
    assert model_dimension(cards, scopes) == np.linalg.matrix_rank(np.hstack(columns))


@pytest.mark.parametrize(
    ("name", "generators"), [("reinis", "all 2-way"), ("dumping", "AB/BC"), ("UCBAdmissions", "AC/BC")]
)
def test_poisson_regression(name, generators):
    """The same models as generalised linear ones, where statsmodels is installed."""
    sm = pytest.importorskip("statsmodels.api")
    data, counts = read(name)
    levels = {k: sorted(set(v)) for k, v in data.items()}
    net = mf.MarkovNetwork.from_generators(levels, generators)
    fit = mf.fit(net, data, "ipf", weights=counts).fit_report.details.goodness_of_fit
    columns = {(): np.ones(len(counts))}
    for generator in read_generators(generators, list(data)):
        for k in range(1, len(generator) + 1):
            for part in combinations(generator, k):
                for chosen in product(*(levels[v][1:] for v in part)):
                    key = tuple(zip(part, chosen, strict=True))
                    columns[key] = np.prod([np.array(data[v]) == x for v, x in key], axis=0).astype(float)
    glm = sm.GLM(counts, np.column_stack(list(columns.values())), family=sm.families.Poisson()).fit(tol=1e-12)
    assert fit.deviance == pytest.approx(glm.deviance, abs=1e-6)
    assert fit.pearson == pytest.approx(glm.pearson_chi2, abs=1e-5)
    assert fit.plain_degrees_of_freedom == glm.df_resid
