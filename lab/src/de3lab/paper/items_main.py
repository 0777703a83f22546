"""The tables and figures of the main paper, in its order."""

from __future__ import annotations

from de3lab.paper.item import Item, Measured, Trained
from de3lab.paper.published import published

__all__ = ["DE3", "DEV", "FOUR", "LAMBDAS_OF", "MAIN", "ONE_RATE_SETTING"]

FOUR = ("qqp", "sst2", "mnli", "qnli")  # the paper's representative subset, in its order
DEV = {"sst2": "dev"}  # figures are of development sets; the other tasks have no other rows
DE3 = {"de3": "de3"}
# The paper's lambda of each task: chosen there, not here, so that nothing is tuned on test rows.
LAMBDAS_OF = {
    task: {"lambdas": [weight]}
    for task, weight in published()["hyperparameters"]["lambda"].items()
    if task != "range"
}

SAMPLE = Item(
    name="sample",
    references=("Fig. 1",),
    labels=("fig:intro_entropy",),
    title="A confident answer need not be right",
    shows="On one pair of questions of QQP the first exit is wrong with a low entropy, and the "
    "sixth is right with a high one.",
    setting="BERT-base, one pair of questions of QQP",
    trained=Trained("paper_methods", ("de3",), ("qqp", "sst2")),
    measured=Measured("sample", DE3, rows=DEV, settings=LAMBDAS_OF, of="texts", seeds="first"),
)
STRATEGIES = Item(
    name="strategies",
    references=("Fig. 2",),
    labels=("fig:oracle",),
    title="Exit rules, the backbone and the oracle",
    shows="On QNLI the oracle, which leaves at the first exit that is right, stands far above all "
    "exit rules and the full model in score and speed: better estimates of correctness would pay.",
    setting="BERT-base, development set of QNLI",
    trained=Trained("paper_methods", ("de3", "full"), ("qnli", "sst2")),
    measured=Measured("strategies", DE3, rows=DEV, settings=LAMBDAS_OF, seeds="first"),
)
OVERVIEW = Item(
    name="overview",
    references=("Fig. 3",),
    labels=("fig:overview",),
    title="Early exits by entropy, and DE3's",
    shows="A drawing of the method; there is nothing to measure. `docs/architecture.md` says how "
    "the parts are laid out here.",
)
DATA = Item(
    name="data",
    references=("Table I",),
    labels=("tab:dataset_statistics",),
    title="Data sets",
    shows="Six classification tasks of GLUE.",
)
METHODS = Item(
    name="methods",
    references=("Table II",),
    labels=("tab:main_result",),
    title="Early-exit methods at a layer speed-up of 2x and 3x",
    shows="DE3 is above the methods that improve the exit rule at both speeds, by more at 3x, and "
    "level with GPFEE and LeeBERT; with COSEE's training (DE-COSEE) it is above COSEE.",
    setting="BERT-base, all training rows, settings searched for each task, GLUE test server",
    trained=Trained("paper_methods"),
)
DISTILLATION = Item(
    name="distillation",
    references=("Table III",),
    labels=("tab:compare_static_methods",),
    title="Distilled students of half the layers, and DE3 at 2x",
    shows="DE3 at a layer speed-up of 2x is above all students of six layers on all four tasks.",
    setting="BERT-base, all training rows, GLUE test server; students as their authors report them",
    trained=Trained("paper_distillation"),
)
INDICATOR = Item(
    name="indicator",
    references=("Fig. 4",),
    labels=("fig:ablation_dr",),
    title="Entropy against EDR on the same model",
    shows="On the same model, EDR gives a better trade-off than entropy on all four tasks, and the "
    "more so the higher the speed.",
    setting="BERT-base, all training rows, development sets",
    trained=Trained("paper_methods", ("de3",), FOUR),
    measured=Measured("indicator", DE3, rows=DEV, settings=LAMBDAS_OF),
)
# The paper trains heads at the encoder's rate and on all rows; the studies here, which have few
# steps, give heads a higher rate. What the distance ratio gives depends on it.
ONE_RATE_SETTING = "not in the paper, which has one rate for encoder and heads and far more steps"
ONE_RATE = Item(
    name="one-rate",
    references=(),
    labels=(),
    beside="Fig. 4",
    title="The same with one learning rate for encoder and heads",
    shows="Nothing is said of learning rates of heads; there is one for all. With as few steps as "
    "here, linear heads at shallow layers then hardly learn.",
    setting=ONE_RATE_SETTING,
    trained=Trained("paper_one_rate"),
    measured=Measured("indicator", DE3, rows=DEV, settings=LAMBDAS_OF),
)
COMPONENTS = Item(
    name="components",
    references=("Fig. 5",),
    labels=("fig:ablation_dar_pn",),
    title="What prototypical networks and the regulariser give",
    shows="Without prototypical networks (PN) the trade-off is worse, and without the regulariser "
    "(DAR) worse again.",
    setting="BERT-base, all training rows, development sets",
    trained=Trained("paper_components", (), FOUR),
    measured=Measured(
        "components",
        {"de3": "de3", "w/o PN": "de3-no-pn", "w/o PN w/o DAR": "de3-no-pn-no-dar"},
        rows=DEV,
        settings=LAMBDAS_OF,
    ),
)
BACKBONE = Item(
    name="backbone",
    references=("Table IV",),
    labels=("tab:generalization",),
    title="Another encoder at a layer speed-up of 3x",
    shows="With RoBERTa-base DE3 is above the other early-exit methods on three of four tasks.",
    setting="RoBERTa-base, all training rows, GLUE test server",
    trained=Trained("paper_minilm"),
    renamed={"layers-4": "layers-2"},
)
MAIN = (
    SAMPLE, STRATEGIES, OVERVIEW, DATA, METHODS, DISTILLATION, INDICATOR, ONE_RATE,
    COMPONENTS, BACKBONE,
)  # fmt: skip
