"""Every registered method for Gaussian fields, against dense algebra: fields by kind, evidence by kind.

A method answers or refuses in one sentence; what it answers is judged by the guarantee it gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.registry import methods
from tests.inference.gaussian.dense import Truth, truth

SMALL = {"conjugate_gradient": {"n_samples": 400, "n_probes": 40}, "gibbs": {"sweeps": 1600}}
VERBS = ("marginals", "log_partition", "decode", "sample")


def dense_field() -> mf.GaussianField:
    rng = np.random.default_rng(7)
    half = rng.normal(size=(6, 6)) * 0.3
    return mf.GaussianField(half @ half.T + np.eye(6), rng.normal(size=6), list("abcdef"))


def network() -> mf.LinearGaussianNetwork:
    net = mf.LinearGaussianNetwork()
    net.add_variable("x", bias=1.0, variance=2.0)
    net.add_variable("y", ["x"], [0.7], variance=0.5)
    net.add_variable("z", ["x"], [-0.4], bias=2.0, variance=1.5)
    return net


FIELDS: dict[str, Any] = {
    "dense": dense_field(),
    "tree": network(),
    "torus": mf.GaussianMarkovField.lattice((4, 5), kind="matern", range=3, periodic=True, mean=0.5),
    "free": mf.GaussianMarkovField.lattice((4, 4), kind="matern", kappa=1.0, tau=0.8, alpha=1),
    "signed": mf.GaussianMarkovField.lattice((3, 4), kind="car", rho=-0.5),
    "walk": mf.GaussianMarkovField.lattice(8, kind="rw1"),
    "round": mf.GaussianMarkovField.lattice((3, 5), kind="rw1", periodic=True).sum_to_zero(),
    "held": mf.GaussianMarkovField.lattice((3, 3), kind="car").constrained({(0, 0): 1.0, (1, 1): -2.0}, 0.3),
}
EVIDENCE = ("none", "hard", "noisy", "both", "everywhere")


def evidence_of(kind: str, n: int) -> tuple[dict[int, float], dict[int, tuple[float, float]]]:
    hard = {0: 0.7, n - 1: -0.4} if kind in ("hard", "both") else {}
    noisy = {1: (1.2, 0.3), n // 2: (-0.5, 0.8)} if kind in ("noisy", "both") else {}
    if kind == "everywhere":
        noisy = {v: (float(np.sin(v)), 0.4) for v in range(n)}
    return hard, noisy


def asked(name: str, kind: str) -> tuple[Any, dict[Any, Any], Truth | None, np.ndarray]:
    field = FIELDS[name]
    form = field if isinstance(field, mf.GaussianField) else field.compile()
    n = form.n_variables
    hard, noisy = evidence_of(kind, n)
    constraints = getattr(form, "constraints", None)
    rows = None if constraints is None or not constraints.shape[0] else constraints.toarray()
    null = getattr(form, "null_space", np.zeros((n, 0)))
    held = np.vstack([np.eye(n)[[*hard, *noisy]], np.zeros((0, n)) if rows is None else rows])
    proper = np.linalg.matrix_rank(held @ null, tol=1e-9) == null.shape[1]
    values = None if rows is None else form.values
    found = truth(form.precision.toarray(), form.information, hard, noisy, rows, values) if proper else None
    names = form.variables
    return field, {names[v]: x for v, x in (hard | noisy).items()}, found, np.array(list(hard), int)


def ask(verb: str, field: Any, evidence: Any, method: str) -> Any:
    settings = SMALL.get(method)
    chosen = method if settings is None else methods(verb, "GaussianField")[method](**settings)
    words = (300,) if verb == "sample" else ()
    extra = {} if verb == "decode" else {"rng": 5}
    return getattr(mf, verb)(field, *words, evidence=evidence, method=chosen, **extra)


CASES = [
    (verb, name, field, kind)
    for verb in VERBS
    for name in methods(verb, "GaussianField")
    for field in FIELDS
    for kind in EVIDENCE
]


@pytest.mark.parametrize(("verb", "method"), sorted({(v, m) for v, m, _, _ in CASES}))
@pytest.mark.parametrize("name", FIELDS)
def test_every_method_is_right_or_refuses(verb: str, method: str, name: str) -> None:
    answered = 0
    for kind in EVIDENCE:
        field, evidence, found, hard = asked(name, kind)
        try:
            answer = ask(verb, field, evidence, method)
        except mf.ModelError as error:
            message = str(error)
            assert "\n" not in message
            if method == "sparse_cholesky":
                assert found is None and "is intrinsic" in message
            continue
        answered += 1
        if found is None:
            assert verb == "log_partition"  # over what is at right angles to open directions
            continue
        check(verb, answer, found, hard)
    assert answered or method != "sparse_cholesky"


def check(verb: str, answer: Any, found: Truth, hard: np.ndarray) -> None:
    if verb == "marginals":
        check_marginals(answer, found)
    elif verb == "log_partition":
        check_log_partition(answer, answer.log_partition, answer.standard_error, found)
    elif verb == "decode":
        np.testing.assert_allclose(answer.values, found.mean, atol=1e-6)
        assert answer.gap == 0 or answer.gap >= 0
        assert answer.converged
    else:
        assert answer.values.shape == (300, len(found.mean))
        np.testing.assert_allclose(answer.values[:, hard], np.tile(found.mean[hard], (300, 1)), atol=1e-12)
        # Chains that have mixed may still be correlated: as if of 30 draws.
        effective = 300 if answer.n_chains == 0 else 30
        error = np.sqrt(np.maximum(np.diag(found.covariance), 0) / effective) + 1e-7
        assert (np.abs(answer.values.mean(axis=0) - found.mean) < 6 * error).all()


def check_marginals(answer: Any, found: Truth) -> None:
    variance = np.diag(found.covariance)
    says = answer.guarantees
    if answer.mean_errors is None:
        np.testing.assert_allclose(answer.means, found.mean, atol=1e-6)
    else:
        assert (np.abs(answer.means - found.mean) <= 6 * answer.mean_errors + 1e-9).all()
    if says["variances"] == "exact":
        np.testing.assert_allclose(answer.variances, variance, atol=1e-8)
    elif says["variances"] == "lower":
        assert (answer.variances <= variance + 1e-9).all() and (answer.variances >= 0.2 * variance).all()
    elif answer.variance_errors is not None:
        assert (np.abs(answer.variances - variance) <= 6 * answer.variance_errors + 1e-9).all()
    check_log_partition(answer, answer.log_partition, answer.log_partition_error, found)


def check_log_partition(answer: Any, value: float, error: float | None, found: Truth) -> None:
    if answer.guarantee == "exact":
        assert value == pytest.approx(found.log_partition, abs=1e-7)
    low, high = answer.log_partition_bounds
    assert low - 1e-7 <= found.log_partition <= high + 1e-7
    if error is not None:
        assert abs(value - found.log_partition) <= 6 * error + 1e-6


@pytest.mark.parametrize("verb", VERBS)
def test_seeds_and_settings(verb: str) -> None:
    field = FIELDS["free"]
    for name, method in methods(verb, "GaussianField").items():
        assert method.name == name and verb in method.verbs and isinstance(method.exact, bool)
        assert method() == method()
        if name == "toeplitz_fft":
            continue
        one, two = (ask(verb, field, {0: 1.0}, name) for _ in range(2))
        for part in ("means", "variances", "values", "log_partition"):
            if hasattr(one, part):
                np.testing.assert_array_equal(getattr(one, part), getattr(two, part))
        assert one.method == name and one.seconds >= 0 and repr(one) and one._repr_html_()
        for part in ("means", "variances", "values"):
            if hasattr(one, part):
                with pytest.raises((ValueError, AttributeError)):
                    setattr(one, part, None)


def test_nothing_to_draw_and_nothing_free() -> None:
    field = FIELDS["dense"]
    known = dict.fromkeys("abcdef", 0.5)
    for verb in VERBS:
        for name in methods(verb, "GaussianField"):
            if name == "toeplitz_fft":
                continue
            answer = ask(verb, field, known, name)
            if hasattr(answer, "variances"):
                assert (answer.variances == 0).all() and (answer.means == 0.5).all()
            if verb == "sample":
                assert len(mf.sample(field, 0, method=name, rng=0)) == 0


REFUSALS = [
    ("gaussian_belief_propagation", "walk", {0: (1.0, 0.1)}, None),
    ("gaussian_belief_propagation", "walk", {}, "takes no directions that nothing holds: use sparse_cholesky"),
    ("conjugate_gradient", "held", {}, "takes no constraints: use sparse_cholesky"),
    ("gibbs", "held", {}, "takes no constraints: use sparse_cholesky"),
    ("toeplitz_fft", "free", {}, "the same at every site of a torus"),
    ("toeplitz_fft", "torus", {0: 1.0}, "the same at every site of a torus"),
]


@pytest.mark.parametrize(("method", "name", "evidence", "message"), REFUSALS)
def test_refusals(method: str, name: str, evidence: Any, message: str | None) -> None:
    if message is None:
        mf.marginals(FIELDS[name], evidence, method=method)
        return
    with pytest.raises(mf.ModelError, match=message):
        mf.marginals(FIELDS[name], evidence, method=method)
