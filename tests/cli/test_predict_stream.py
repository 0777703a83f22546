"""`de3 predict` on streams: early, in order, with bad rows in their place."""

from __future__ import annotations

import gzip
import json
import os
import select
import subprocess
import time
from hashlib import sha256
from pathlib import Path

import pytest
from tests.warm import python

from de3bert import progress

DE3 = ("-m", "de3bert.cli.main")
MIXED = b"good\n\ncaf\xe9\nbad\n"


def start(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*python(), *DE3, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )


def line_of(process: subprocess.Popen[bytes], seconds: float) -> dict:
    """The next line, if it comes in time."""
    assert process.stdout is not None
    read = b""
    deadline = time.monotonic() + seconds
    while not read.endswith(b"\n"):
        ready, _, _ = select.select([process.stdout], [], [], deadline - time.monotonic())
        assert ready, "no answer in time"
        byte = process.stdout.read(1)
        assert byte, process.stderr.read() if process.stderr else ""
        read += byte
    return json.loads(read)


def test_bad_lines_become_lines_with_an_error(de3, trained_model):
    said = de3("predict", trained_model, stdin=MIXED)
    assert said.code == 1
    assert [row.get("line") for row in said.lines] == [None, 2, 3, None]
    assert [row.get("label") for row in said.lines] == ["pos", None, None, "neg"]
    assert "0xe9" in said.lines[2]["error"]
    assert "2 of 4 rows could not be answered (line 2, line 3)" in said.err
    whole = de3("predict", trained_model, "--json", stdin=MIXED)
    assert (whole.code, whole.json) == (1, said.lines)


def test_a_text_that_was_cut_says_so_and_so_does_the_end(de3, trained_model):
    said = de3("predict", trained_model, stdin=b"good\n" + b"good " * 100 + b"\nbad\n")
    assert said.code == 0
    assert set(said.lines[0]) == {"text", "label", "score", "exit_layer", "layers"}
    assert [row.get("truncated") for row in said.lines] == [None, True, None]
    assert "1 of 3 texts were truncated to 24 tokens" in said.err
    own = de3("predict", trained_model, stdin=b'{"text": "good", "truncated": 3}\n')
    assert own.lines[0]["input_truncated"] == 3
    assert "truncated" not in own.lines[0]


def test_strict_stops_at_the_first(de3, trained_model):
    said = de3("predict", trained_model, "--strict", stdin=MIXED)
    assert said.code == 1
    assert [row["text"] for row in said.lines] == ["good"]
    assert "error: line 2: the line is empty" in said.err
    whole = de3("predict", trained_model, "--strict", "--json", stdin=MIXED)
    assert (whole.code, whole.json) == (1, said.lines)
    sound = de3("predict", trained_model, "--strict", stdin="good\nbad\n")
    assert (sound.code, len(sound.lines)) == (0, 2)


def test_rows_keep_their_columns_beside_an_error(de3, trained_model, tmp_path):
    (tmp_path / "a.csv").write_text("id,text,label\n1,good,pos\n2,,neg\n3,a,b,c\n")
    said = de3("predict", trained_model, tmp_path / "a.csv")
    assert said.code == 1
    assert [row.get("id") for row in said.lines] == ["1", "2", None]
    assert said.lines[1]["input_label"] == "neg"
    assert said.lines[1]["line"] == 3
    assert "4 fields" in said.lines[2]["error"]


def test_what_broke_off_is_answered_until_there(de3, trained_model, tmp_path):
    lines = "".join(f"good {sha256(b'%d' % number).hexdigest()}\n" for number in range(2_500))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(lines.encode())[:-20_000])
    for option in ([], ["--json"]):
        said = de3("predict", trained_model, tmp_path / "a.txt.gz", "--policy", "layer(1)", *option)
        rows = said.json if option else said.lines
        assert said.code == 1
        assert len(rows) > 1000
        assert rows[0]["text"].startswith("good 5feceb66")
        assert "is truncated" in said.err


