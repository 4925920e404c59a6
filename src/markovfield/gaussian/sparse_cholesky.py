"""Sparse Cholesky factorisation: a plan for a pattern, factors of matrices with it, and what factors answer.

Three steps, each usable by itself::

    plan = analyse(matrix)                       # order, fill, memory, operations: from the pattern alone
    factor = plan.factorise(matrix.data)         # Lambda = L L', rows of L in the order of the variables
    factor.solve(b), factor.log_determinant      # Lambda^-1 b, for one or many columns
    factor.upper_solve(z)                        # L^-T z: draws with covariance Lambda^-1 from white noise
    factor.lower_solve(b)                        # L^-1 b: whitens; b' Lambda^-1 b is the squared length of it
    factor.selected_inverse().on_pattern         # entries of the inverse where the matrix has entries
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.gaussian.dense_factor import DenseFactor
from markovfield.kernels.interpreter import small

__all__ = ["CholeskyPlan", "SelectedInverse", "SparseFactor", "analyse"]

MOST_DENSE = 64
"""Matrices of at most this order are factored by LAPACK: nothing is planned, and nothing compiled.

Beyond, LAPACK takes threads, which on a busy machine wait for each other longer than the work takes."""
MOST_FULL = 4096
"""So are those of at most this order of which a quarter is not zero."""
MOST_LISTED = 1000
"""Up to here an error says the smallest eigenvalue, which takes a dense matrix."""
DEFAULT_MEMORY_LIMIT = 8 * 2**30
PLANS_KEPT = 16
MOST_KEPT = 2**28
CHUNK = 4e9
"""Operations between two looks at the keyboard."""
COLUMNS = 32
"""Right sides that are solved for side by side."""
PAD = 8
SLACK = 64


@dataclass(frozen=True, eq=False)
class SelectedInverse:
    """Entries of the inverse on the pattern of the matrix.

    Attributes
    ----------
    diagonal
        ``float64[n]``: the variances.
    on_pattern
        ``float64[nnz]``: the inverse at each stored entry of the matrix, in the order of ``matrix.data``. The gradient
        of ``log det`` with respect to the entries, so ``sum(on_pattern * dLambda.data)`` is a derivative of it.
    """

    diagonal: FloatArray
    on_pattern: FloatArray


class CholeskyPlan:
    """All of a factorisation that needs no numbers; made by `analyse`.

    Attributes
    ----------
    n, nnz
        Order of the matrix, and how many entries of it are stored.
    method
        How the order of elimination was found; ``"dense"`` where LAPACK does all of it.
    order
        ``int32[n]``: the variables in the order of their elimination.
    n_supernodes
        Runs of columns that are factored together.
    fill
        Entries of the triangular factor, those of the matrix included.
    bytes
        Memory of the factor; ``working_bytes`` is what is needed beside it while factoring, ``inverse_bytes`` what the
        selected inverse takes.
    flops
        Multiplications and additions of a factorisation.
    """

    def __init__(self, matrix: Any, coordinates: IntArray | None, order: IntArray | None) -> None:
        self.n: int = matrix.shape[0]
        self.nnz: int = len(matrix.indices)
        self._offsets: IntArray = matrix.indptr.astype(np.int64)
        self._rows = matrix.indices.astype(np.int32)
        n = self.n
        self.method = "dense"
        self.fill = n * (n + 1) // 2
        self.bytes, self.working_bytes, self.inverse_bytes = 8 * n * n, 8 * n * n, 16 * n * n
        self.flops = n**3 / 3.0
        self.n_supernodes = min(n, 1)
        self.order = np.arange(n, dtype=np.int32)
        self.dense = order is None and (n <= MOST_DENSE or (n <= MOST_FULL and 4 * self.nnz > n * n))
        if not self.dense:
            with small(200.0 * self.nnz):
                self._plan(coordinates, order)

    def _plan(self, coordinates: IntArray | None, order: IntArray | None) -> None:
        from markovfield.gaussian import factor_kernel, inverse_kernel, symbolic_kernel
        from markovfield.gaussian.fill_reducing import find_order

        offsets, rows = self._offsets, self._rows
        self._mirror: Any = symbolic_kernel.mirror_entries(offsets, rows)
        if len(self._mirror) != len(rows):
            raise ModelError("a sparse factorisation needs a symmetric pattern with both triangles, rows in order")
        if order is None:
            self.order, self.method = find_order(offsets, rows, coordinates)
        else:
            self.order, self.method = np.array(order, np.int32), "given order"
        parent: Any = symbolic_kernel.elimination_tree(offsets, rows, self.order)
        count: Any = symbolic_kernel.column_counts(offsets, rows, self.order, parent)
        starts, parents, n_below = symbolic_kernel.supernodes(parent, count, self.order)
        row_offsets = offsets_of(n_below)
        self._below, relative = symbolic_kernel.supernode_rows(offsets, rows, self.order, starts, parents, row_offsets)
        columns: IntArray = np.diff(starts)
        widths = (columns + n_below + PAD - 1) // PAD * PAD
        panel_at = offsets_of(columns * widths)
        self._entries: tuple[Any, Any, Any] = symbolic_kernel.entry_places(
            offsets, rows, self.order, starts, row_offsets, self._below, widths
        )
        child, sibling, update_at, stack = factor_kernel.stack_layout(parents, row_offsets)
        self._front_at, fronts = inverse_kernel.front_layout(starts, row_offsets, parents)
        self._tree = starts, row_offsets, relative, child, sibling, panel_at, update_at
        self._parents, self._panels, self._stack, self._fronts = parents, int(panel_at[-1]), int(stack), int(fronts)
        width = columns + n_below
        # Of all supernodes, the sum of (m - i)^2 over the k columns of each.
        square = lambda x: x * (x + 1) * (2 * x + 1) / 6.0  # noqa: E731
        self._work: FloatArray = square(width.astype(float)) - square(n_below.astype(float))
        self._diagonal_at = panel_at[:-1].repeat(columns) + (np.arange(self.n) - starts[:-1].repeat(columns)) * (
            widths.repeat(columns) + 1
        )
        self.n_supernodes = len(parents)
        self.fill = int(count.sum())
        self.flops = float(self._work.sum())
        self.bytes = 8 * self._panels
        self.working_bytes = 8 * self._stack
        self.inverse_bytes = 8 * (self._fronts + self.nnz)

    def __repr__(self) -> str:
        return f"CholeskyPlan({self.describe()})"

    def describe(self) -> str:
        """One sentence: order, entries of the factor, memory, operations."""
        return (
            f"{self.method}: {self.n} variables, {self.fill} entries of the factor in {self.n_supernodes} supernodes, "
            f"{_size(self.bytes)} and {_size(max(self.working_bytes, self.inverse_bytes))} to work in, "
            f"{self.flops:.2g} operations"
        )

    def check_memory(self, memory_limit: float | None = None) -> None:
        """Raise `MemoryLimitError` when factoring needs more bytes than ``memory_limit`` (8 GiB when None)."""
        limit = DEFAULT_MEMORY_LIMIT if memory_limit is None else memory_limit
        needed = self.bytes + max(self.working_bytes, self.inverse_bytes)
        if needed > limit:
            raise MemoryLimitError(
                f"the sparse factor of {self.n} variables has {self.fill} entries and needs {_size(needed)}, "
                f"more than the memory limit of {_size(limit)}"
            )

    def factorise(
        self, values: npt.ArrayLike, *, names: Sequence[Any] | None = None, memory_limit: float | None = None
    ) -> SparseFactor:
        """Factor the matrix with these values, ``float64[nnz]`` in the order of ``matrix.data``.

        One that is not positive definite is a `ModelError` which names a variable (of ``names``, or by position).
        """
        data = np.array(values, np.float64)
        if data.shape != (self.nnz,):
            raise ModelError(f"factorise(values) needs the {self.nnz} entries of the pattern, got shape {data.shape}")
        self.check_memory(memory_limit)
        return SparseFactor(self, data, names)

    def matrix(self, values: FloatArray) -> Any:
        """The matrix with these values, as a SciPy CSC array."""
        from scipy import sparse

        return sparse.csc_array((values, self._rows, self._offsets), (self.n, self.n))


class SparseFactor:
    """``Lambda = L L'``, where ``L`` is lower triangular but for the order of its rows; made by `CholeskyPlan`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from markovfield.gaussian.sparse_cholesky import analyse
    >>> path = sparse.csc_array(sparse.diags_array([[-1.0] * 3, [2.0] * 4, [-1.0] * 3], offsets=[-1, 0, 1]))
    >>> factor = analyse(path).factorise(path.data)
    >>> factor.solve(np.ones(4)).round(6).tolist(), round(float(np.exp(factor.log_determinant)), 6)
    ([2.0, 3.0, 3.0, 2.0], 5.0)
    >>> factor.selected_inverse().diagonal.round(6).tolist()
    [0.8, 1.2, 1.2, 0.8]
    """

    def __init__(self, plan: CholeskyPlan, values: FloatArray, names: Sequence[Any] | None) -> None:
        self.plan = plan
        tolerance = plan.n * 2.0**-52
        if plan.dense:
            matrix = plan.matrix(values).toarray()
            self._dense = DenseFactor(matrix, tolerance) if plan.n else None
            failed = self._dense.failed if self._dense else -1
        else:
            self._dense = None
            failed = self._factorise(values, tolerance)
        if failed >= 0:
            raise ModelError("the precision is not positive definite" + self._culprit(values, failed, names))

    def _factorise(self, values: FloatArray, tolerance: float) -> int:
        from markovfield.gaussian.factor_kernel import factor_supernodes

        plan = self.plan
        self._panels = np.empty(plan._panels + SLACK)
        stack = np.empty(plan._stack + SLACK)
        work = np.cumsum(plan._work)
        chunks = np.append(np.searchsorted(work, np.arange(CHUNK, plan.flops, CHUNK)), plan.n_supernodes)
        begin = 0
        with small(plan.flops):
            for end in np.unique(chunks).tolist():
                failed = factor_supernodes(
                    plan._tree, *plan._entries, values, self._panels, stack, tolerance, begin, end
                )
                if failed >= 0:
                    return int(failed)
                begin = end
        return -1

    def _culprit(self, values: FloatArray, failed: int, names: Sequence[Any] | None) -> str:
        """What can be said of a matrix that is not positive definite, for the end of an error."""
        plan = self.plan
        matrix = plan.matrix(values)
        diagonal = matrix.diagonal()
        named = names if names is not None else range(plan.n)
        bad = np.flatnonzero(~(diagonal > 0))
        if len(bad):
            return f": its diagonal entry of variable {named[bad[0]]!r} is {diagonal[bad[0]]:.6g}"
        variable = named[int(plan.order[failed])]
        if plan.n <= MOST_LISTED:
            least = f"is {np.linalg.eigvalsh(matrix.toarray())[0]:.3g}"
        elif plan.dense:
            least = "is not positive"
        else:
            least = f"is at most {self._curvature(matrix, failed):.3g}"
        return f": its smallest eigenvalue {least}, and variable {variable!r} has no positive pivot"

    def _curvature(self, matrix: Any, failed: int) -> float:
        """The curvature along a direction that ends at the variable which has no positive pivot.

        With the columns before it factored, ``x = (-Lambda11^-1 Lambda12, 1)`` has ``x' Lambda x`` equal to the pivot.
        """
        from markovfield.gaussian.solve_kernel import solve_down

        plan = self.plan
        starts, row_offsets, *_, panel_at, _ = plan._tree
        s = int(np.searchsorted(starts, failed, side="right")) - 1
        first, k = int(starts[s]), int(failed - starts[s])
        width = (int(panel_at[s + 1] - panel_at[s])) // int(starts[s + 1] - first)
        panel = self._panels[panel_at[s] :][: (k + 1) * width].reshape(k + 1, width)
        x = np.zeros(plan.n)
        x[failed] = 1.0
        for i in range(k - 1, -1, -1):
            x[first + i] = -(panel[i, i + 1 : k + 1] @ x[first + i + 1 : failed + 1]) / panel[i, i]
        below = s
        while below and plan._parents[below - 1] <= s and plan._parents[below - 1] >= 0:
            below -= 1
        if below < s:
            solve_down(starts, row_offsets, plan._below, panel_at, self._panels, x, below, s)
        direction = np.empty(plan.n)
        direction[plan.order] = x
        return float(direction @ (matrix @ direction) / (direction @ direction))

    # ---- what it answers ------------------------------------------------------------------------------------------

    @property
    def log_determinant(self) -> float:
        """Of the matrix that was factored."""
        if self.plan.dense:
            return self._dense.log_determinant() if self._dense else 0.0
        return 2.0 * float(np.log(self._panels[self.plan._diagonal_at]).sum())

    def solve(self, right: FloatArray) -> FloatArray:
        """``Lambda^-1 right``, of shape ``[n]`` or ``[n, k]``."""
        return self._solved(right, True, True)

    def upper_solve(self, white: FloatArray) -> FloatArray:
        """``L^-T white``, of shape ``[n]`` or ``[n, k]``: columns with covariance ``Lambda^-1`` from white noise."""
        return self._solved(white, False, True)

    def lower_solve(self, right: FloatArray) -> FloatArray:
        """``L^-1 right``, of shape ``[n]`` or ``[n, k]``; its squared length is ``right' Lambda^-1 right``.

        What comes out is in the order of elimination, as what goes into `upper_solve` is.
        """
        return self._solved(right, True, False)

    def columns(self, positions: Sequence[int] | IntArray) -> FloatArray:
        """Columns of the inverse, ``float64[n, k]``."""
        right = np.zeros((self.plan.n, len(positions)))
        right[positions, np.arange(len(positions))] = 1.0
        return self.solve(right)

    def _solved(self, right: FloatArray, up: bool, down: bool) -> FloatArray:
        right = np.asarray(right, np.float64)
        if right.shape[:1] != (self.plan.n,) or right.ndim > 2:
            raise ModelError(f"a solve with {self.plan.n} variables needs as many rows, got shape {right.shape}")
        if not right.size:
            return np.zeros(right.shape)
        if self._dense:
            return self._dense.solve(right) if up and down else self._dense.triangular(right, transposed=down)
        with small(4.0 * self.plan._panels):
            if right.ndim == 1:
                return self._solved_one(right, up, down)
            out = np.empty(right.shape)
            for start in range(0, right.shape[1], COLUMNS):
                block = slice(start, start + COLUMNS)
                out[:, block] = self._solved_block(right[:, block], up, down)
            return out

    def _solved_one(self, right: FloatArray, up: bool, down: bool) -> FloatArray:
        from markovfield.gaussian.solve_kernel import solve_down, solve_up

        plan = self.plan
        starts, row_offsets, *_, panel_at, _ = plan._tree
        x = right[plan.order] if up else right.copy()
        if up:
            solve_up(starts, row_offsets, plan._below, panel_at, self._panels, x)
        if not down:
            return x
        solve_down(starts, row_offsets, plan._below, panel_at, self._panels, x, 0, plan.n_supernodes)
        out = np.empty(plan.n)
        out[plan.order] = x
        return out

    def _solved_block(self, right: FloatArray, up: bool, down: bool) -> FloatArray:
        from markovfield.gaussian.solve_kernel import solve_down_many, solve_up_many

        plan = self.plan
        n, k = right.shape
        if k == 1:
            return self._solved_one(right[:, 0], up, down)[:, None]
        starts, row_offsets, *_, panel_at, _ = plan._tree
        wide = -(-k // PAD) * PAD
        x = np.zeros((n, wide))
        x[:, :k] = right[plan.order] if up else right
        if up:
            solve_up_many(starts, row_offsets, plan._below, panel_at, self._panels, x.reshape(-1), wide)
        if not down:
            return x[:, :k]
        solve_down_many(starts, row_offsets, plan._below, panel_at, self._panels, x.reshape(-1), wide)
        out = np.empty((n, k))
        out[plan.order] = x[:, :k]
        return out

    def selected_inverse(self) -> SelectedInverse:
        """The inverse on the pattern of the matrix, by the Takahashi equations; no dense inverse is made.

        About twice the operations of the factorisation. To have more entries, store them in the matrix as zeros.
        """
        plan = self.plan
        columns = np.repeat(np.arange(plan.n), np.diff(plan._offsets))
        on_diagonal = plan._rows == columns
        if plan.dense:
            inverse = self._dense.inverse() if self._dense else np.zeros((0, 0))
            return SelectedInverse(np.diag(inverse).copy(), inverse[plan._rows, columns])
        from markovfield.gaussian.inverse_kernel import invert_supernodes

        found = np.empty(plan.nnz)
        fronts = np.empty(plan._fronts + SLACK)
        work = np.cumsum(plan._work)
        chunks = np.append(np.searchsorted(work, np.arange(CHUNK, plan.flops, CHUNK) / 2), plan.n_supernodes)
        bounds = np.unique(np.append(0, chunks)).tolist()
        with small(2.0 * plan.flops):
            for begin, end in zip(bounds[-2::-1], bounds[:0:-1], strict=True):
                invert_supernodes(
                    plan._tree, plan._parents, plan._front_at, self._panels, *plan._entries, fronts, found, begin, end
                )
        listed = plan._entries[1]
        found[plan._mirror[listed]] = found[listed]
        return SelectedInverse(found[on_diagonal], found)


_PLANS: OrderedDict[bytes, CholeskyPlan] = OrderedDict()
_PLANS_LOCK = Lock()


def analyse(
    matrix: Any, *, coordinates: IntArray | None = None, order: Sequence[int] | IntArray | None = None
) -> CholeskyPlan:
    """Plan the factorisation of all matrices with a pattern; the same pattern is planned once.

    Parameters
    ----------
    matrix
        ``[n, n]``, a SciPy CSC array with a symmetric pattern, both triangles stored; values do not matter, and a
        stored zero is part of the pattern.
    coordinates
        ``int64[n, d]``: where each variable lies on a lattice, for nested dissection. Sites numbered row by row are
        recognised without.
    order
        A permutation of ``0 .. n-1``, the order of elimination, in place of one found.

    Notes
    -----
    Planning allocates nothing of the size of the factor: time and memory are nearly linear in the entries of the
    matrix.

    Examples
    --------
    >>> from scipy import sparse
    >>> from markovfield.gaussian.sparse_cholesky import analyse
    >>> plan = analyse(sparse.csc_array(sparse.eye_array(5)))
    >>> plan.method, plan.fill
    ('dense', 15)
    """
    if order is not None:
        order = np.asarray(order, np.int64)
        if not np.array_equal(np.sort(order), np.arange(matrix.shape[0])):
            raise ModelError(f"analyse(order) must be a permutation of the {matrix.shape[0]} positions")
        return CholeskyPlan(matrix, coordinates, order)
    key = blake2b(np.ascontiguousarray(matrix.indptr).data, digest_size=16)
    key.update(np.ascontiguousarray(matrix.indices).data)
    name = key.digest()
    plan = _PLANS.get(name)
    if plan is None:
        plan = CholeskyPlan(matrix, coordinates, None)
    with _PLANS_LOCK:
        _PLANS[name] = plan
        _PLANS.move_to_end(name)
        while len(_PLANS) > PLANS_KEPT or (len(_PLANS) > 1 and _kept() > MOST_KEPT):
            _PLANS.popitem(last=False)
    return plan


def _kept() -> int:
    """About the bytes of the plans that are remembered."""
    return sum(40 * plan.nnz + 40 * plan.n for plan in _PLANS.values())


def _size(n_bytes: float) -> str:
    """Bytes in words."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if n_bytes >= 2**power:
            return f"{n_bytes / 2**power:.3g} {unit}"
    return f"{n_bytes:.0f} bytes"
