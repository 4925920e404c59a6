"""A method is tested by being registered; what `auto` will choose is told before it is asked."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from tests.conformance.asking import (
    ask,
)
from tests.strategies import (
    random_spec,
)


@pytest.mark.parametrize("verb", ["marginals", "decode", "sample", "log_partition"])
def test_methods_are_registered(verb: str):
    from markovfield.inference.core.registry import methods

    found = methods(verb)
    assert {"enumeration", "junction_tree"} <= set(found)
    if verb == "marginals":
        assert {"belief_propagation", "variable_elimination"} <= set(found)
    for name, method in found.items():
        assert method.name == name and verb in method.verbs and isinstance(method.exact, bool)
        assert method() == method(), "methods are frozen dataclasses, equal when their settings are"


class TestExplain:
    @pytest.mark.parametrize("verb", ["marginals", "decode", "sample", "log_partition"])
    def test_says_what_auto_will_do(self, verb: str):
        spec = random_spec(4, hard=False)
        told = mf.explain(spec.build(), verb)
        settings_ = {"size": 1, "rng": 0} if verb == "sample" else {}
        answer = ask(verb, "auto", spec, {}, **settings_)
        for field in ("log2_bytes", "log2_operations", "width"):
            assert np.isfinite(getattr(told, field))
        if hasattr(answer, "method"):
            assert told.method == answer.method

    def test_a_wide_model_is_refused_before_anything_is_allocated(self):
        """Two cliques of 47 that share 46 variables."""
        n = 48
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        pairs = [(i, j) for i in range(n) for j in range(i) if (i, j) != (n - 1, 0)]
        net.add_factors(pairs, [[1.0, 2.0], [2.0, 1.0]])
        method = mf.methods.JunctionTree(search=0.0)
        told = mf.explain(net, "marginals", method=method)
        assert told.width == n - 2 and told.log2_bytes > n - 2 and not told.fits
        with pytest.raises(mf.MemoryLimitError, match="width 46"):
            mf.marginals(net, method=method)

    def test_auto_goes_on_without_exactness_and_says_so(self):
        """A complete graph of 48: too wide for a tree, so bounds and messages answer."""
        n, rng = 48, np.random.default_rng(0)
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        for i in range(n):
            for j in range(i):
                net.add_factor([i, j], log_table=0.05 * rng.normal(size=(2, 2)))
        told = mf.explain(net, "marginals")
        answer = mf.marginals(net)
        assert told.method == answer.method == "sandwich" and not told.fits and "approximate" in told.reason
        low, high = answer.log_partition_bounds
        assert low <= answer.log_partition <= high < low + 10 and answer.guarantee == "approximate"
        assert mf.log_partition(net).log_partition_bounds == (low, high)
        decoded = mf.decode(net, time_limit=2.0)
        assert decoded.score == pytest.approx(net.compile().score(decoded.assignment))
        with pytest.raises(mf.MemoryLimitError, match=r"work_limit|memory_limit"):
            mf.decode(net, n_best=3)
        told, drawn = mf.explain(net, "sample"), mf.sample(net, 8, rng=0)
        assert told.method == drawn.method == "swendsen_wang" and drawn.guarantee == "approximate" and drawn.n_chains

    def test_endless_work_does_not_fit_either(self):
        """One clique of 48 needs next to no memory, but 2^48 states to sum over."""
        n = 48
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        net.add_factors([(i, j) for i in range(n) for j in range(i)], [[1.0, 2.0], [2.0, 1.0]])
        assert not mf.explain(net, "marginals", method=mf.methods.JunctionTree(search=0.0)).fits
