"""Whatever goes wrong while writing, the old result stays whole and nothing is left lying about."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from de3bert.errors import De3Error
from de3bert.files import (
    check_file_place,
    check_folder_place,
    read_json,
    replace_file,
    replace_folder,
    write_json,
    write_text,
)


def names(folder):
    return sorted(item.name for item in folder.iterdir())


def test_a_file_is_replaced_and_folders_are_made(tmp_path):
    target = tmp_path / "deep" / "er" / "a.json"
    write_json(target, {"b": "é"})
    write_json(target, {"b": [1, 2]})
    assert json.loads(target.read_text(encoding="utf-8")) == {"b": [1, 2]}
    assert names(target.parent) == ["a.json"]
    assert target.stat().st_mode & 0o777 == 0o644


def test_the_temporary_file_keeps_the_suffix_and_stands_beside(tmp_path):
    with replace_file(tmp_path / "curve.png") as path:
        assert (path.suffix, path.parent) == (".png", tmp_path)
        path.write_bytes(b"new")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_crash_inside_leaves_the_old_file(tmp_path, error):
    target = tmp_path / "a.txt"
    write_text(target, "old")
    with pytest.raises(error), replace_file(target) as path:  # noqa: PT012
        path.write_text("half")
        raise error
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_crash_inside_leaves_the_old_folder(tmp_path, error):
    target = tmp_path / "model"
    with replace_folder(target) as folder:
        (folder / "config.json").write_text("old")
    with pytest.raises(error), replace_folder(target) as folder:  # noqa: PT012
        (folder / "config.json").write_text("half")
        raise error
    assert (target / "config.json").read_text() == "old"
    assert names(tmp_path) == ["model"]


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "model"
    with replace_folder(target) as folder:
        (folder / "stale.bin").write_text("old")
    with replace_folder(target) as folder:
        (folder / "config.json").write_text("new")
        assert (target / "stale.bin").exists()
    assert names(target) == ["config.json"]
    assert names(tmp_path) == ["model"]
    assert target.stat().st_mode & 0o777 == 0o755


def test_the_old_folder_comes_back_when_the_move_fails(tmp_path, monkeypatch):
    target = tmp_path / "model"
    with replace_folder(target) as folder:
        (folder / "config.json").write_text("old")
    replace = type(target).replace

    def fail_into_place(self, destination):
        if destination == target and not self.name.endswith(".old"):
            raise OSError(28, "No space left on device")
        return replace(self, destination)

    monkeypatch.setattr(type(target), "replace", fail_into_place)
    with pytest.raises(De3Error, match="disk is full"), replace_folder(target) as folder:
        (folder / "config.json").write_text("new")
    assert (target / "config.json").read_text() == "old"
    assert names(tmp_path) == ["model"]


def test_a_file_where_a_folder_is_needed(tmp_path):
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(
        De3Error, match=r"there is a file where a folder is needed.*another location"
    ):
        write_text(tmp_path / "runs" / "a.txt", "x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(De3Error, match="no permission"):
        write_text(tmp_path / "a.txt", "x")
    tmp_path.chmod(0o700)


def test_places_are_looked_at_before_the_work(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    before = names(tmp_path)
    for check in (check_file_place, check_folder_place):
        check(tmp_path / "new")
        check(tmp_path / "deep" / "er" / "new")
        for wrong, words in (
            (tmp_path / "file" / "new", "there is a file where a folder is needed"),
            (tmp_path / ("x" * 300), "the name is too long"),
            (tmp_path / ("x" * 250), "the name is too long"),  # for what is made beside it
            ("/".join("y" * 3000) + "/z", "the name is too long"),
            (tmp_path / "a\0b", "Choose another name"),
        ):
            with pytest.raises(De3Error, match=words):
                check(wrong)
    check_file_place(tmp_path / "file")
    check_folder_place(tmp_path / "folder")
    with pytest.raises(De3Error, match="there is a folder where a file is needed"):
        check_file_place(tmp_path / "folder")
    with pytest.raises(De3Error, match="there is a file where a folder is needed"):
        check_folder_place(tmp_path / "file")
    for link in ("link", "dangling"):
        with pytest.raises(De3Error, match=r"symbolic link.*Give the folder itself"):
            check_folder_place(tmp_path / link)
    assert names(tmp_path) == before


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no such file system here")
def test_a_place_where_the_system_makes_nothing():
    with pytest.raises(De3Error, match="no folder can be made there"):
        check_folder_place("/proc/model")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_places_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    for check in (check_file_place, check_folder_place):
        with pytest.raises(De3Error, match="no permission"):
            check(tmp_path / "new")
    tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": ', "is damaged"),
        (b"[1]", "got a list"),
        (b"\xff\xfe", "is damaged"),
        (b"[" * 100_000, "is damaged"),
    ],
)
def test_json_from_anybody(tmp_path, content, words):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(De3Error, match=rf"a\.json .*{words}.*Make it again"):
        read_json(tmp_path / "a.json", "Make it again.")
    with pytest.raises(De3Error, match="cannot be read"):
        read_json(tmp_path / "nowhere.json")


KILLED = """
import os, signal, sys
from pathlib import Path
from de3bert.files import replace_file, replace_folder

kind, target, moment = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
if moment == "between":  # the old folder is put aside, the new one not yet there
    usual = Path.replace

    def killed(self, destination):
        if destination == target and not self.name.endswith(".old"):
            os.kill(os.getpid(), signal.SIGKILL)
        return usual(self, destination)

    Path.replace = killed
with (replace_file if kind == "file" else replace_folder)(target) as path:
    (path if kind == "file" else path / "part").write_text("half")
    if moment == "within":
        os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(kind, target, moment):
    call = [sys.executable, "-c", KILLED, kind, str(target), moment]
    assert subprocess.run(call, check=False).returncode == -9
    left = [item for item in target.parent.iterdir() if ".partial" in item.name]
    assert left
    for item in left:
        os.utime(item, (0, 0))


@pytest.mark.parametrize("moment", ["within", "between"])
def test_what_a_killed_process_left_of_a_folder(tmp_path, moment):
    target = tmp_path / "model"
    with replace_folder(target) as folder:
        (folder / "config.json").write_text("old")
    killed("folder", target, moment)
    with replace_folder(target) as folder:
        assert (target / "config.json").read_text() == "old"  # put back, if it was aside
        (folder / "config.json").write_text("new")
    assert names(tmp_path) == ["model"]
    assert (target / "config.json").read_text() == "new"


def test_what_a_killed_process_left_of_a_file(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    killed("file", tmp_path / "a.txt", "within")
    assert (tmp_path / "a.txt").read_text() == "old"
    write_text(tmp_path / "a.txt", "new")
    assert names(tmp_path) == ["a.txt"]


def test_a_full_disk_for_real(tmp_path):
    """A limit on file size makes the operating system itself refuse the write."""
    target = tmp_path / "a.txt"
    write_text(target, "old")
    script = textwrap.dedent(
        f"""
        import resource, signal
        from de3bert.errors import De3Error
        from de3bert.files import write_text

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            write_text({str(target)!r}, "x" * 100_000)
        except De3Error as error:
            print(error)
        """
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert f"Could not write {target}" in ran.stdout
    assert "disk is full" in ran.stdout
    assert "Nothing was changed" in ran.stdout
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]
