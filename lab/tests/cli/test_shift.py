"""Rules side by side on rows of another kind, with prototypes moved to them."""

from __future__ import annotations

import pytest
from tests.fixtures_trained import toy_rows, write_csv


@pytest.fixture
def new(tmp_path):
    """Rows of another kind: longer texts."""
    pairs = zip(toy_rows(80, 21), toy_rows(80, 22), strict=True)
    return write_csv(tmp_path / "new.csv", [(f"{a} {b}", label) for (a, label), (b, _) in pairs])


def test_rules_side_by_side_on_the_new_rows(de3, trained_model, new, tmp_path):
    adapted = tmp_path / "m"
    assert de3("adapt", trained_model, "--data", new, "--out", adapted).code == 0
    out = tmp_path / "shift"
    said = de3("analyze", "shift", f"ceebert={trained_model}", f"joint-entropy={trained_model}",
               f"de3={trained_model}", f"de3 adapted={adapted}", "--data", new, "--speed", "1.5",
               "--lambda", "2", "--out", out, "--json")  # fmt: skip
    assert said.code == 0, said.err
    numbers = said.json["numbers"]
    assert (numbers["reference"], numbers["rows"]) == ("ceebert", 80)
    rules = {label: rule["families"][0] for label, rule in numbers["rules"].items()}
    assert rules["joint-entropy"] == "entropy"
    assert rules["de3"] == rules["de3 adapted"] == "edr(lambda=2.0)"
    full = {label: rule["full"]["mean"] for label, rule in numbers["rules"].items()}
    assert len(set(full.values())) == 1  # adapting changes no answer, only when it is given
    assert {path.name for path in out.iterdir()} == {
        "result.json", "table.md", "table.tex", "figure.png", "figure.svg",
    }  # fmt: skip
    assert "| de3 adapted |" in (out / "table.md").read_text()
    other = de3("analyze", "shift", f"a={trained_model}", f"b={adapted}", "--reference", "b",
                "--data", new, "--out", out)  # fmt: skip
    assert other.code == 0, other.err
    assert "wanted 2x" in other.out
