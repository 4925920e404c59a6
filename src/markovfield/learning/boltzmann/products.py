"""How many threads the library for matrix products may take."""

from __future__ import annotations

from functools import cache
from typing import Any

from markovfield.inference.core.running import Running

__all__ = ["product_threads"]

# Multiply-adds of one product from which on threads are worth it. They wait for each other in busy loops: on cores
# that others use too, products in two threads have been seen to take twenty times as long as in one.
WORTH_IT = 2**27


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  (kernels call the library that comes with it, which must be there to be found)
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def product_threads(work: float, running: Running) -> Any:
    """A context in which products have ``n_jobs`` threads: where that is None, one, or all cores for large ones."""
    limit = 1 if running.n_jobs is None and work < WORTH_IT else running.n_jobs
    return _controller().limit(limits=limit, user_api="blas")
