"""Arrays of numbers that a model lets its user set, checked whenever they are."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.models._sites import given_numbers

__all__ = ["Parameter"]


class Parameter:
    """An attribute of finite numbers whose shape other attributes give; None sets zeros.

    Parameters
    ----------
    sizes
        Names of the attributes that give the length of each axis.
    symmetric
        Whether a matrix must be symmetric with zeros on its diagonal.

    Examples
    --------
    >>> class Model:
    ...     weights = Parameter("n", "n", symmetric=True)
    ...     n = 2
    >>> model = Model()
    >>> model.weights = [[0, 1], [1, 0]]
    >>> model.weights = [[0, 1]]
    Traceback (most recent call last):
    markovfield.exceptions.ModelError: Model(weights=...) must have shape (2, 2), got (1, 2)
    """

    def __init__(self, *sizes: str, symmetric: bool = False) -> None:
        self.sizes, self.symmetric = sizes, symmetric

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, model: None, owner: type[Any]) -> Parameter: ...
    @overload
    def __get__(self, model: object, owner: type[Any]) -> FloatArray: ...
    def __get__(self, model: object | None, owner: type[Any]) -> Parameter | FloatArray:
        if model is None:
            return self
        values: FloatArray = vars(model)[self.name]
        return values

    def __set__(self, model: Any, given: Any) -> None:
        what = f"{type(model).__name__}({self.name}=...)"
        shape = tuple(int(getattr(model, size)) for size in self.sizes)
        values = np.zeros(shape) if given is None else given_numbers(given, what)
        if values.shape != shape:
            raise ModelError(f"{what} must have shape {shape}, got {values.shape}")
        if self.symmetric and (not np.array_equal(values, values.T) or np.diagonal(values).any()):
            raise ModelError(f"{what} must be symmetric with zeros on the diagonal")
        vars(model)[self.name] = values
