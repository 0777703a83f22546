"""Plain fine-tuning: one head after the last layer, no exits. The reference for time and score."""

from de3bert.methods.method import METHODS, Method, Phase, Term

TASK = Phase((Term("cross_entropy", exits="last"),), judge="last")

FULL_METHOD = METHODS.add(
    "full",
    Method(
        name="full",
        summary="plain fine-tuning, no early exits",
        citation="Devlin et al., 2019",
        group="reference",
        phases=(TASK,),
        families=("layers",),
        internal_exits=False,
    ),
)

METHODS.add(
    "layers-k",
    Method(
        name="layers-k",
        summary="the first k layers, fine-tuned as a model of their own (`layers-6`)",
        citation="budget exiting in He et al., DE3-BERT",
        group="reference",
        phases=(TASK,),
        families=("layers",),
        internal_exits=False,
        depth="first",
        options={"layers": 0.0},  # 0: half of the backbone's
    ),
)
