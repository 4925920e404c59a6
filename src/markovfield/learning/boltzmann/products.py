"""How many threads the library for matrix products may take."""

from __future__ import annotations

from functools import cache
from typing import Any

from markovfield.inference.core.running import Running

__all__ = ["product_threads"]

# Multiply-adds of one product from which on threads are of use, and from which on they are taken unasked. They wait for
# each other in busy loops: on cores that others use too, two have been seen to take twenty times as long as one.
OF_USE, UNASKED = 2**22, 2**27


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  (kernels call the library that comes with it, which must be there to be found)
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def product_threads(work: float, running: Running) -> Any:
    """A context in which products have ``n_jobs`` threads: where that is None, one, or all cores for very large ones.

    Small products have one thread always. In several, sums are in another order: here alone results depend on
    ``n_jobs``, by rounding, and so do draws after many updates.
    """
    many = work >= UNASKED or (running.n_jobs is not None and work >= OF_USE)
    return _controller().limit(limits=running.n_jobs if many else 1, user_api="blas")
