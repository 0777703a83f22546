"""DE3: joint training of all exits with class prototypes; entropy fused with a distance ratio."""

from dataclasses import replace

from de3bert.methods.method import METHODS, Method, Phase, Term

DE3 = Method(
    name="de3",
    summary="class prototypes at every exit; leave when entropy and distance ratio agree",
    citation="He et al., DE3-BERT: Distance-Enhanced Early Exiting for BERT "
    "Based on Prototypical Networks",
    group="ours",
    phases=(Phase((Term("cross_entropy"), Term("distance", weight="alpha"))),),
    families=("edr",),
    prototypes="linear",
    options={
        "alpha": 0.1,  # weight of the distance-aware regulariser
        "dar": "center",  # its form: center, alienation, combined, none
        "beta": 1.0,  # weight of alienation within `combined`; the paper does not report it
        "gamma": 0.5,  # update rate of the prototypes
        "lambda": 1.0,  # fusion weight until calibration chooses one
    },
)

METHODS.add("de3", DE3)


def _variant(name: str, summary: str, prototypes: str = "linear", **options: float | str) -> None:
    changed = {**DE3.options, **options}
    METHODS.add(
        name,
        replace(DE3, name=name, summary=summary, prototypes=prototypes, options=changed),  # type: ignore[arg-type]
    )


_variant("de3-v2", "DE3 with the alienation form of the regulariser", dar="alienation")
_variant("de3-v3", "DE3 with the combined form of the regulariser", dar="combined")
_variant("de3-no-pn", "DE3 without prototypical networks: distances of the pooled vector itself",
         prototypes="identity")  # fmt: skip
_variant("de3-no-pn-no-dar", "DE3 without prototypical networks and regulariser: prototypes only",
         prototypes="identity", dar="none")  # fmt: skip
