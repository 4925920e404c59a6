"""The explorer in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import markovfield as mf

pytestmark = pytest.mark.browser


def test_it_loads(explorer: Callable[..., Any], visit: Callable[..., Any]):
    page = visit(explorer(mf.datasets.sprinkler()))
    assert page.locator("#told").inner_text() == ""
    assert page.locator("#page").inner_text() != ""


def test_the_file_is_read_again_when_it_changes(
    explorer: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path
):
    path = tmp_path / "model.bif"
    mf.write(mf.datasets.sprinkler(), path)
    page = visit(explorer(path))
    net = mf.BayesianNetwork({"fresh": ["no", "yes"]})
    net.add_cpt("fresh", [], [0.5, 0.5])
    mf.write(net, path)
    page.get_by_text("was read again").wait_for()
    page.get_by_text("fresh").first.wait_for()
    path.write_text("nonsense")
    page.locator("#told.error").wait_for()
    assert "model.bif" in page.locator("#told").inner_text()
