"""Which rows are hard: each is judged by a small model that has not seen it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.methods.phases import Toy, toy
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from de3bert.model import EarlyExitModel
from de3bert.training import difficulty
from de3bert.training.difficulty import Difficulty, folds_of, small_alone
from de3bert.training.recipe import TrainRecipe
from de3bert.training.rows import Rows

ROWS = 31
SETTINGS = TrainRecipe(epochs=2, batch_size=4, learning_rate=3e-3)
Make = Callable[..., Toy]


@pytest.fixture
def make(tiny_backbone: Path, tiny_tokenizer: PreTrainedTokenizerFast) -> Make:
    def build(method: str = "cascadebert", place: Path | None = None, **options: float) -> Toy:
        made = toy(method, tiny_backbone, tiny_tokenizer, rows=ROWS, **options)
        made.context = replace(made.context, settings=SETTINGS, place=place)
        return made

    return build


class Watched:
    """Notes every judge with the rows that it was trained on and its seed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.judges: list[EarlyExitModel] = []
        self.seen: list[list[dict[str, Any]]] = []
        self.settings: list[TrainRecipe] = []
        self.start: list[dict[str, Tensor]] = []
        usual = difficulty.build_trainer

        def spy(judge: EarlyExitModel, settings: TrainRecipe, *rest: Any) -> Any:
            self.judges.append(judge)
            self.settings.append(settings)
            self.seen.append(rest[1].rows)
            self.start.append({k: v.clone() for k, v in judge.state_dict().items()})
            return usual(judge, settings, *rest)

        monkeypatch.setattr(difficulty, "build_trainer", spy)


def test_folds_have_every_row_once() -> None:
    for rows, folds in ((31, 3), (30, 3), (7, 2), (2, 5)):
        parts = folds_of(rows, folds, 4)
        assert sorted(torch.cat(list(parts)).tolist()) == list(range(rows))
        sizes = [len(part) for part in parts]
        assert len(parts) == min(rows, folds)
        assert max(sizes) - min(sizes) <= 1
    assert not torch.equal(folds_of(31, 3, 4)[0], folds_of(31, 3, 5)[0])
    assert torch.equal(folds_of(31, 3, 4)[0], folds_of(31, 3, 4)[0])


@pytest.mark.parametrize("method", ["cascadebert", "cascade-truncated"])
def test_rows_are_judged_by_who_has_not_seen_them(
    method: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, watched = make(method), Watched(monkeypatch)
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    hook = Difficulty(made.context)
    hook.before()
    rows: Rows = made.context.rows
    found = rows.extras["difficult"]
    assert len(watched.judges) == 3
    judged: list[int] = []
    for judge, seen in zip(watched.judges, watched.seen, strict=True):
        known = {id(row) for row in seen}
        own = [number for number, row in enumerate(rows.rows) if id(row) not in known]
        assert len(known) + len(own) == ROWS
        judged += own
        judge.eval()
        for number in own:
            one = made.context.encoder.pad(
                [{k: v for k, v in rows.rows[number].items() if k != "labels"}]
            )
            with torch.no_grad():
                said = int(judge(**one).exit_logits[0, -1].argmax())
            assert bool(found[number]) == (said != rows.rows[number]["labels"])
    assert sorted(judged) == list(range(ROWS))
    assert 0 < int(found.sum()) < ROWS
    assert hook.steps == sum(len(seen) // 4 for seen in watched.seen)  # half of 2 epochs
    assert hook.seconds > 0
    for name, value in made.model.state_dict().items():  # the cascade itself has learnt nothing
        assert torch.equal(value, before[name]), name


def test_judges_begin_with_the_small_model_and_heads_of_their_own(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, watched = make(), Watched(monkeypatch)
    Difficulty(made.context).before()
    encoder = made.model.encoder.small.state_dict()
    for start in watched.start:
        for name, value in encoder.items():
            assert torch.equal(start[f"encoder.{name}"], value)
    heads = [start["heads.exits.0.weight"] for start in watched.start]
    assert not torch.equal(heads[0], heads[1])
    seed = made.context.seed
    assert [each.seed for each in watched.settings] == [seed + 1, seed + 2, seed + 3]


@pytest.mark.parametrize("pooling", [None, "mean", "own_pooler"])
@torch.no_grad()
def test_a_judge_reads_what_the_first_exit_reads(
    pooling: str | None, tiny_backbone: Path, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    made = toy("cascadebert", tiny_backbone, tiny_tokenizer, rows=8, pooling=pooling)
    model, batch = made.model.eval(), made.batch(size=8)
    batch.pop("labels")
    judge = small_alone(model, 1).eval()
    head = judge.heads.exits[0]
    first = model.heads.exits[0]
    first.weight.zero_()
    first.weight[:, :16] = head.weight
    first.bias.copy_(head.bias)
    expected = model(**batch).exit_logits[:, 0]
    torch.testing.assert_close(judge(**batch).logits, expected, atol=1e-5, rtol=1e-4)


def test_a_fold_that_was_judged_is_not_judged_again(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(place=tmp_path)
    first = Difficulty(made.context)
    first.before()
    expected = made.context.rows.extras["difficult"]
    assert {path.name for path in tmp_path.iterdir()} == {f"difficult-{n}.json" for n in (1, 2, 3)}
    (tmp_path / "difficult-2.json").unlink()
    watched, again = Watched(monkeypatch), Difficulty(made.context)
    again.before()
    assert [each.seed for each in watched.settings] == [made.context.seed + 2]
    assert torch.equal(made.context.rows.extras["difficult"], expected)
    assert again.steps == first.steps
    record = json.loads((tmp_path / "difficult-1.json").read_text(encoding="utf-8"))
    assert len(record["difficult"]) == len(folds_of(ROWS, 3, made.context.seed)[0])


def test_without_weight_nobody_is_asked(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made, watched = make(difficulty=0.0), Watched(monkeypatch)
    hook = Difficulty(made.context)
    hook.before()
    assert not watched.judges
    assert made.context.rows.extras["difficult"].tolist() == [False] * ROWS
    assert hook.steps == 0


def test_as_many_judges_as_asked_for(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    Difficulty(make(folds=2.0, difficulty_epochs=1.0).context).before()
    assert len(watched.judges) == 2
    assert {each.epochs for each in watched.settings} == {2.0}
