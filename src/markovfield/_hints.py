"""Names that people try, from other libraries and by guess, and what is here for them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["TRIED", "TRIED_OF_MODELS", "NoSuchAttribute", "module_hint"]

_QUERY = "mf.query(net, targets, evidence) for a few variables, mf.marginals(net, evidence) for all"
_DECODE = "mf.decode(net, evidence)"
_READ = "mf.read(path), by the ending of the file"
_CPT = "net.add_cpt(variable, parents, table)"

_VERBS = {
    "predict_proba": "mf.predict(net, frame, targets), which gives probabilities as well",
    "map": _DECODE,
    "map_query": _DECODE,
    "mpe": _DECODE,
    "most_probable_explanation": _DECODE,
    "viterbi": _DECODE,
    "posterior": _QUERY,
    "simulate": "mf.sample(net, size, evidence)",
    "get_partition_function": "mf.log_partition(net, evidence)",
    "partition_function": "mf.log_partition(net, evidence)",
}
# By what is asked of the package.
TRIED = {
    **_VERBS,
    "infer": _QUERY,
    "Inference": _QUERY,
    "LazyPropagation": _QUERY,
    "BayesianModel": "mf.BayesianNetwork",
    "BayesNet": "mf.BayesianNetwork",
    "DiscreteBayesianNetwork": "mf.BayesianNetwork",
    "LinearGaussianBayesianNetwork": "mf.LinearGaussianNetwork",
    "MarkovModel": "mf.MarkovNetwork",
    "MarkovRandomField": "mf.MarkovNetwork",
    "MRF": "mf.MarkovNetwork",
    "DiscreteMarkovNetwork": "mf.MarkovNetwork",
    "TabularCPD": _CPT,
    "DiscreteFactor": "net.add_factor(variables, table)",
    "BIFReader": _READ,
    "UAIReader": _READ,
    "XMLBIFReader": _READ,
    "read_model": _READ,
    "load_model": "mf.load(path) for what mf.save wrote, mf.read(path) for all formats",
    "loadBN": _READ,
    "saveBN": "mf.write(net, path)",
    "fastBN": "mf.BayesianNetwork({name: states}), then net.add_cpt(variable, parents, table)",
    "BNLearner": "mf.learn_structure(data) for arcs, mf.fit(net, data) for tables",
    "HillClimbSearch": "mf.learn_structure(data, 'hill_climbing')",
    "MaximumLikelihoodEstimator": "mf.fit(net, data)",
    "BayesianEstimator": "mf.fit(net, data, method='dirichlet')",
    "CRF": "mf.ChainCRF",
    "LinearChainCRF": "mf.ChainCRF",
    "CategoricalHMM": "mf.HMM",
    "MultinomialHMM": "mf.HMM",
    "GaussianHMM": "mf.HMM with Gaussian emissions",
    "learn": "mf.fit(net, data) for tables, mf.learn_structure(data) for arcs",
    "train": "mf.fit(net, data)",
}
# By what is asked of a model.
TRIED_OF_MODELS = {
    **_VERBS,
    "query": _QUERY,
    "infer": _QUERY,
    "inference": _QUERY,
    "marginals": "mf.marginals(net, evidence)",
    "marginal": "mf.marginals(net, evidence), whose answer[variable] is one",
    "predict": "mf.predict(net, frame, targets)",
    "decode": _DECODE,
    "sample": "mf.sample(net, size, evidence)",
    "fit": "mf.fit(net, data), which gives a new network",
    "log_partition": "mf.log_partition(net, evidence)",
    "probability": "mf.probability(net, event, evidence)",
    "explain": "mf.explain(net, verb)",
    "add_edge": f"{_CPT}, or net.set_parents(variable, parents) without numbers; of a Markov network net.add_factor",
    "add_edges_from": "net.set_parents(variable, parents) for each variable",
    "addArc": "net.set_parents(variable, parents)",
    "add_node": "net.add_variable(name, states)",
    "add_nodes_from": "net.add_variable(name, states) for each variable",
    "add": "net.add_variable(name, states)",
    "add_cpds": _CPT,
    "get_cpds": "net.cpt(variable)",
    "cpds": "net.cpt(variable)",
    "add_factors_from": "net.add_factor(variables, table)",
    "nodes": "net.variables",
    "edges": "net.arcs of a Bayesian network",
    "names": "net.variables",
    "check_model": "net.compile(), which raises where something is missing",
    "save": "mf.save(net, path), or mf.write(net, path) for other formats",
    "write": "mf.write(net, path)",
    "draw": "mf.plot.graph(net)",
    "to_dataframe": "mf.marginals(net).to_frame()",
}


def module_hint(name: str, known: Iterable[str]) -> str:
    """What to say to ``mf.name``, which does not exist."""
    if name in TRIED:
        return f"there is no mf.{name}: use {TRIED[name]}"
    close = [] if name.startswith("_") else get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"module 'markovfield' has no attribute {name!r}{f'; did you mean mf.{close[0]}?' if close else ''}"


class NoSuchAttribute(AttributeError):
    """What ``model.name`` raises where there is none; its sentence is made when somebody reads it.

    Verbs ask models what they have (``getattr(model, "answered_by", None)``), and that must cost nothing: to look for
    names that are alike takes longer than a small network.

    Examples
    --------
    >>> str(NoSuchAttribute(list, "appendd"))
    "'list' object has no attribute 'appendd'; did you mean append?"
    """

    def __init__(self, cls: type, attribute: str) -> None:
        super().__init__(cls, attribute)
        self.cls, self.attribute = cls, attribute

    def __str__(self) -> str:
        kind, name = self.cls.__name__, self.attribute
        if name in TRIED_OF_MODELS:
            return f"{kind} has no {name}: use {TRIED_OF_MODELS[name]}"
        close = [] if name.startswith("_") else get_close_matches(name, dir(self.cls), n=1, cutoff=0.75)
        return f"{kind!r} object has no attribute {name!r}{f'; did you mean {close[0]}?' if close else ''}"
