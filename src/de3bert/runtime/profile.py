"""What a layer and an exit test cost on this machine: measured, fitted, kept in the folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from de3bert.data.tokens import TokenRow
from de3bert.errors import De3Error, UsageError
from de3bert.exits import Placement, Policy, Trace, place_exits
from de3bert.exits.cost_model import CostModel, TimeSample
from de3bert.files import read_json, write_json
from de3bert.machine import machine, versions
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.engine import run_batch
from de3bert.runtime.load import check_folder, read_config
from de3bert.runtime.manifest import check_inside, is_bundle
from de3bert.runtime.model_info import ModelInfo
from de3bert.runtime.timing import Job, in_turn
from de3bert.runtime.weights import weights_sha256

__all__ = [
    "PROFILE",
    "check_measured_by",
    "known_profile",
    "place_for",
    "profile",
    "read_profile",
    "write_profile",
]

PROFILE = "profile.json"
LENGTHS = (8, 16, 32, 64, 128, 256, 512)
FIRST_ID = 5  # token ids that every vocabulary has


@dataclass(frozen=True)
class Case:
    """One kind of work to time: a batch of one length under one policy."""

    batch: int
    tokens: int
    policy: Policy
    layers: int
    tests: int


def profile(
    classifier: Classifier,
    *,
    batches: Sequence[int] = (1, 8),
    lengths: Sequence[int] | None = None,
    rounds: int = 15,
    note: Callable[[str], None] = lambda text: None,
) -> CostModel:
    """Times batches of known length, depth and number of exit tests, and fits the cost model.

    All depths of one length are run in turn, round after round, so that a disturbance of the
    machine hits all of them alike; of each the median counts.

    Args:
        batches: batch sizes; 1 is always measured.
        lengths: text lengths in tokens; by default powers of two up to the model's limit.
    """
    if rounds < 3:
        raise UsageError(f"A profile needs at least 3 rounds, got {rounds}.")
    limit = classifier.info.max_length
    grid = sorted({min(length, limit) for length in lengths or LENGTHS if length >= 1})
    if not grid or any(batch < 1 for batch in batches):
        raise UsageError("Lengths and batch sizes of a profile are whole numbers from 1 up.")
    samples: list[TimeSample] = []
    for batch in sorted({1, *batches}):
        for tokens in grid:
            note(f"batch {batch}, {tokens} tokens")
            samples.extend(_timed(classifier, _cases(classifier, batch, tokens), rounds))
    info = {
        "machine": machine(),
        "versions": versions(),
        "weights": classifier.weights_sha256,
        "rounds": rounds,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "backend": classifier.opening.backend if classifier.opening else None,
        **{key: value for key, value in classifier.backend.size().items() if key in FACTS},
    }
    return CostModel.fit(samples, _tokenising(classifier, grid, rounds), info)


FACTS = ("bundle", "threads")


def _cases(classifier: Classifier, batch: int, tokens: int) -> list[Case]:
    """Some depths without a test, and full depth with every exit tested and none taken."""
    layers = classifier.backend.exit_layers
    internal = layers[:-1]
    some = sorted({layers[0], layers[len(layers) // 2], layers[-1]})
    cases = [Case(batch, tokens, Policy.parse(f"layer({depth})"), depth, 0) for depth in some]
    if internal:
        signal = "edr" if _has_distances(classifier) else "entropy"
        never = Policy.parse(f"{signal} < 0.0")
        cases.append(Case(batch, tokens, never, layers[-1], len(internal)))
    return cases


def _has_distances(classifier: Classifier) -> bool:
    return classifier.has_prototypes and not classifier.backend.prototypes_unset


def _timed(classifier: Classifier, cases: Sequence[Case], rounds: int) -> list[TimeSample]:
    jobs = {str(number): _job(classifier, case) for number, case in enumerate(cases)}
    times = in_turn(jobs, 1, rounds + 1)  # the first round warms up
    spent = [seen[0, 1:] * 1e3 for seen in times.values()]
    return [
        TimeSample(case.batch, case.tokens, case.layers, case.tests, float(np.median(seen)))
        for case, seen in zip(cases, spent, strict=True)
    ]


def _job(classifier: Classifier, case: Case) -> Job:
    rows = _rows(classifier, case.batch, case.tokens)
    return lambda _: run_batch(classifier.backend, rows, case.policy)


def _rows(classifier: Classifier, batch: int, tokens: int) -> list[TokenRow]:
    """Token rows of just this length, with the fields the tokenizer gives."""
    fields = classifier.backend.encoder([classifier.task.typed("a", None)]).rows[0]
    row = {name: [1 if name == "attention_mask" else 0] * tokens for name in fields}
    row["input_ids"] = [FIRST_ID] * tokens
    if "word_ids" in row:  # a word each, the most that a test can have to read
        row["word_ids"] = list(range(1, tokens + 1))
    return [row] * batch


def _tokenising(classifier: Classifier, grid: Sequence[int], rounds: int) -> dict[int, float]:
    """Milliseconds to tokenise one text, by its length."""
    encoder = classifier.backend.encoder  # also of a model of pairs: its time is that of tokens
    found: dict[int, float] = {}
    for tokens in grid:
        text = classifier.task.typed(" ".join(["word"] * max(1, tokens - 2)), None)
        length = len(encoder([text]).rows[0]["input_ids"])
        spent = in_turn({"text": _reading(classifier, text)}, 1, rounds)["text"]
        found[length] = float(np.median(spent)) * 1e3
    return found


def _reading(classifier: Classifier, text: Any) -> Job:
    return lambda _: classifier.backend.encoder([text])


def write_profile(folder: str | Path, cost: CostModel) -> Path:
    """Keeps a profile in the folder of the model it was measured with."""
    path = Path(folder) / PROFILE
    write_json(path, cost.to_json())
    return path


def known_profile(folder: str | Path) -> CostModel:
    """The profile of a folder; UsageError when it has not been measured yet."""
    check_folder(Path(folder))
    cost = read_profile(folder, weights_sha256(folder))
    if cost is None:
        raise UsageError(
            f"{folder} has not been profiled on this machine yet. Run first: de3 profile {folder}"
        )
    return cost


def check_measured_by(cost: CostModel, folder: str | Path, backend: str | None) -> None:
    """UsageError when a profile is of another back end than the one asked for, if any was."""
    measured = cost.info.get("backend")
    if backend is None or measured in (None, backend):
        return
    raise UsageError(
        f"The profile of {folder} was measured with the back end {measured}, and its times are not "
        f"those of {backend}. Measure again with: de3 profile {folder} --backend {backend}"
    )


def read_profile(folder: str | Path, weights: str | None = None) -> CostModel | None:
    """The profile of a folder, None when it has none.

    Raises:
        De3Error: it is damaged, or was measured with other weights than `weights`.
    """
    path = Path(folder) / PROFILE
    if not path.exists():
        return None
    if is_bundle(folder):
        check_inside(Path(folder), PROFILE)
    cost = CostModel.from_json(read_json(path, "Measure again with `de3 profile`."))
    if weights is not None and cost.info.get("weights") not in (None, weights):
        raise De3Error(
            f"{path} was measured with other weights than this folder has. "
            f"Measure again with: de3 profile {folder}"
        )
    return cost


def place_for(
    folder: str | Path,
    trace: str | Path,
    target: str,
    *,
    family: str | Sequence[str] | None = None,
    keep: Iterable[int] = (),
    metric: str | None = None,
) -> Placement:
    """The exits that give the least expected time on the machine the folder was profiled on.

    The trace may be of the bundle or of the model it was exported from: what each exit says is the
    same, and the costs of a layer and of a test are the bundle's.
    """
    cost = known_profile(folder)
    recorded = Trace.load(str(trace))
    info = ModelInfo.of(read_config(folder))
    if recorded.depth != info.exit_layers[-1]:
        raise UsageError(
            f"The trace is of a model with {recorded.depth} layers, {folder} has "
            f"{info.exit_layers[-1]}."
        )
    if info.keeps_memory:
        raise UsageError(
            f"Exits of the method {info.method} build on the exits before them, so none can "
            "be left out."
        )
    chosen = metric or info.metric
    return place_exits(recorded, cost, target, family=family, metric=chosen, keep=keep)
