"""BERT-PKD: half of the layers learn from labels, from the teacher's logits and from its states."""

from de3bert.methods.method import METHODS, Method, Phase, Term

METHODS.add(
    "pkd",
    Method(
        name="pkd",
        summary="the first half of the layers, taught logits and first-token states by the whole",
        citation="Sun et al., 2019: Patient Knowledge Distillation for BERT Model Compression",
        group="distillation",
        phases=(
            Phase(
                (
                    Term("cross_entropy", weight="hard", exits="last"),
                    Term("knowledge", weight="soft", needs=("teacher_logits",)),
                    Term("patient_states", weight="patience", needs=("teacher_states",)),
                ),
                hook="teacher_states",
                judge="last",
            ),
        ),
        families=("layers",),
        internal_exits=False,
        depth="first",
        teacher="full",
        options={
            "layers": 0.0,  # 0: half of the backbone's
            "hard": 0.5,  # 1 - alpha of the paper: labels
            "soft": 0.5,  # alpha: the teacher's logits
            "temperature": 5.0,
            "patience": 100.0,  # beta: the teacher's states
            "match": "skip",  # with which of the teacher's layers: `skip` 2 4 6 ..., `last` ... 11
        },
    ),
)
