"""A small diagnosis network: what is wrong with the heat pump?"""

from __future__ import annotations

from markovfield.models import BayesianNetwork

__all__ = ["diagnosis_network"]

_STATES = {
    "weather": ["mild", "cold", "freezing"],
    "filter": ["clean", "clogged"],
    "refrigerant": ["full", "low"],
    "compressor": ["sound", "worn"],
    "thermostat": ["true", "drifted"],
    "airflow": ["good", "weak"],
    "coil": ["dry", "iced"],
    "heating": ["full", "reduced", "none"],
    "room": ["warm", "cool", "cold"],
    "noise": ["quiet", "rattling"],
    "bill": ["usual", "high"],
    "light": ["off", "on"],
}


def diagnosis_network() -> BayesianNetwork:
    """A network of twelve variables about a heat pump: weather and four parts, what they cause, what one notices.

    The causes are ``weather``, ``filter``, ``refrigerant``, ``compressor`` and ``thermostat``; between them and what
    the owner can see stand ``airflow``, ``coil`` and ``heating``; the owner notices ``room``, ``noise``, ``bill`` and
    ``light``. Structure and numbers are made up for this library.

    Returns
    -------
    BayesianNetwork
        12 variables with named states, 13824 joint states.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.datasets import diagnosis_network
    >>> net = diagnosis_network()
    >>> net
    BayesianNetwork(12 variables, 16 arcs)
    >>> answer = mf.marginals(net, evidence={"room": "cold", "noise": "rattling"})
    >>> round(answer.probability_of("compressor", "worn"), 2)
    0.65
    """
    net = BayesianNetwork(_STATES)
    net.add_cpt("weather", [], [0.50, 0.35, 0.15])
    net.add_cpt("filter", [], [0.80, 0.20])
    net.add_cpt("refrigerant", [], [0.92, 0.08])
    net.add_cpt("compressor", [], [0.93, 0.07])
    net.add_cpt("thermostat", [], [0.95, 0.05])
    net.add_cpt("airflow", ["filter"], [[0.95, 0.05], [0.30, 0.70]])
    net.add_cpt(
        "coil",
        ["weather", "refrigerant", "airflow"],
        [
            [[[0.99, 0.01], [0.97, 0.03]], [[0.90, 0.10], [0.80, 0.20]]],
            [[[0.95, 0.05], [0.85, 0.15]], [[0.65, 0.35], [0.45, 0.55]]],
            [[[0.85, 0.15], [0.65, 0.35]], [[0.40, 0.60], [0.20, 0.80]]],
        ],
    )
    net.add_cpt(
        "heating",
        ["compressor", "refrigerant", "coil"],
        [
            [[[0.96, 0.03, 0.01], [0.25, 0.60, 0.15]], [[0.30, 0.60, 0.10], [0.08, 0.52, 0.40]]],
            [[[0.35, 0.45, 0.20], [0.05, 0.50, 0.45]], [[0.10, 0.45, 0.45], [0.02, 0.23, 0.75]]],
        ],
    )
    net.add_cpt(
        "room",
        ["weather", "thermostat", "heating"],
        [
            [
                [[0.95, 0.04, 0.01], [0.80, 0.18, 0.02], [0.35, 0.45, 0.20]],
                [[0.55, 0.35, 0.10], [0.45, 0.40, 0.15], [0.20, 0.50, 0.30]],
            ],
            [
                [[0.92, 0.07, 0.01], [0.45, 0.45, 0.10], [0.04, 0.36, 0.60]],
                [[0.40, 0.45, 0.15], [0.20, 0.50, 0.30], [0.02, 0.28, 0.70]],
            ],
            [
                [[0.85, 0.13, 0.02], [0.20, 0.55, 0.25], [0.01, 0.14, 0.85]],
                [[0.30, 0.45, 0.25], [0.08, 0.42, 0.50], [0.01, 0.09, 0.90]],
            ],
        ],
    )
    net.add_cpt("noise", ["compressor", "coil"], [[[0.97, 0.03], [0.80, 0.20]], [[0.30, 0.70], [0.20, 0.80]]])
    net.add_cpt(
        "bill",
        ["weather", "heating"],
        [
            [[0.95, 0.05], [0.70, 0.30], [0.85, 0.15]],
            [[0.80, 0.20], [0.35, 0.65], [0.60, 0.40]],
            [[0.60, 0.40], [0.15, 0.85], [0.40, 0.60]],
        ],
    )
    net.add_cpt("light", ["refrigerant", "airflow"], [[[0.99, 0.01], [0.90, 0.10]], [[0.25, 0.75], [0.20, 0.80]]])
    return net