def test_nothing_is_loaded_for_a_source_that_is_no_good(de3, trained_model, monkeypatch, tmp_path):
    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr("de3bert.runtime.load.load", never)
    (tmp_path / "a.csv").write_text("words\na\n")
    for source, stdin in [
        ("none.csv", ""), (tmp_path / "a.csv", ""), ("-", ""), ("-", "\n\n"), ("-", '{"x": 1}\n'),
    ]:  # fmt: skip
        said = de3("predict", trained_model, source, stdin=stdin)
        assert said.code in (1, 2)
        assert said.out == ""


def test_terminal_codes_and_half_surrogates_in_columns(de3, trained_model):
    row = '{"text": "good \\u001b[31m", "id": "\\ud83d", "note": "\\u009b1m"}\n'
    said = de3("predict", trained_model, stdin=row)
    assert said.code == 0, said.err
    assert said.lines[0]["id"] == "\ud83d"
    assert not {"\x1b", "\x9b"} & set(said.out)


def test_progress_is_told_where_answers_go_to_a_file(de3, trained_model, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    said = de3("predict", trained_model, "--batch-size", "1", stdin="good\n" * 30)
    assert "predicting: 30 rows" in said.err
    said = de3("predict", trained_model, "--batch-size", "1", "--quiet", stdin="good\n" * 30)
    assert "predicting" not in said.err


def test_answers_come_while_the_input_is_open(trained_model):
    with start("predict", trained_model) as process:
        assert process.stdin is not None
        process.stdin.write(b"good\n")
        assert line_of(process, 60)["text"] == "good"
        for text in (b"bad", b"", b"fine"):
            process.stdin.write(text + b"\n")
            asked = time.monotonic()
            answer = line_of(process, 10)
            assert time.monotonic() - asked < 5
            assert ("error" in answer) == (not text)
        process.stdin.close()
        assert process.wait(30) == 1


@pytest.mark.parametrize("how", ["strict", "reader", "full"])
def test_input_that_stays_open_does_not_hold_up_the_end(trained_model, how):
    """The thread that waits for more of it must not hang the program, nor bring it down."""
    arguments = [
        *python(),
        *DE3,
        "predict",
        str(trained_model),
        *(["--strict"] if how == "strict" else []),
    ]
    if how == "full" and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    read, write = os.pipe()
    out = os.open("/dev/full", os.O_WRONLY) if how == "full" else subprocess.PIPE
    process = subprocess.Popen(arguments, stdin=read, stdout=out, stderr=subprocess.PIPE)
    try:
        if how == "reader":
            assert process.stdout is not None
            process.stdout.close()
        os.write(write, b"good\n\nbad\n")
        assert process.wait(60) == 1
        assert process.stderr is not None
        err = process.stderr.read().decode()
        assert "Traceback" not in err
        assert "Fatal" not in err
        words = {"strict": "line 2", "reader": "", "full": "disk is full"}[how]
        assert words in err
    finally:
        process.kill()
        os.close(read)
        os.close(write)


GROWTH = """
import resource, sys, threading, os
from de3bert.cli.main import main
read, write = os.pipe()
os.dup2(read, 0)
rows = int(sys.argv.pop(1))
def feed():
    with os.fdopen(write, "wb") as file:
        for number in range(rows):
            file.write(b"the good film %d was a bore of a story with an actor\\n" % number)
threading.Thread(target=feed, daemon=True).start()
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""


def test_memory_does_not_grow_with_the_input(trained_model, tmp_path):
    def peak(rows: int) -> int:
        # Forked from a process that has torch: importing it takes more memory for a moment than is
        # looked for here, and would hide it.
        command = [*python(), "-c", GROWTH, str(rows), "predict", str(trained_model)]
        with (tmp_path / "out").open("w") as out:
            done = subprocess.run(
                [*command, "--policy", "layer(1)", "--quiet"],
                stdout=out, stderr=subprocess.PIPE, text=True, timeout=300,
            )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert sum(1 for _ in (tmp_path / "out").open()) == rows
        return int(done.stderr.split()[-1])

    assert peak(14_000) - peak(4_000) < 15  # MB; as whole texts and answers it would be 37
