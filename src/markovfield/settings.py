"""What a user may switch off, in Python or by an environment variable.

Examples
--------
>>> import markovfield as mf
>>> mf.settings.announce_compilation = False
>>> mf.settings.announce_compilation = True
"""

from __future__ import annotations

import os

__all__ = ["announce_compilation", "interpret_small_work"]


def _on(variable: str) -> bool:
    return os.environ.get(variable, "1").strip().lower() not in {"0", "no", "off", "false"}


announce_compilation: bool = _on("MARKOVFIELD_ANNOUNCE_COMPILATION")
"""Whether a line on stderr says that kernels are being compiled, where that takes over two seconds."""

interpret_small_work: bool = _on("MARKOVFIELD_INTERPRET_SMALL_WORK")
"""Whether kernels that nobody has compiled on this machine run as plain Python where the work is small."""
