"""Models in the library's own save format (`markovfield.files` has the format itself)."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import FormatError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import KIND_NAMES, TABLE, cap_of, literal_of
from markovfield.factors.structure import Structure
from markovfield.files import PathLike, read_archive, write_archive
from markovfield.io.real_valued import KINDS, real_valued, restored
from markovfield.models import BayesianNetwork, MarkovNetwork
from markovfield.names import Names, normalise_states

__all__ = ["load", "save"]

Model = FactorGraph | MarkovNetwork | BayesianNetwork

_VERSION = 1
_DTYPES = {
    "cardinalities": "<i4",
    "scope_offsets": "<i8",
    "scopes": "<i4",
    "table_offsets": "<i8",
    "table_strides": "<i8",
    "child": "<i4",
    "kind": "|i1",
    "log_tables": "<f8",
}
# Estimators that save themselves, and where their classes are.
_ESTIMATORS = {
    "BernoulliRBM": "markovfield.learning.boltzmann.transformer",
    "ChainCRF": "markovfield.sequence.chain.crf",
    "ChainTagger": "markovfield.sequence.tagger",
    "HMM": "markovfield.sequence.hmm.hmm",
    "MarkovLogic": "markovfield.logic.markov_logic",
    "ChainSSVM": "markovfield.sequence.margin.chain_ssvm",
    "MEMM": "markovfield.sequence.memm.memm",
    "PCFG": "markovfield.grammar.pcfg",
    **{
        name: f"markovfield.{module}"
        for module, names in {
            "alignment.alignment_crf": ("AlignmentCRF",),
            "alignment.alignment_ssvm": ("AlignmentSSVM",),
            "alignment.hmm_aligner": ("HMMAligner",),
            "alignment.ibm": ("IBM1", "IBM2"),
            "alignment.symmetric": ("SymmetricAligner",),
            "structured.classifier": ("StructuredClassifier",),
            "structured.latent_margin": ("LatentSSVM",),
            "structured.ranking_ssvm": ("RankingSSVM",),
            "structured.margin_estimators": ("GraphSSVM", "MultiLabelSSVM", "MulticlassSSVM"),
            "structured.estimators": (
                "GraphCRF",
                "HierarchicalClassifier",
                "LatentCRF",
                "MultiLabelCRF",
                "MulticlassCRF",
            ),
            "sequence.conditional.estimators": ("FactorialCRF", "SkipChainCRF"),
            "grammar.grammar_ssvm": ("GrammarSSVM",),
            "dependency.dependency_parser": ("DependencyParser",),
            "grammar.discriminative.grammar_crf": ("GrammarCRF",),
            "grammar.span_parser": ("SpanParser",),
            "sequence.segments.semi_markov_crf": ("SemiMarkovCRF",),
            "sequence.strings.ctc_labeller": ("CTCLabeller",),
            "sequence.strings.edit_model": ("EditModel",),
            "time_series.state_space": ("LinearStateSpace",),
            "time_series.vector_autoregression": ("VectorAutoregression",),
            "vision.grid_crf": ("GridCRF",),
            "vision.grid_ssvm": ("GridSSVM",),
        }.items()
        for name in names
    },
}
_CLASSES: dict[str, type[Model]] = {c.__name__: c for c in (FactorGraph, MarkovNetwork, BayesianNetwork)}


def save(model: Any, path: PathLike) -> None:
    """Save a model to a file that `load` reads back as the same class, with the same names and numbers.

    The file appears under its name only once it is complete and on the disk: an interrupted save leaves the
    old one.

    Parameters
    ----------
    model
        A `FactorGraph`, `MarkovNetwork` or `BayesianNetwork`; another model that compiles to a factor graph, such as
        `Ising`, is saved as that graph. A `GaussianField`, a `LinearGaussianNetwork`, a `ConditionalGaussianNetwork` or
        a `MixedGraphicalModel` will do as well, and a `GaussianMarkovField`, which is saved as its field. State names
        must be str, int, finite float, bool or None. A fitted estimator with a ``save`` of its own (`ChainCRF`, ...)
        will do, too, and so will a `MarkovLogic`.
    path
        Where to save; any name, ``.mfz`` by custom.

    Raises
    ------
    ModelError
        For another kind of model, or a state name that JSON cannot hold.

    Notes
    -----
    Shared tables and clauses are kept as what they are, so the file is about as large as the model in memory.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield as mf
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pair.mfz"
    >>> net = mf.MarkovNetwork({"A": ["low", "high"], 7: 2})
    >>> _ = net.add_factor(["A", 7], [[3.0, 1.0], [0.0, 3.0]])
    >>> mio.save(net, path)
    >>> mio.load(path)
    MarkovNetwork(2 variables, 1 factor)
    """
    if type(model).__name__ in _ESTIMATORS and hasattr(model, "save"):
        model.save(path)
        return
    real = real_valued(model)
    if real is not None:
        write_archive(path, _VERSION, *real)
        return
    name = next((n for n, c in _CLASSES.items() if isinstance(model, c)), None)
    graph = model.compile() if hasattr(model, "compile") else None
    if not isinstance(graph, FactorGraph):
        raise ModelError(f"save() takes a {', '.join(_CLASSES)} or what compiles to one, got {type(model).__name__}")
    name = name or "FactorGraph"
    described = _manifest(graph.structure, name)
    if isinstance(model, BayesianNetwork):
        described["name"] = model.name
        described["properties"] = [[variable, list(texts)] for variable, texts in model.properties.items()]
    arrays = {key: np.asarray(getattr(graph.structure, key, graph.log_tables), dtype) for key, dtype in _DTYPES.items()}
    write_archive(path, _VERSION, described, arrays)


def _manifest(structure: Structure, name: str) -> dict[str, Any]:
    names = structure.names
    variables = [int(v) if isinstance(v, np.integer) else v for v in names.variables]
    for position, states in names.states.items():
        for state in states:
            finite = not isinstance(state, float) or math.isfinite(state)
            if not (finite and (state is None or type(state) in (str, int, float, bool))):
                raise ModelError(
                    f"state {state!r} of variable {names.variables[position]!r} cannot be saved; "
                    "name states by str, int, finite float, bool or None"
                )
    return {
        "class": name,
        # None: the variables are named by their positions, however many there are.
        "variables": None if isinstance(names.variables, range) else variables,
        "states": [[position, list(states)] for position, states in sorted(names.states.items())],
    }


def load(path: PathLike) -> Any:
    """Load a model that `save`, or an estimator's own ``save``, wrote.

    Loading runs no code from the file, and allocates nothing that the file's own size does not bound.

    Raises
    ------
    FormatError
        When the file is no such archive, is damaged, or was written by a newer version of the format.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield as mf
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "coin.mfz"
    >>> net = mf.BayesianNetwork({"coin": ["heads", "tails"]})
    >>> net.add_cpt("coin", [], [0.5, 0.5])
    >>> mio.save(net, path)
    >>> mio.load(path).cpt("coin").tolist()
    [0.5, 0.5]
    """
    return read_archive(path, _VERSION, _assemble)


def _assemble(manifest: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Any:
    name = manifest.get("class")
    if isinstance(name, str) and name in _ESTIMATORS:
        return getattr(import_module(_ESTIMATORS[name]), name).from_archive(manifest, arrays)
    if isinstance(name, str) and name in KINDS:
        return restored(manifest, arrays)
    if not isinstance(name, str) or name not in _CLASSES:
        raise FormatError(f"it holds a {name!r}, expected one of {', '.join([*_CLASSES, *KINDS, *_ESTIMATORS])}")
    if arrays.keys() != _DTYPES.keys():
        raise FormatError(f"it must hold the vectors {', '.join(_DTYPES)} and no others")
    for key, dtype in _DTYPES.items():
        if arrays[key].dtype != np.dtype(dtype):
            raise FormatError(f"{key}.npy has the dtype {arrays[key].dtype.str}, expected {dtype}")
    _check_arrays(arrays)
    log_tables = arrays.pop("log_tables")
    names = _names(manifest, arrays["cardinalities"])
    structure = Structure.from_arrays(**arrays, n_cells=len(log_tables), names=names)
    graph = FactorGraph(structure, log_tables)
    graph.check_finite()
    if name == "FactorGraph":
        return graph
    if name == "MarkovNetwork":
        return MarkovNetwork.from_factor_graph(graph)
    factor = np.repeat(np.arange(structure.n_factors), np.diff(structure.scope_offsets))
    cards = structure.cardinalities[structure.scopes].astype(np.float64)
    plain = structure.kind == TABLE
    bits = np.bincount(factor, np.log2(cards), structure.n_factors)[plain]
    # The blocks of a noisy-max: one for each parent, one row for the child.
    rows = np.bincount(factor, np.where(structure.scopes == structure.child[factor], 1.0, cards), structure.n_factors)
    states = np.where(plain, 0, structure.cardinalities[structure.child])
    if bits.max(initial=0) > 60 or np.exp2(bits).sum() + float(rows @ states) > structure.n_cells + 0.5:
        # Strides of zero could make a table of any size out of one cell, and a network's tables are its own.
        raise FormatError("its tables are larger than its pool of log-potentials")
    network = BayesianNetwork.from_factor_graph(graph)
    network.name, network.properties = _texts(manifest, set(names.variables))
    return network


def _texts(manifest: dict[str, Any], variables: set[Any]) -> tuple[str | None, dict[Any, tuple[str, ...]]]:
    """A network's name and its properties; archives of before there were any have neither."""
    name, listed = manifest.get("name"), manifest.get("properties", [])
    if not (name is None or isinstance(name, str)) or not isinstance(listed, list):
        raise FormatError("its name is not a text, or its properties are not a list")
    found: dict[Any, tuple[str, ...]] = {}
    for entry in listed:
        pair = isinstance(entry, list) and len(entry) == 2 and type(entry[0]) in (str, int, type(None))
        if not pair or not isinstance(entry[1], list) or any(type(t) is not str for t in entry[1]):
            raise FormatError("its properties are not a list of pairs of a variable and its texts")
        if entry[0] is not None and entry[0] not in variables:
            raise FormatError("its properties speak of a variable that is not there")
        found[entry[0]] = tuple(entry[1])
    return name, found


