"""The same rows come out of every format, with the columns guessed or given."""

import csv
import gzip
import io
import json
import subprocess
import sys

import pytest

from de3bert.data.read import read_table
from de3bert.errors import UsageError

TEXTS = ['a "joy", start to finish', "zwei\nZeilen", "naïve 映画 🎬", "3.5 stars", "tab\tinside"]
LABELS = [1, 0, 1, 1, 0]
COLUMNS = {"id": [10, 11, 12, 13, 14], "text": TEXTS, "label": LABELS}


def delimited(delimiter, columns=COLUMNS):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue().encode()


def objects():
    return [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]


def json_lines():
    return "\n".join(json.dumps(item, ensure_ascii=False) for item in objects()).encode()


def parquet():
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    out = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table(COLUMNS), out)
    return out.getvalue().to_pybytes()


WRITERS = {
    "rows.csv": lambda: delimited(","),
    "bom.csv": lambda: b"\xef\xbb\xbf" + delimited(","),
    "UPPER.CSV": lambda: delimited(","),
    "rows.tsv": lambda: delimited("\t"),
    "rows.jsonl": json_lines,
    "rows.json": json_lines,
    "list.json": lambda: json.dumps(objects()).encode(),
    "rows.parquet": parquet,
}


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_rows(tmp_path, name, compressed):
    data = WRITERS[name]()
    path = tmp_path / (name + ".gz" if compressed else name)
    path.write_bytes(gzip.compress(data) if compressed else data)
    table = read_table(path)
    assert table.texts == TEXTS
    assert table.labels == LABELS
    assert (table.text_column, table.pair_column, table.label_column) == ("text", None, "label")
    assert [int(value) for value in table.columns["id"]] == COLUMNS["id"]
    assert table.source == str(path)
    assert len(table.sha256) == 64


def test_tables_in_memory_give_the_same_rows():
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    datasets = pytest.importorskip("datasets")
    given = [
        COLUMNS,
        pandas.DataFrame(COLUMNS),
        pyarrow.table(COLUMNS),
        datasets.Dataset.from_dict(COLUMNS),
    ]
    tables = [read_table(data) for data in given]
    assert all(table.texts == TEXTS and table.labels == LABELS for table in tables)
    assert len({table.sha256 for table in tables}) == 1


def test_parquet_written_by_datasets_keeps_the_class_names(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["bad", "good"])}
    )
    rows = {"text": ["a", "b"], "label": [1, 0]}
    datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / "rows.parquet")
    table = read_table(tmp_path / "rows.parquet")
    assert (table.labels, table.label_names) == ([1, 0], ["bad", "good"])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Text", "LABEL"], ("Text", None, "LABEL")),
        (["title", "text", "category"], ("text", None, "category")),
        (["review", "target"], ("review", None, "target")),
        (["sentence", "question", "label"], ("question", "sentence", "label")),
        (["text", "Sentence1", "Sentence2", "class"], ("Sentence1", "Sentence2", "class")),
        (["hypothesis", "premise", "gold_label"], ("premise", "hypothesis", "gold_label")),
        (["question1", "question2", "labels"], ("question1", "question2", "labels")),
        (["text_a", "text_b", "label"], ("text_a", "text_b", "label")),
        (["text1", "text2", "label"], ("text1", "text2", "label")),
        (["text_a", "sentence", "label"], ("sentence", None, "label")),
    ],
)
def test_usual_column_names_are_found(names, expected):
    table = read_table({name: [f"{name} 1", f"{name} 2"] for name in names})
    assert (table.text_column, table.pair_column, table.label_column) == expected


def test_given_columns_win_over_usual_names():
    data = {"text": ["a"], "body": ["b"], "note": ["c"], "label": [0], "stars": ["5"]}
    table = read_table(data, text="body", text_pair="note", label="stars")
    assert table.inputs() == [("b", "c")]
    assert table.labels == ["5"]
    assert read_table(data, text="body").pairs is None


def test_a_given_pair_column_finds_its_partner():
    data = {"sentence1": ["a"], "sentence2": ["b"], "text": ["c"], "label": [0]}
    assert read_table(data, text_pair="sentence2").text_column == "sentence1"
    assert read_table(data, text_pair="label", label="text", text="sentence1").pairs == ["0"]


def test_limit_takes_the_first_rows(tmp_path):
    table = read_table(COLUMNS, limit=2)
    assert (len(table), table.texts, table.columns["id"]) == (2, TEXTS[:2], [10, 11])
    with pytest.raises(UsageError, match="limit"):
        read_table(COLUMNS, limit=0)


def test_unquoted_tsv_keeps_its_quotes(tmp_path):
    path = tmp_path / "glue.tsv"
    path.write_text('sentence\tlabel\n"half a quote\t1\nplain\t0\n', encoding="utf-8")
    assert read_table(path).texts == ['"half a quote', "plain"]


def test_long_fields_and_odd_line_ends_are_read(tmp_path):
    long = "word " * 60_000
    path = tmp_path / "rows.csv"
    path.write_bytes(f"text,label\r\n{long},1\r\n\r\nb,0\r\n".encode())
    assert [len(text) for text in read_table(path).texts] == [len(long), 1]


def test_characters_that_splitlines_would_cut_stay_in_json(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a\u2028b\x85c", "label": 1}\n\n', encoding="utf-8")
    assert read_table(path).texts == ["a\u2028b\x85c"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["0", "1"], [0, 1]),
        (["1.0", "2.0"], [1, 2]),
        (["007", "8"], ["007", "8"]),
        (["pos ", "neg"], ["pos", "neg"]),
        (["1", "x"], ["1", "x"]),
        (["True", "False"], ["True", "False"]),
    ],
)
def test_labels_of_csv_are_numbers_only_when_all_are(tmp_path, written, expected):
    path = tmp_path / "rows.csv"
    path.write_bytes(delimited(",", {"text": ["a", "b"], "label": written}))
    assert read_table(path).labels == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1.0, 2.0], [1, 2]),
        ([True, False], [1, 0]),
        ([1, "x"], ["1", "x"]),
        (["1", "2"], ["1", "2"]),
    ],
)
def test_typed_labels_keep_their_kind(given, expected):
    assert read_table({"text": ["a", "b"], "label": given}).labels == expected


def test_numbers_are_accepted_as_text():
    assert read_table({"text": [7, 2.5], "label": [0, 1]}).texts == ["7", "2.5"]


def test_labels_are_optional_when_not_needed():
    assert read_table({"text": ["a"]}, need_labels=False).labels is None
    assert read_table({"text": ["a"], "label": ["x"]}, need_labels=False).labels == ["x"]
    scored = read_table({"text": ["a"], "target": [0.5]}, need_labels=False)
    assert (scored.labels, scored.label_column) == (None, None)


def test_reading_plain_files_needs_no_heavy_library(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(delimited(","))
    script = (
        "import sys; from de3bert.data import labels, packaged, read, split;"
        f"read.read_table({str(path)!r});"
        "print({'torch', 'pyarrow', 'datasets', 'pandas'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
