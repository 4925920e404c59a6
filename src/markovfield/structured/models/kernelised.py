"""Models of graphs and of classes whose features of tokens are behind a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.learning.max_margin.kernel_expansion import KernelExpansion
from markovfield.structured.core.conditional import Template
from markovfield.structured.core.model import Inputs, Placed, StructuredModel
from markovfield.structured.models.graph import GraphModel
from markovfield.structured.models.multiclass import MulticlassModel

__all__ = ["KernelGraph", "KernelMulticlass", "kernelised", "plain_model", "token_rows"]


@dataclass(frozen=True, eq=False)
class _Kernelised(StructuredModel):
    """In training every token has a feature of its own; later, scores of labels in place of features."""

    n_columns: int = 0
    expansion: KernelExpansion | None = None

    def templates(self) -> Sequence[Template]:
        """Those of the plain model, the first of them with as many features as there are scores."""
        first, *others = super().templates()  # type: ignore[safe-super]
        return [replace(first, n_features=self.n_columns), *others]

    def inputs(self, X: Any) -> Inputs:
        """Scores of tokens and labels in place of features; features where there is no expansion yet."""
        found = super().inputs(X)  # type: ignore[safe-super]
        if self.expansion is None:
            return found
        name = next(iter(found.placed))
        scores = self.expansion.scores(token_rows(self, found))
        return replace(found, placed={**found.placed, name: Placed(found.placed[name].scopes, scores)})


@dataclass(frozen=True, eq=False)
class KernelGraph(_Kernelised, GraphModel):
    """A `GraphModel` with a kernel of node features; see `GraphSSVM`."""


@dataclass(frozen=True, eq=False)
class KernelMulticlass(_Kernelised, MulticlassModel):
    """A `MulticlassModel` with a kernel of features; see `MulticlassSSVM`."""


KINDS: list[tuple[Any, Any]] = [(GraphModel, KernelGraph), (MulticlassModel, KernelMulticlass)]


def kernelised(model: Any, n_columns: int, expansion: KernelExpansion | None = None) -> Any:
    """A model with a kernel, of the same settings and shape."""
    found = next(((a, b) for a, b in KINDS if isinstance(model, a)), None)
    if found is None:
        raise ModelError(f"{type(model).__name__} takes no kernel")
    plain, kind = found
    own = {f.name: getattr(model, f.name) for f in fields(plain)}
    return kind(**own, n_columns=n_columns, expansion=expansion)


def plain_model(model: Any) -> Any:
    """The model without its kernel."""
    plain = next(a for a, _ in KINDS if isinstance(model, a))
    return plain(**{f.name: getattr(model, f.name) for f in fields(plain)})


def token_rows(model: Any, inputs: Inputs) -> Any:
    """Features of tokens without the constant that a bias is."""
    from scipy.sparse import csr_array, issparse

    name = next(iter(inputs.placed))
    rows = inputs.placed[name].features
    rows = csr_array(rows) if issparse(rows) else np.asarray(rows, np.float64)
    return rows[:, 1:] if model.bias else rows
