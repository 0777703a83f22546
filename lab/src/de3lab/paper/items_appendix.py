"""The tables and figures of the paper's appendix, in its order."""

from __future__ import annotations

from de3lab.paper.item import Item, Measured, Trained, Varied
from de3lab.paper.items_main import DE3, DEV, FOUR, LAMBDAS_OF, ONE_RATE_SETTING

__all__ = ["APPENDIX"]

ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1)

BASELINES = Item(
    name="baselines",
    references=("Table V",),
    labels=("tab:early_exit_baselines",),
    title="What the compared methods are made of",
    shows="Exit rule, exit and training objective of every early-exit method.",
)
EXIT_LAYERS = Item(
    name="exit-layers",
    references=("Fig. 6",),
    labels=("fig:sample_distribution",),
    title="Where rows leave at three thresholds",
    shows="On QNLI a higher threshold sends rows out at shallower layers: faster, and less right.",
    setting="BERT-base, all training rows, development set of QNLI",
    trained=Trained("paper_methods", ("de3",), ("qnli", "sst2")),
    measured=Measured(
        "exit-layers",
        DE3,
        rows=DEV,
        settings={"qnli": {"family": "edr(lambda=2.0)"}, "sst2": {"family": "edr(lambda=1.0)"}},
        seeds="first",
    ),
)
SPEED = Item(
    name="speed",
    references=("Table VI",),
    labels=("tab:different_speed_measurement",),
    title="Executed layers, time and operations",
    shows="Over 16 thresholds on SST-2 executed layers go with measured time (Pearson 0.96) and "
    "with operations (0.99), so that counting layers is a fair measure of speed.",
    setting="BERT-base, development set of SST-2 (872 rows), texts one at a time on an RTX 3090",
    trained=Trained("paper_methods", ("de3",), ("sst2",)),
    measured=Measured("speed", DE3, rows=DEV, of="models", seeds="first"),
)
SHIFT = Item(
    name="shift",
    references=("Table VII",),
    labels=("tab:OOD_generalization",),
    title="Trained on one data set, asked about another",
    shows="DE3 is a little below CeeBERT on shifted data, and a little above it once its "
    "prototypes are adjusted to the new rows (ACP).",
    setting="BERT-base, all training rows, mean of five runs",
    trained=Trained("paper_shift"),
    measured=Measured(
        "shift",
        {"ceebert": "ceebert", "joint-entropy": "joint-entropy", "de3": "de3"},
        rows={"sst2": "imdb", "mnli": "snli"},
        settings=LAMBDAS_OF,
        adapted={"de3 adapted": "de3"},
    ),
)
CHINESE = Item(
    name="chinese",
    references=("Table VIII",),
    labels=("tab:chinese_cls",),
    title="Chinese, at a layer speed-up of 3x",
    shows="With a Chinese BERT-base DE3 is above GPFEE on LCQMC and THUCNews.",
    setting="bert-base-chinese (12 layers), all training rows, THUCNews with 14 classes, "
    "mean of five runs",
    trained=Trained("paper_chinese"),
)
LAMBDAS = Item(
    name="lambda",
    references=("Fig. 7",),
    labels=("fig:lamda_sensitivity",),
    title="The weight of the distance ratio",
    shows="As lambda grows, the score first rises and then falls; the best lambda is higher at "
    "higher speeds, and so is what the distance ratio gives.",
    setting="BERT-base, alpha 0.1 (SST-2) and 0.001 (QNLI), development sets",
    trained=Trained("paper_methods", ("de3",), ("sst2", "qnli")),
    measured=Measured("lambda", DE3, rows=DEV),
)
ALPHA = Item(
    name="alpha",
    references=("Fig. 8",),
    labels=("fig:arfa_sensitivity",),
    title="The weight of the regulariser",
    shows="Between 0.0001 and 0.1 the choice of alpha changes the score by less than one percent "
    "at every speed.",
    setting="BERT-base, lambda 1 (SST-2) and 2 (QNLI), development sets",
    trained=Trained("paper_alpha", varied=Varied("de3", "alpha", ALPHAS)),
    measured=Measured("alpha", DE3, rows=DEV, settings=LAMBDAS_OF),
)
CORRECTNESS = Item(
    name="correctness",
    references=("Fig. 9",),
    labels=("fig:correctness_estimation",),
    title="How well each signal knows a right answer",
    shows="At layers 2, 5 and 10 with a threshold of 0.2, EDR tells right from wrong answers "
    "better than entropy on all four tasks, most of all at shallow layers.",
    setting="BERT-base, all training rows, development sets, layers 2, 5 and 10, threshold 0.2",
    trained=Trained("paper_methods", ("de3",), FOUR),
    measured=Measured("correctness", DE3, rows=DEV, settings=LAMBDAS_OF),
)
ONE_RATE_CORRECTNESS = Item(
    name="one-rate-correctness",
    references=(),
    labels=(),
    beside="Fig. 9",
    title="The same with one learning rate for encoder and heads",
    shows="Nothing is said of learning rates of heads; there is one for all.",
    setting=ONE_RATE_SETTING,
    trained=Trained("paper_one_rate"),
    measured=Measured("correctness", DE3, rows=DEV, settings=LAMBDAS_OF),
)
COSTS = Item(
    name="costs",
    references=("Table IX", "Table X"),
    labels=("tab:storage_training_costs", "tab:flops_analysis"),
    title="Parameters, training time and operations",
    shows="DE3 adds 6 % parameters to BERT-base, 0.067 % operations to every layer, and trains "
    "about as fast.",
    setting="BERT-base, 128 tokens; minutes until the best checkpoint on one RTX 3090",
    trained=Trained("paper_methods", ("de3", "full", "deebert"), ("sst2",)),
    measured=Measured(
        "costs",
        {"full": "full", "deebert": "deebert", "de3": "de3"},
        rows=DEV,
        of="models",
    ),
)
SPACE = Item(
    name="space",
    references=("Fig. 10",),
    labels=("fig:visualization",),
    title="Rows and prototypes in two dimensions",
    shows="At layers 2 and 5 of MNLI models, classes are told apart more clearly with the "
    "regulariser than without it.",
    setting="BERT-base, development set of MNLI, layers 2 and 5",
    trained=Trained("paper_components", ("de3", "de3-no-pn-no-dar"), ("mnli", "sst2")),
    measured=Measured(
        "space",
        {"de3": "de3", "w/o DAR": "de3-no-pn-no-dar"},
        rows=DEV,
        of="models",
        seeds="first",
    ),
)
HOMOGENEITY = Item(
    name="homogeneity",
    references=("Table XI",),
    labels=("tab:PN_homo",),
    title="Do entropy and distance ratio say the same?",
    shows="At layer 2 the correlation of entropy and distance ratio is low with prototypical "
    "networks and clearly higher without.",
    setting="BERT-base, all training rows, development sets",
    trained=Trained("paper_components", ("de3", "de3-no-pn"), FOUR),
    measured=Measured(
        "homogeneity",
        {"de3": "de3", "w/o PN": "de3-no-pn"},
        rows=DEV,
    ),
)
HYPERPARAMETERS = Item(
    name="hyperparameters",
    references=("Table XII",),
    labels=("tab:hyperparameter_selection",),
    title="Settings of the trainings",
    shows="The paper searches over batch size, learning rate, alpha and lambda on every task.",
)
DAR_FORMS = Item(
    name="dar-forms",
    references=("Table XIII",),
    labels=("tab:dar_performance",),
    title="Three forms of the regulariser",
    shows="Center, alienation and combined loss give about the same; all are above GPFEE on "
    "average.",
    setting="BERT-base, all training rows, settings searched for each task, GLUE test server",
    trained=Trained("paper_dar_forms"),
    measured=Measured(
        "dar-forms",
        {"de3": "de3", "v2": "de3-v2", "v3": "de3-v3"},
        rows=DEV,
        settings=LAMBDAS_OF,
    ),
)
APPENDIX = (
    BASELINES, EXIT_LAYERS, SPEED, SHIFT, CHINESE, LAMBDAS, ALPHA, CORRECTNESS,
    ONE_RATE_CORRECTNESS, COSTS, SPACE, HOMOGENEITY, HYPERPARAMETERS, DAR_FORMS,
)  # fmt: skip
