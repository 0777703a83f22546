"""A study that is stopped in the middle: nothing is lost, and it ends with the same numbers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab.tests.study.toys import TRAININGS, records, study_of

from de3lab.study.execute import Study
from de3lab.study.run import run_study


def stop(command: list[str], folder: Path, number: int, ready) -> tuple[int, str]:
    """Starts the command, sends the signal once `ready` says so; exit code and stderr."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip
    deadline = time.monotonic() + 150
    while not ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    out, notes = process.communicate(timeout=60)
    assert out == ""
    return process.returncode, notes


def test_a_stopped_study_goes_on_to_the_same_numbers(finished, tmp_path):
    shutil.copy(finished / "study.toml", tmp_path / "study.toml")
    command = [sys.executable, "-m", "de3bert.cli.main", "compare", "study.toml", "--out", "report",
               "--runs", "runs", "--only", "plain/*/1"]  # fmt: skip
    de3 = tmp_path / "runs"

    def in_the_middle_of_the_third() -> bool:
        return bool([*de3.glob("plain-joint-entropy-seed1-*/model.training/**/checkpoint-*")])

    code, notes = stop(command, tmp_path, signal.SIGINT, in_the_middle_of_the_third)
    assert code == 130
    assert "3 of 4: plain joint-entropy seed 1" in notes
    assert "run the same command again" in notes
    assert "Traceback" not in notes
    assert len(records(tmp_path / "report")) == 2
    study = study_of(tmp_path)
    assert run_study(study, tmp_path / "report", only=["plain/*/1"], progress=False) == {}
    whole = records(finished / "report")
    resumed = records(tmp_path / "report")
    assert len(resumed) == TRAININGS
    for key, record in resumed.items():
        assert record == whole[key]


def test_sigterm_between_trainings_is_like_ctrl_c(finished_copy, monkeypatch):
    study = study_of(finished_copy)
    (study.folder(study.jobs[1]) / "run.json").unlink()
    usual = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(Study, "run", lambda *a, **k: signal.raise_signal(signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt):
        run_study(study, finished_copy / "report", progress=False)
    assert signal.getsignal(signal.SIGTERM) == usual
