"""``markovfield warmup`` compiles what is asked for, and says what it does not know."""

import json

import pytest
from typer.testing import CliRunner

from markovfield.cli import warmup
from markovfield.cli.app import app
from markovfield.exceptions import ModelError
from markovfield.inference.core.registry import ENTRIES


def test_every_method_is_among_the_tasks():
    listed = {name for _, name in warmup.tasks([])}
    assert listed == {e.name for e in ENTRIES if e.form == "FactorGraph"} | set(warmup.ESTIMATORS)


def test_tasks_can_be_chosen_by_any_name_of_a_method():
    assert {name for _, name in warmup.tasks(["bp", "hmm"])} == {"belief_propagation", "hmm"}
    with pytest.raises(ModelError, match="no_such"):
        warmup.tasks(["no_such"])


@pytest.mark.parametrize("task", [("decode", "icm"), ("fit", "chain_crf"), ("fit", "hmm"), ("fit", "memm")])
def test_a_task_runs(task, monkeypatch):
    from markovfield import settings

    monkeypatch.setattr(settings, "interpret_small_work", False)
    monkeypatch.setattr(settings, "announce_compilation", False)
    assert warmup.run(task) == task[1]


def test_the_command():
    done = CliRunner().invoke(app, ["warmup", "icm", "--n-jobs", "1", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["compiled"] == ["icm"]
