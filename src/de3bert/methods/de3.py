"""DE3: joint training of all exits with class prototypes; entropy fused with a distance ratio."""

from de3bert.methods.method import METHODS, Method, Term

METHODS.add(
    "de3",
    Method(
        name="de3",
        summary="class prototypes at every exit; leave when entropy and distance ratio agree",
        citation="He et al., DE3-BERT: Distance-Enhanced Early Exiting for BERT "
        "Based on Prototypical Networks",
        terms=(Term("cross_entropy"), Term("distance", weight="alpha")),
        prototypes="linear",
        signal="edr",
        options={
            "alpha": 0.1,  # weight of the distance-aware regulariser
            "dar": "center",  # its form: center, alienation, combined, none
            "beta": 1.0,  # weight of alienation within `combined`; the paper does not report it
            "gamma": 0.5,  # update rate of the prototypes
            "lambda": 1.0,  # fusion weight until calibration chooses one
        },
    ),
)