def _check_arrays(arrays: dict[str, npt.NDArray[Any]]) -> None:
    """What `Structure.from_arrays` takes on trust: kernels index memory with these numbers."""
    cards, offsets, scopes = arrays["cardinalities"], arrays["scope_offsets"], arrays["scopes"]
    kind, child, strides = arrays["kind"], arrays["child"], arrays["table_strides"]
    n_factors, n_cells = len(arrays["table_offsets"]), len(arrays["log_tables"])
    steps = np.diff(offsets)
    if len(offsets) != n_factors + 1 or offsets[0] != 0 or (steps < 0).any() or offsets[-1] != len(scopes):
        raise FormatError("its scope offsets do not fit its scopes")
    if len(strides) != len(scopes) or len(kind) != n_factors or len(child) != n_factors:
        raise FormatError("its arrays differ in length")
    if len(scopes) and (scopes.min() < 0 or scopes.max() >= len(cards)):
        raise FormatError("a scope names a variable that is not there")
    if not ((kind >= 0) & (kind < len(KIND_NAMES))).all():
        raise FormatError("it has a kind of factor that this version does not know")
    factor = np.repeat(np.arange(n_factors), steps)
    card = cards[scopes].astype(np.float64)
    # In floating point, where nothing wraps around; the exact check that follows then cannot overflow either.
    table_ok = np.abs(strides.astype(np.float64)) * (card - 1) < n_cells
    clause_ok = (strides < card) & (strides >= -card)
    # Where a block starts, and its rows; the exact check that follows knows how long they are.
    block_ok = (np.abs(strides.astype(np.float64)) <= n_cells) & (card <= n_cells)
    # Caps say how many cells are read, and how large a counter of plain tables is.
    literal, cap = literal_of(strides), cap_of(strides)
    count_ok = (literal < card) & (literal >= -card) & (cap >= 1) & (cap < n_cells)
    distance_ok = (strides >= 1) & (strides < n_cells)
    fits = (table_ok, clause_ok, block_ok, count_ok, clause_ok, distance_ok)
    if not np.choose(kind[factor], fits).all():
        raise FormatError("a factor reads outside the pool of log-potentials")
    if n_factors and np.abs(arrays["table_offsets"].astype(np.float64)).max() > n_cells:
        raise FormatError("a factor starts outside the pool of log-potentials")
    has_child = np.bincount(factor[scopes == child[factor]], minlength=n_factors) > 0
    if not (has_child | (child == -1)).all():
        raise FormatError("a factor is marked as a distribution of a variable outside its scope")


