"""Files that are written whole or not at all, and the archive: a zip of one JSON member and npy members.

Nothing in an archive is ever executed. Members are stored, not deflated, so no number in the file can claim more
memory than the file has bytes, and a bomb has nothing to expand.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import FormatError

__all__ = ["PathLike", "atomic_writer", "read_archive", "write_archive"]

T = TypeVar("T")
PathLike = str | os.PathLike[str]
Arrays = dict[str, npt.NDArray[Any]]

_MANIFEST = "model.json"
_MEMBER = re.compile(r"([a-z][a-z0-9_]{0,60})\.npy")
_DTYPES = ("|i1", "|u1", "<i4", "<i8", "<f4", "<f8")
# Exactly what NumPy writes for a vector; matched as text, so that no header is ever evaluated.
_NPY_HEADER = re.compile(rb"\{'descr': '([<|][fiu]\d)', 'fortran_order': False, 'shape': \((\d{1,18}),\), \} *\n")
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,  # an encrypted member; also RecursionError, from deeply nested JSON
    ValueError,
)


@contextmanager
def atomic_writer(path: PathLike) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of ``path`` only once it is complete and on the disk.

    It is written under a temporary name in the same folder, flushed, fsynced and renamed; when anything fails
    before that, the temporary file goes and whatever was at ``path`` stays.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    # "x" and not tempfile.mkstemp: the file gets the permissions of any new file, not 0600.
    try:
        stream = open(temporary, "xb")  # noqa: SIM115
    except OSError as error:  # of the file that was asked for, which is the one that a user knows
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with stream:
            if target.exists():
                os.chmod(temporary, target.stat().st_mode & 0o7777)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    # Makes the rename itself durable; Windows and some network file systems cannot, and lose nothing else.
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def _info(name: str) -> zipfile.ZipInfo:
    # A fixed date: the same model gives the same bytes.
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.external_attr = 0o644 << 16
    return info


def write_archive(path: PathLike, version: int, described: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write an archive atomically: what describes a model as JSON, and its vectors.

    Vectors are of signed integers of 1, 4 or 8 bytes, of bytes, or of floating-point numbers of 4 or 8 bytes.
    """
    manifest = {"format": "markovfield", "version": version, **described}
    text = json.dumps(manifest, allow_nan=False, separators=(",", ":"))
    with atomic_writer(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_info(_MANIFEST), text)
        for key, array in arrays.items():
            vector = np.asarray(array)
            vector = vector.astype(vector.dtype.newbyteorder("<"), copy=False)
            if vector.ndim != 1 or vector.dtype.str not in _DTYPES:
                raise ValueError(f"{key} is {vector.ndim}-dimensional, of dtype {vector.dtype.str}")
            with archive.open(_info(f"{key}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, vector, version=(1, 0), allow_pickle=False)


def read_archive(path: PathLike, version: int, assemble: Callable[[dict[str, Any], Arrays], T]) -> T:
    """Read an archive and hand its description and its vectors to ``assemble``.

    Whatever is wrong, there or here, is a `FormatError` that names the file. Nothing is allocated that the file's own
    size does not bound.
    """
    name = os.fspath(path)
    with open(name, "rb") as stream:
        try:
            members = _read_members(stream)
            manifest = json.loads(members.pop(_MANIFEST).decode("utf-8"))
            _check_manifest(manifest, version)
            return assemble(manifest, {key.removesuffix(".npy"): _vector(key, data) for key, data in members.items()})
        except _DAMAGE as error:
            reason = str(error) or type(error).__name__
            raise FormatError(f"{name}: this Markovfield archive cannot be loaded: {reason}") from None


def _check_manifest(manifest: Any, newest: int) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != "markovfield":
        raise FormatError(f"{_MANIFEST} is not that of a Markovfield archive")
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise FormatError(f"{_MANIFEST} has no version")
    if version > newest:
        raise FormatError(f"its version is {version} and this Markovfield reads up to {newest}; upgrade to load it")


def _read_members(stream: IO[bytes]) -> dict[str, bytes]:
    """The bytes of every member, after checking that no size claims more than the file has."""
    size = os.fstat(stream.fileno()).st_size
    with zipfile.ZipFile(stream) as archive:
        infos = archive.infolist()
        names = [i.filename for i in infos]
        if len(set(names)) < len(names) or _MANIFEST not in names:
            raise FormatError(f"it must hold {_MANIFEST}, and no member twice")
        for info in infos:
            if info.filename != _MANIFEST and not _MEMBER.fullmatch(info.filename):
                raise FormatError(f"it holds a member {info.filename[:80]!r}, which is no vector")
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise FormatError(f"member {info.filename} is compressed, and archives are stored")
        if sum(i.file_size for i in infos) > size:
            raise FormatError("its members claim more bytes than the file has")
        return {info.filename: archive.read(info) for info in infos}


def _vector(key: str, data: bytes) -> npt.NDArray[Any]:
    """A member as a vector; the shape must account for every byte."""
    start = 10 + int.from_bytes(data[8:10], "little")
    header = _NPY_HEADER.fullmatch(data[10:start])
    if data[:8] != b"\x93NUMPY\x01\x00" or header is None or header[1].decode() not in _DTYPES:
        raise FormatError(f"{key} is not a vector as NumPy writes it")
    dtype = np.dtype(header[1].decode())
    if int(header[2]) * dtype.itemsize != len(data) - start:
        raise FormatError(f"{key} announces {int(header[2])} entries and holds {len(data) - start} bytes")
    return np.frombuffer(data, dtype, offset=start).astype(dtype.newbyteorder("="), copy=False)
