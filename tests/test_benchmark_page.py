"""The page of measurements: made of what is stored, and of nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import measure
from tools import benchmark_page
from tools.benchmark_page import PAGE, collected, extent, overview, page, ratios, stored, summary_of, targets


def results(time: str, *, rows: int = 2) -> dict[str, Any]:
    """What `benchmarks.measure.save` writes."""
    table = {
        "title": "Speed <of> a|b",
        "headers": ["what", "ours", "peer", "ratio", "other", "ratio"],
        "rows": [[f"row_{i}", "2.0", "8.0", "4.0", "1,000", "-" if i else "500"] for i in range(rows)],
        "notes": ["first", "second"],
    }
    about = {"processor": "a chip", "cores": 2, "load": [0.51, 0, 0], "python": "3.11.0", "time": time}
    return {"machine": about, "command": "python -m benchmarks.x --quick", "tables": [table]}


def test_the_page_is_that_of_the_stored_summary():
    assert stored(), "docs/benchmarks.json is empty"
    assert PAGE.read_text(encoding="utf-8") == page(stored()), "run python -m tools.benchmark_page"


def test_every_measurement_says_where_and_when():
    for name, found in stored().items():
        assert found["command"].startswith("python -m benchmarks."), name
        assert found["processor"] and found["cores"] and len(found["measured"]) == 19
        assert found["tables"] and all(table["rows"] for table in found["tables"])


def test_newer_results_replace_and_older_do_not(tmp_path: Path):
    def collect(old: dict[str, Any], time: str) -> dict[str, Any]:
        (tmp_path / "x.json").write_text(json.dumps(results(time)))
        return collected(old, tmp_path)

    first = collect({"y": {"measured": "2020"}}, "2024-01-02 10:00:00")
    assert set(first) == {"x", "y"} and first["x"]["measured"] == "2024-01-02 10:00:00"
    assert collect(first, "2023-01-02 10:00:00")["x"]["measured"] == "2024-01-02 10:00:00"
    assert collect(first, "2025-01-02 10:00:00")["x"]["measured"] == "2025-01-02 10:00:00"


def test_ratios_are_found_and_named():
    summary = summary_of(results("2024-01-02 10:00:00"))
    assert summary is not None
    assert ratios(summary["tables"][0]) == [("ratio (peer)", [4.0, 4.0]), ("ratio (other)", [500.0])]
    lines = overview({"x": summary})
    assert "| X: Speed &lt;of> a\\|b | ratio (peer) | quick | 2 | 4 | 4 | 4 |" in lines


def test_the_page_shows_machine_command_and_rows():
    summary = summary_of(results("2024-01-02 10:00:00", rows=50))
    assert summary is not None
    text = page({"x": summary})
    assert "\npython -m benchmarks.x --quick\n" in text
    assert "\n* Measured 2024-01-02 10:00:00, load 0.5.\n* a chip, 2 cores, Python 3.11.0.\n" in text
    assert "row_39" in text and "row_40" not in text and "\n* first\n* second\n* and 10 more rows\n" in text
    assert "## Others" in text and "Not measured yet: " in text


@pytest.mark.parametrize(
    ("options", "said"),
    [("", "full"), (" --quick", "quick"), (" --only alarm", "options"), (" --quick --peers pgmpy", "quick, options")],
)
def test_the_page_says_what_a_run_left_out(options: str, said: str):
    summary = summary_of(results("2024-01-02 10:00:00"))
    assert summary is not None
    summary["command"] = f"python -m benchmarks.x{options}"
    assert extent(summary) == said
    text = page({"x": summary})
    assert f"| X | 2024-01-02 10:00:00 | a chip, 2 cores | 0.5 | {said} |" in text
    assert ("* **A quick run**" in text) == ("quick" in said)
    assert ("* **With options**" in text) == ("options" in said)


def test_a_busy_machine_is_called_one():
    summary = summary_of(results("2024-01-02 10:00:00"))
    assert summary is not None
    assert "busy" not in page({"x": summary}).partition("### X")[2]
    assert "load 5.5 on 2 cores: a busy machine." in page({"x": {**summary, "load": 5.5}})


def test_missed_targets_are_named():
    table = {
        "title": "T",
        "headers": ["claim", "met"],
        "rows": [["a", "yes"], ["b", "NO"], ["c", "MISSED"]],
        "notes": [],
    }
    summary = summary_of({**results("2024-01-02 10:00:00"), "tables": [table]})
    assert summary is not None
    assert targets({"x": summary})[-1] == "| X: T | quick | 1 of 3 | b; c |"
    assert targets({})[-1] == "No targets were measured yet."


def test_results_without_tables_are_lists_of_records():
    about = results("2024-01-02 10:00:00")["machine"]
    found = summary_of({"machine": about, "big_rows": [{"n": 1000, "s": 0.12345, "deep": {}}], "command": "c"})
    assert found is not None
    assert found["tables"] == [{"title": "big rows", "headers": ["n", "s"], "rows": [["1,000", "0.123"]], "notes": []}]
    assert summary_of({"machine": about, "nothing": 3}) is None


def test_what_a_benchmark_prints_is_what_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(measure, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(measure, "PRINTED", [])
    table = measure.Table("a title", ["what", "ms", "ratio"])
    table.row("one", 0.123456, None)
    table.note("a note")
    saved = json.loads(measure.save("name", {"extra": 1}).read_text())
    assert saved["extra"] == 1 and saved["machine"]["cores"]
    assert saved["tables"][0]["rows"] == [["one", "0.123", "-"]] and saved["tables"][0]["notes"] == ["a note"]
    assert "0.123" in capsys.readouterr().out
    found = summary_of(saved)
    assert found is not None and found["tables"][0]["title"] == "a title"


def test_check_tells_a_page_that_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(benchmark_page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr("sys.argv", ["benchmark_page", "--check"])
    assert benchmark_page.main() == 1
    assert "run python -m tools.benchmark_page" in capsys.readouterr().err
