"""Compression told by content, bombs refused, files replaced only when whole."""

from __future__ import annotations

import gzip
import lzma
import os
import stat

import pytest

import markovfield as mf
import markovfield.io as mio
from markovfield import text_files
from markovfield.files import atomic_writer
from markovfield.text_files import Source, Tokens, read_source, write_text
from tests.io.damage import format_error

TEXT = b"MARKOV\n1\n2\n1\n1 0\n2\n 0.25 0.75\n"


@pytest.mark.parametrize("pack", [lambda b: b, gzip.compress, lzma.compress], ids=["plain", "gzip", "xz"])
@pytest.mark.parametrize("name", ["model.uai", "model.uai.gz", "model.uai.xz"])
def test_compression_is_told_by_content_not_by_name(tmp_path, pack, name):
    path = tmp_path / name
    path.write_bytes(pack(TEXT))
    assert read_source(path).data == TEXT
    assert mio.read_uai(str(path)).n_variables == 1


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_damaged_compression_is_a_format_error(tmp_path, pack):
    whole = pack(TEXT * 50)
    path = tmp_path / "model.uai"
    for end in range(6, len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(mf.FormatError, match="damaged or cut short"):
            read_source(path)
    for at in range(6, len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        format_error(read_source, path)


def test_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_EXPANSION_FLOOR", 1 << 20)
    path = tmp_path / "bomb.uai.gz"
    path.write_bytes(gzip.compress(bytes(8 << 20)))
    with pytest.raises(mf.FormatError, match="expand to more than"):
        read_source(path)


def test_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        mio.read_uai(tmp_path / "absent.uai")


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.xz"])
def test_write_text_compresses_by_name(tmp_path, name):
    write_text(tmp_path / name, ["one ", "zwölf\n"])
    assert read_source(tmp_path / name).text() == "one zwölf\n"
    raw = (tmp_path / name).read_bytes()
    assert raw.startswith({"a.txt": b"one", "a.gz": b"\x1f\x8b", "a.xz": b"\xfd7zXZ"}[name])


def test_positions_count_lines_and_characters_from_one():
    source = Source("f", "a\nzwölf x\n".encode())
    assert str(source.error(source.data.index(b"x"), "here")) == "f:2:7: here"
    tokens = Tokens(source)
    assert str(tokens.error(2, "word")) == "f:2:7: word"
    assert str(tokens.error(99, "end")) == "f:2:8: end"


def test_text_that_is_not_utf8():
    with pytest.raises(mf.FormatError, match=r"^f:2:2: this byte is not UTF-8"):
        Source("f", b"a\nb\xff").text()


def interrupted():
    yield "half of the ne"
    raise KeyboardInterrupt


def test_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_text(path, interrupted())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failing_disk_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="no space"), atomic_writer(path) as stream:
        stream.write(b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX")
def test_permissions_are_those_of_any_new_file_and_are_kept(tmp_path):
    plain, path = tmp_path / "plain", tmp_path / "file"
    plain.write_bytes(b"")
    with atomic_writer(path) as stream:
        stream.write(b"1")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    path.chmod(0o640)
    with atomic_writer(path) as stream:
        stream.write(b"2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix", reason="symbolic links need rights elsewhere")
def test_writing_through_a_link_replaces_its_target(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with atomic_writer(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
