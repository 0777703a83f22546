"""Methods for taggers: whole sentences leave, or words halt one by one."""

from dataclasses import replace

from de3bert.methods.de3 import DE3
from de3bert.methods.method import METHODS, Method, Phase, Term

CITATION = "Li et al., 2021: Accelerating BERT Inference for Sequence Labeling via Early-Exit"

SENTEE = Method(
    name="sentee",
    summary="tags words; a sentence leaves when all its words are sure",
    citation=CITATION,
    group="tokens",
    phases=(Phase((Term("cross_entropy"),)),),
    families=("entropy",),
    pooling="cls",  # of a word, whose only token is its first piece
    task="token-classification",
)

METHODS.add("sentee", SENTEE)
METHODS.add(
    "tokee",
    replace(
        SENTEE,
        name="tokee",
        summary="tags words; words halt one by one, and training shows the others halted words",
        phases=(
            Phase((Term("cross_entropy"),), name="joint"),
            Phase(
                (Term("until_halted"),),
                name="self-sampling",
                epochs="sampling",
                hook="self_sampling",
            ),
        ),
        options={
            "sampling": 1.0,  # epochs of the second phase, as a multiple of the recipe's
            "full_share": 0.4,  # of the sentences of the second phase, where no word halts
        },
    ),
)
METHODS.add(
    "de3-words",
    replace(
        DE3,
        name="de3-words",
        summary="DE3 on words: prototypes of tags; a sentence leaves when all its words are sure",
        group="tokens",
        pooling="cls",
        task="token-classification",
    ),
)
