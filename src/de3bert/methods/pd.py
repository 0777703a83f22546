"""PD-BERT: half of the layers, pre-trained on text first, then taught by the whole."""

from de3bert.methods.full import TASK
from de3bert.methods.method import METHODS, Method, Phase, Term

METHODS.add(
    "pd",
    Method(
        name="pd",
        summary="the first half of the layers: guess hidden words, then the teacher's soft labels",
        citation="Turc et al., 2019: Well-Read Students Learn Better",
        group="distillation",
        phases=(
            Phase(
                (Term("masked_words", needs=("words",)),), name="words", rows="unlabelled",
                hook="masked_words", epochs="word_epochs", learning_rate="word_rate",
            ),
            Phase(
                (Term("soft_labels", needs=("teacher_logits",)),), name="distil",
                hook="teacher_logits", judge="last",
            ),
            Phase(TASK.terms, name="fine-tune", epochs="fine_tune", judge="last"),
        ),
        families=("layers",),
        internal_exits=False,
        depth="first",
        teacher="full",
        options={
            "layers": 0.0,  # 0: half of the backbone's
            "word_epochs": 1.0,  # times the recipe's; 0 leaves the phase out
            "word_rate": 1.0,  # times the recipe's learning rate
            "fine_tune": 0.0,  # times the recipe's epochs, on labels; optional in the paper
        },
    ),
)  # fmt: skip
