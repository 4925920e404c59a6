"""Runs a script in a process that ends when the one that started it does, however that ended.

``python _end_with_parent.py PARENT SCRIPT ARGUMENTS...``. A solver that nobody waits for any more would go on for
hours: whoever started it may have been killed, and then kills nobody.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

__all__ = ["command", "end_with_parent"]

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>


def command(script: str | os.PathLike[str], *arguments: str | os.PathLike[str]) -> list[str]:
    """What starts a script so that it ends with this process (on Linux with the thread that starts it)."""
    return [sys.executable, __file__, str(os.getpid()), os.fspath(script), *(os.fspath(a) for a in arguments)]


def end_with_parent(parent: int) -> None:
    """Let the kernel end this process with the thread that started it; elsewhere than on Linux look once a second."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, int(signal.SIGKILL))
    elif hasattr(os, "getppid"):

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(1.0)
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
    if hasattr(os, "getppid") and os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]))
    del sys.argv[:2]
    runpy.run_path(sys.argv[0], run_name="__main__")
