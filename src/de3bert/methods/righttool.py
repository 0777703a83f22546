"""RightTool: a few exits that mix all layers below them; calibrated confidence."""

from de3bert.methods.method import METHODS, Method, Phase, Term

METHODS.add(
    "righttool",
    Method(
        name="righttool",
        summary="four exits on mixtures of the layers below; leave at a calibrated probability",
        citation="Schwartz et al., 2020: The Right Tool for the Job",
        group="early exit",
        phases=(Phase((Term("cross_entropy", exits="uniform"),)),),
        families=("max_probability",),
        heads="mixed",
        exits_at=(1 / 12, 4 / 12, 6 / 12, 1.0),
        finish="temperatures",
    ),
)
