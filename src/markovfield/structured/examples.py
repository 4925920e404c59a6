"""Examples in NumPy archives (.npz): matrices, images and graphs, of one size or of many."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import numpy as np

from markovfield.arrays import offsets_of
from markovfield.exceptions import FormatError, ModelError
from markovfield.files import PathLike, atomic_writer

__all__ = ["read_examples", "write_outputs"]

# Models by what their examples are.
MATRICES, IMAGES, GRAPHS = ("multiclass", "hierarchy", "multi_label"), ("grid",), ("graph",)
# No file is taken to hold more numbers than this.
MOST_NUMBERS = 2**33


def read_examples(path: PathLike, model: str) -> tuple[Any, Any]:
    """Inputs and outputs of a model from an archive that `numpy.savez` wrote; outputs are None where it has none.

    ==========================================  =====================================================================
    model                                       arrays
    ==========================================  =====================================================================
    multiclass, hierarchy, multi_label          ``X[n, k]``; ``y[n]`` labels, or ``y[n, labels]`` of zeros and ones
    grid, images of one size                    ``X[n, rows, columns]`` or with channels; ``y[n, rows, columns]``
    grid, images of many sizes                  ``X[pixels, channels]``, ``shapes[n, 2]``; ``y[pixels]``
    graph                                       ``X[nodes, k]``, ``node_offsets[n + 1]``, ``edges[m, 2]`` (numbered
                                                within each graph), ``edge_offsets[n + 1]``, ``edge_features[m, l]``
                                                if any; ``y[nodes]``
    ==========================================  =====================================================================

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npz"
    >>> np.savez(path, X=np.eye(2), y=["a", "b"])
    >>> X, y = read_examples(path, "multiclass")
    >>> X.shape, y.tolist()
    ((2, 2), ['a', 'b'])
    """
    arrays = _arrays(path)
    X = _array(arrays, "X", path)
    y = arrays.get("y")
    if model in MATRICES:
        return X, y
    if model in IMAGES:
        return _images(path, arrays, X, y)
    if model in GRAPHS:
        return _graphs(path, arrays, X, y)
    raise ModelError(f"a model is one of {', '.join((*IMAGES, *GRAPHS, *MATRICES))}, got {model!r}")


def write_outputs(path: PathLike, outputs: Any, marginals: Any = None) -> None:
    """Write predictions (and marginals) the way examples are: flat arrays ``y`` and ``shapes`` or ``offsets``."""
    made: dict[str, Any] = {}
    if isinstance(outputs, np.ndarray):
        made["y"] = outputs
    else:
        parts = [np.asarray(part) for part in outputs]
        made["y"] = np.concatenate([part.ravel() for part in parts])
        if parts and parts[0].ndim == 2:
            made["shapes"] = np.array([part.shape for part in parts])
        else:
            made["node_offsets"] = offsets_of([part.size for part in parts])
    if marginals is not None:
        made["marginals"] = np.concatenate([np.reshape(p, (-1, np.shape(p)[-1])) for p in marginals])
    with atomic_writer(path) as stream:
        np.savez_compressed(stream, **made)


def _arrays(path: PathLike) -> dict[str, Any]:
    name = os.fspath(path)
    try:
        with np.load(name, allow_pickle=False) as archive:
            if not hasattr(archive, "files"):
                raise FormatError(f"{name} holds one array; examples are an .npz with arrays X and y")
            return {key: archive[key] for key in archive.files}
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, KeyError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{name} is no .npz archive of plain arrays") from None


def _array(arrays: dict[str, Any], key: str, path: PathLike) -> Any:
    if key not in arrays:
        raise FormatError(f"{os.fspath(path)} has no array {key!r}; it has {', '.join(sorted(arrays)) or 'none'}")
    found = arrays[key]
    if found.dtype.kind not in "biuf" or found.size > MOST_NUMBERS:
        raise FormatError(f"{os.fspath(path)}: array {key!r} must hold numbers, got {found.dtype}")
    return found


def _offsets(arrays: dict[str, Any], key: str, total: int, path: PathLike) -> Any:
    offsets = _array(arrays, key, path)
    fits = offsets.ndim == 1 and len(offsets) > 1 and offsets.dtype.kind in "iu"
    if not fits or offsets[0] != 0 or offsets[-1] != total or (np.diff(offsets.astype(np.int64)) < 0).any():
        raise FormatError(f"{os.fspath(path)}: {key} must rise from 0 to {total}")
    return offsets.astype(np.int64)


def _images(path: PathLike, arrays: dict[str, Any], X: Any, y: Any) -> tuple[Any, Any]:
    if "shapes" not in arrays:
        if X.ndim not in (3, 4):
            raise FormatError(f"{os.fspath(path)}: images are X[n, rows, columns] or with channels, got {X.shape}")
        return list(X), None if y is None else list(y)
    shapes = _array(arrays, "shapes", path)
    if shapes.ndim != 2 or shapes.shape[1] != 2 or shapes.dtype.kind not in "iu":
        raise FormatError(f"{os.fspath(path)}: shapes must be int[n, 2], rows and columns of each image")
    sizes = np.prod(shapes.astype(np.int64), axis=1)
    for key, array in (("X", X), ("y", y)):
        if array is not None and len(array) != sizes.sum():
            raise FormatError(f"{os.fspath(path)}: shapes say {int(sizes.sum())} pixels, and {key} has {len(array)}")
    cuts = np.cumsum(sizes)[:-1]
    each = shapes.tolist()
    images = [part.reshape(*shape, *part.shape[1:]) for part, shape in zip(np.split(X, cuts), each, strict=True)]
    if y is None:
        return images, None
    return images, [part.reshape(shape) for part, shape in zip(np.split(y, cuts), each, strict=True)]


def _graphs(path: PathLike, arrays: dict[str, Any], X: Any, y: Any) -> tuple[Any, Any]:
    edges = _array(arrays, "edges", path)
    nodes = _offsets(arrays, "node_offsets", len(X), path)
    joins = _offsets(arrays, "edge_offsets", len(edges), path)
    if len(nodes) != len(joins):
        raise FormatError(f"{os.fspath(path)}: node_offsets and edge_offsets must be of one length")
    features = arrays.get("edge_features")
    found: list[Any] = []
    for i in range(len(nodes) - 1):
        a, b = joins[i], joins[i + 1]
        x = (X[nodes[i] : nodes[i + 1]], edges[a:b])
        found.append(x if features is None else (*x, features[a:b]))
    return found, None if y is None else np.split(y, nodes[1:-1])
