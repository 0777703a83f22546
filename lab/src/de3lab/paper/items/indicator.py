"""Fig. 4: entropy against EDR on the same model; and beside it the same with one learning rate."""

from __future__ import annotations

from functools import partial

from de3lab.paper.gains import above_other, difference_tables, interval_of, pair_of
from de3lab.paper.item import Finding, Item, Measurement, Training
from de3lab.paper.items.hyperparameters import LAMBDAS_OF
from de3lab.paper.judging import Sample, Verdict, above, points, unmeasured
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import DEV, FOUR, task_name

__all__ = ["INDICATOR", "ONE_RATE", "ONE_RATE_SETTING"]

# The paper trains heads at the encoder's rate and on all rows; the studies here, which have few
# steps, give heads a higher rate. What the distance ratio gives depends on it.
ONE_RATE_SETTING = "not in the paper, which has one rate for encoder and heads and far more steps"


def above_entropy(stored: Stored, one_rate: bool = False) -> Verdict:
    """EDR less entropy on the same models, the mean of 2x and 3x."""
    return above_other(stored, ONE_RATE if one_rate else INDICATOR, "EDR", "entropy")


def growing(stored: Stored, one_rate: bool = False) -> Verdict:
    """How much more EDR gives at the highest speed than at the lowest."""
    item = ONE_RATE if one_rate else INDICATOR
    pairs = {task: pair_of(doc, "EDR", "entropy") for task, doc in stored.results(item).items()}
    grown = {task: pair["growth"] for task, pair in pairs.items() if pair and pair["growth"]}
    if not grown:
        return unmeasured(item.name)
    sample = Sample(
        [value for seen in grown.values() for value in seen["values"]],
        [interval_of(seen["over_rows"]) for seen in grown.values()],
    )
    said = "; ".join(
        f"{task_name(task)} {points(seen['mean'])} from {seen['from']:g}x to {seen['to']:g}x"
        for task, seen in grown.items()
    )
    return above(sample).saying(f"The gain over entropy grows by {said}.")


MEASUREMENT = Measurement("indicator", {"de3": "de3"}, rows=DEV, settings=LAMBDAS_OF)
INDICATOR: Item = Item(
    name="indicator",
    references=("Fig. 4",),
    labels=("fig:ablation_dr",),
    title="Entropy against EDR on the same model",
    shows="On the same model, EDR gives a better trade-off than entropy on all four tasks, and the "
    "more so the higher the speed.",
    setting="BERT-base, all training rows, development sets",
    training=Training("paper_methods", ("de3",), FOUR),
    measurement=MEASUREMENT,
    tables=lambda stored: difference_tables(
        stored.results(INDICATOR), "What the distance ratio gives"
    ),
    findings=(
        Finding(
            "entropy",
            "EDR gives a better trade-off than entropy on the same model.",
            above_entropy,
        ),
        Finding("growing", "The gain over entropy grows with the layer speed-up.", growing),
    ),
)
ONE_RATE: Item = Item(
    name="one-rate",
    references=(),
    labels=(),
    beside="Fig. 4",
    title="The same with one learning rate for encoder and heads",
    shows="Nothing is said of learning rates of heads; there is one for all. With as few steps as "
    "here, linear heads at shallow layers then hardly learn.",
    setting=ONE_RATE_SETTING,
    training=Training("paper_one_rate"),
    measurement=MEASUREMENT,
    tables=lambda stored: difference_tables(
        stored.results(ONE_RATE), "What the distance ratio gives with one rate"
    ),
    findings=(
        Finding(
            "one-rate",
            "EDR is above entropy when heads learn at the encoder's rate, as the paper trains.",
            partial(above_entropy, one_rate=True),
        ),
        Finding(
            "one-rate-growing",
            "With one rate, the gain over entropy grows with the layer speed-up.",
            partial(growing, one_rate=True),
        ),
    ),
)
