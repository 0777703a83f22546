"""DistilBERT: every other layer of the backbone, pre-trained to say what the whole one says."""

from de3bert.methods.full import TASK
from de3bert.methods.method import METHODS, Method, Phase, Term

METHODS.add(
    "distilbert",
    Method(
        name="distilbert",
        summary="every other layer, taught hidden words by the whole backbone, then fine-tuned",
        citation="Sanh et al., 2019: DistilBERT, a distilled version of BERT",
        group="distillation",
        phases=(
            Phase(
                (
                    Term("word_knowledge", weight="soft", needs=("teacher_tokens",)),
                    Term("masked_words", weight="words", needs=("words",)),
                    Term("token_directions", weight="directions", needs=("teacher_tokens",)),
                ),
                name="words",
                rows="unlabelled",
                hook="masked_teacher",
                epochs="word_epochs",
                learning_rate="word_rate",
            ),
            Phase(TASK.terms, name="fine-tune", judge="last"),
        ),
        families=("layers",),
        internal_exits=False,
        depth="spread",
        options={
            "layers": 0.0,  # 0: half of the backbone's
            "soft": 5.0,  # weight of the teacher's word probabilities
            "temperature": 2.0,
            "soft_words": "all",  # where these are compared: at all tokens, or at `masked` ones
            "words": 2.0,  # weight of the hidden words themselves
            "directions": 1.0,  # weight of the cosine of the last states
            "word_epochs": 1.0,  # times the recipe's; 0 leaves the phase out
            "word_rate": 1.0,  # times the recipe's learning rate
        },
    ),
)
