"""Where reference data lie: the folder that ``MARKOVFIELD_DATA`` names, or ``shared/data`` next to the project."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import FormatError

__all__ = ["reference_arrays", "reference_folder", "reference_path"]


def reference_folder() -> Path:
    """The folder of reference data, which need not be there."""
    given = os.environ.get("MARKOVFIELD_DATA")
    above = Path(__file__).resolve().parents
    return Path(given) if given else above[min(4, len(above) - 1)] / "shared" / "data"


def reference_path(*parts: str, what: str | None = None, instead: str = "") -> Path:
    """The path of a file or folder of the reference data that is there.

    Parameters
    ----------
    parts
        Folder within the reference data, then what is in it.
    what
        What is missing if it is, as in ``"image 'x.png'"``; None for the path.
    instead
        What to take in its place, as in ``"make_snakes()"``.

    Examples
    --------
    >>> reference_path("nowhere", "data.npz", instead="make_snakes()")
    Traceback (most recent call last):
    FileNotFoundError: there is no nowhere/data.npz in the reference data; set MARKOVFIELD_DATA to the folder ...
    """
    path = reference_folder().joinpath(*parts)
    if path.exists():
        return path
    end = f", or take {instead}" if instead else ""
    raise FileNotFoundError(
        f"there is no {what or '/'.join(parts)} in the reference data; set MARKOVFIELD_DATA to the folder that holds "
        f"{parts[0]}/{end}"
    )


def reference_arrays(*parts: str, names: tuple[str, ...], instead: str = "") -> tuple[npt.NDArray[np.generic], ...]:
    """Arrays by their names from an npz file of the reference data, which is never unpickled."""
    path = reference_path(*parts, instead=instead)
    try:
        with np.load(path, allow_pickle=False) as data:
            return tuple(data[name] for name in names)
    except KeyError:
        raise FormatError(f"{path}: expected an npz file with the arrays {', '.join(names)}") from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise FormatError(f"{path}: expected an npz file of plain arrays ({error})") from None
