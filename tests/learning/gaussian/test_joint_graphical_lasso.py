"""Graphs of several classes: conditions of the minimum, separate lassos, classes that share, data in all shapes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.learning.gaussian.joint_graphical_lasso import JointGraphicalLasso
from markovfield.learning.gaussian.joint_solver import minimise_jointly
from markovfield.learning.gaussian.lasso_solver import minimise
from tests.learning.gaussian.test_lasso_solver import covariance


@given(st.integers(1, 3), st.integers(1, 6), st.integers(0, 10**6), st.floats(0.0, 0.3), st.floats(0.0, 0.5))
def test_the_conditions_of_the_minimum_hold(classes, n, seed, penalty, group):
    s = np.stack([covariance(n, seed + k) for k in range(classes)])
    s /= np.sqrt(np.einsum("kii->ki", s)[:, :, None] * np.einsum("kii->ki", s)[:, None, :])
    shares = np.random.default_rng(seed).uniform(0.5, 1.5, classes)
    found = minimise_jointly(s, shares, penalty, group, tolerance=1e-12)
    assert found.converged
    x = found.precisions
    g = shares[:, None, None] * (s - np.stack([np.linalg.inv(part) for part in x]))
    for i in range(n):
        assert np.abs(g[:, i, i]).max() <= 1e-5
        for j in range(i):
            length = np.linalg.norm(x[:, i, j])
            if length > 0:
                wanted = g[:, i, j] + group * x[:, i, j] / length
                there = x[:, i, j] != 0
                assert np.abs(wanted + penalty * np.sign(x[:, i, j]))[there].max() <= 1e-4
                assert np.abs(g[:, i, j])[~there].max(initial=0.0) <= penalty + 1e-4
            else:
                over = np.maximum(np.abs(g[:, i, j]) - penalty, 0.0)
                assert np.linalg.norm(over) <= group + 1e-4


def test_without_a_group_penalty_they_are_lassos_by_themselves():
    s = np.stack([covariance(8, k, rows=100) for k in range(3)])
    joint = minimise_jointly(s, np.ones(3), 0.2, 0.0, tolerance=1e-12)
    for part, own in zip(joint.precisions, s, strict=True):
        assert np.abs(part - minimise(own, 0.2, tolerance=1e-12).precision.toarray()).max() <= 1e-5


def test_one_class_adds_the_penalties():
    s = covariance(8, 4, rows=100)
    joint = minimise_jointly(s[None], np.ones(1), 0.1, 0.15, tolerance=1e-12)
    assert np.abs(joint.precisions[0] - minimise(s, 0.25, tolerance=1e-12).precision.toarray()).max() <= 1e-5


@pytest.fixture(scope="module")
def years():
    """A chain of six in each of three years, with couplings of their own."""
    rng = np.random.default_rng(0)
    parts = {}
    for year in (2001, 2002, 2003):
        x = np.eye(6) * 2
        for i in range(5):
            x[i, i + 1] = x[i + 1, i] = -rng.uniform(0.5, 0.9)
        parts[year] = dict(zip("abcdef", mf.GaussianField(x).sample(300, rng=year).T, strict=True))
    return parts


def test_classes_come_as_a_column_a_dict_or_a_list(years):
    frame = pd.concat([pd.DataFrame(p).assign(year=y) for y, p in years.items()])
    method = JointGraphicalLasso(0.02, 0.25, by="year")
    one = mf.learn_structure(frame, method=method)
    two = mf.learn_structure(years, method=JointGraphicalLasso(0.02, 0.25))
    three = mf.learn_structure([pd.DataFrame(p) for p in years.values()], method=JointGraphicalLasso(0.02, 0.25))
    assert list(one.details.fields) == list(two.details.fields) == list(years)
    assert list(three.details.fields) == [0, 1, 2]
    chain = {frozenset(e) for e in zip("abcde", "bcdef", strict=True)}
    for learned in (one, two, three):
        assert {frozenset(e) for e in learned.edges} == chain
        assert learned.details.gap <= 1e-8
        for graph in learned.details.graphs.values():
            assert {frozenset(e) for e in graph.edges} == chain
    field = one.details.fields[2002]
    assert np.allclose(field.mean, [np.mean(c) for c in years[2002].values()])
    assert one.details.to_frame()["edges"].tolist() == [5, 5, 5]


def test_what_is_wrong_is_said(years):
    both = pd.DataFrame(years[2001]).assign(year=1)
    cases = [
        (both, JointGraphicalLasso(by="year"), "at least two classes, and column 'year' has one"),
        (both, JointGraphicalLasso(by="month"), "no column 'month' to tell classes by"),
        (both.to_numpy(), JointGraphicalLasso(), "needs by=..., or a list or dict of at least two tables"),
    ]
    for data, method, match in cases:
        with pytest.raises(ModelError, match=match):
            mf.learn_structure(data, method=method)
    with pytest.raises(ModelError, match="must not both be 0"):
        JointGraphicalLasso(0.0, 0.0)
    with pytest.raises(ModelError, match=r"named by a str or an int, got 2.5"):
        JointGraphicalLasso(by=2.5)
    with pytest.raises(ModelError, match="weights of joint_graphical_lasso are"):
        mf.learn_structure(years, method=JointGraphicalLasso(), weights=[1.0])