def _names(manifest: dict[str, Any], cardinalities: npt.NDArray[Any]) -> Names:
    variables, listed = manifest.get("variables"), manifest.get("states")
    n = len(cardinalities)
    if variables is None:
        variables = range(n)
    elif not isinstance(variables, list) or any(type(v) not in (str, int) for v in variables):
        raise FormatError("its variables are not a list of str and int")
    elif len(variables) != n or len(set(variables)) != n:
        raise FormatError(f"it must name its {n} variables, each once")
    if not isinstance(listed, list):
        raise FormatError("its states are not a list")
    states: dict[int, tuple[Any, ...]] = {}
    for entry in listed:
        if not isinstance(entry, list) or len(entry) != 2 or type(entry[0]) is not int or not 0 <= entry[0] < n:
            raise FormatError("its states are not a list of pairs of a variable and its state names")
        position, names = entry
        if not isinstance(names, list) or any(isinstance(s, (list, dict)) for s in names):
            raise FormatError(f"the state names of variable {variables[position]!r} are not a list of plain values")
        if len(names) != cardinalities[position]:
            raise FormatError(
                f"variable {variables[position]!r} has {cardinalities[position]} states, not {len(names)}"
            )
        states[position] = normalise_states(variables[position], names)[1] or ()
    return Names(variables if isinstance(variables, range) else tuple(variables), states)
