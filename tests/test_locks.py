"""One process at a time edits a folder, and nobody is kept waiting by the dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from de3bert.errors import De3Error
from de3bert.files import replace_file, replace_folder, write_text
from de3bert.locks import LOCK, PARTIAL, edited_alone, taken_alone


def start(code: str, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    """Waits until it says something, then ends it as a full memory would."""
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir() if item.name != LOCK)


def make_older(folder: Path) -> None:
    """As if it had been left a minute ago."""
    for path in folder.iterdir():
        os.utime(path, (time.time() - 60,) * 2)


def test_edits_of_many_processes_are_all_kept(tmp_path):
    write_text(tmp_path / "count", "0")
    edit = """
        import sys
        from pathlib import Path
        from de3bert.files import write_text
        from de3bert.locks import edited_alone
        folder = Path(sys.argv[1])
        for _ in range(20):
            with edited_alone(folder):
                count = int((folder / "count").read_text())
                write_text(folder / "count", str(count + 1))
    """
    processes = [start(edit, tmp_path) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert (tmp_path / "count").read_text() == "80"


def test_a_folder_that_is_taken_is_refused_at_once_and_free_after_a_kill(tmp_path):
    hold = """
        import sys, time
        from pathlib import Path
        from de3bert.locks import taken_alone
        with taken_alone(Path(sys.argv[1]), "busy"):
            print("held", flush=True)
            time.sleep(60)
    """
    process = start(hold, tmp_path)
    assert process.stdout is not None
    process.stdout.readline()
    with (
        pytest.raises(De3Error, match="another one is at it"),
        taken_alone(tmp_path, "another one is at it"),
    ):
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    with taken_alone(tmp_path, "another one is at it"):
        pass


def test_an_edit_that_waits_too_long_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("de3bert.locks.PATIENCE", 0.1)
    with (
        edited_alone(tmp_path),
        pytest.raises(De3Error, match="has been editing"),
        edited_alone(tmp_path),
    ):
        pass


WRITE = """
    import sys, time
    from de3bert.files import {writer}
    with {writer}(sys.argv[1]) as path:
        print("writing", flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize("writer", ["replace_file", "replace_folder"])
def test_what_a_killed_writer_left_is_cleaned_by_the_next(tmp_path, writer):
    target = tmp_path / "model.json"
    kill(start(WRITE.format(writer=writer), target))
    assert len(names(tmp_path)) == 1
    assert PARTIAL in names(tmp_path)[0]
    make_older(tmp_path)
    if writer == "replace_file":
        write_text(target, "new")
    else:
        with replace_folder(target) as folder:
            (folder / "a").write_text("new")
    assert names(tmp_path) == ["model.json"]


@pytest.mark.parametrize("writer", ["replace_file", "replace_folder"])
def test_what_a_living_writer_has_under_way_is_left_alone(tmp_path, writer):
    target = tmp_path / "model.json"
    process = start(WRITE.format(writer=writer), target)
    assert process.stdout is not None
    process.stdout.readline()
    make_older(tmp_path)
    under_way = names(tmp_path)
    write_text(target, "ours")
    assert set(under_way) < set(names(tmp_path))
    process.kill()
    process.wait()


def test_files_of_others_that_look_alike_are_left_alone(tmp_path):
    for name in (".model.json.bak", ".model.partial", ".other.x.partial", "model.x.partial"):
        (tmp_path / name).write_text("theirs")
    before = names(tmp_path)
    make_older(tmp_path)
    with replace_file(tmp_path / "model.json") as path:
        path.write_text("ours")
    assert names(tmp_path) == sorted([*before, "model.json"])


def test_a_kill_between_the_two_moves_loses_nothing(tmp_path):
    """The old folder stands aside under another name: the next writer puts it back."""
    die = """
        import os, pathlib, sys
        from de3bert.files import replace_folder
        first = pathlib.Path.replace
        def replace(self, other):
            if str(other) == sys.argv[1]:
                print("between", flush=True)
                os.kill(os.getpid(), 9)
            return first(self, other)
        pathlib.Path.replace = replace
        with replace_folder(sys.argv[1]) as folder:
            (folder / "a").write_text("new")
    """
    target = tmp_path / "model"
    with replace_folder(target) as folder:
        (folder / "a").write_text("old")
    kill(start(die, target))
    assert not target.exists()
    make_older(tmp_path)
    with pytest.raises(RuntimeError), replace_folder(target) as folder:
        raise RuntimeError
    assert (target / "a").read_text() == "old"
    assert names(tmp_path) == ["model"]
