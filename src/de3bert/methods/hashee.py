"""HashEE: every word of the vocabulary has its last layer, fixed before training."""

from de3bert.methods.full import TASK
from de3bert.methods.method import METHODS, Method, Phase

METHODS.add(
    "hashee",
    Method(
        name="hashee",
        summary="tokens stop one by one, at the layer of their bucket; one head, no rule",
        citation="Sun et al., 2022: A Simple Hash-Based Early Exiting Approach",
        group="tokens",
        phases=(Phase(TASK.terms, hook="token_table", judge="last"),),
        families=("layers",),
        internal_exits=False,
        depth="last",
        token_exits="hash",
        options={
            "hash": "frequency",  # frequency, information, random, occurrence, cluster
            "buckets": 6.0,
            "last": 0.0,  # the deepest layer; 0: the backbone's
        },
    ),
)
