"""One joint training of all exits, read by different rules: entropy, patience, both, the oracle."""

from dataclasses import replace

from de3bert.methods.method import METHODS, Method, Phase, Term

JOINT = Method(
    name="joint-entropy",
    summary="all exits trained together; leave when the entropy is low",
    citation="the training of PABEE (Zhou et al., 2020), the rule of DeeBERT (Xin et al., 2020)",
    group="baseline",
    phases=(Phase((Term("cross_entropy"),)),),
    families=("entropy",),
)

METHODS.add("joint-entropy", JOINT)
METHODS.add(
    "joint-entropy-calibrated",
    replace(
        JOINT,
        name="joint-entropy-calibrated",
        summary="joint-entropy with one temperature per exit, fitted on calibration rows",
        citation="temperatures after Guo et al., 2017; as RightTool (Schwartz et al., 2020) does",
        training="joint-entropy",
        finish="temperatures",
    ),
)
METHODS.add(
    "pabee",
    replace(
        JOINT,
        name="pabee",
        summary="leave when several exits in a row give the same answer",
        citation="Zhou et al., 2020: BERT Loses Patience",
        group="early exit",
        families=("patience",),
        training="joint-entropy",
    ),
)
METHODS.add(
    "pcee",
    replace(
        JOINT,
        name="pcee",
        summary="leave when the entropy is low at several exits in a row",
        citation="Zhang et al., 2022: PCEE-BERT",
        group="early exit",
        families=("entropy x 2", "entropy x 3", "entropy x 4"),
        training="joint-entropy",
    ),
)
METHODS.add(
    "oracle",
    replace(
        JOINT,
        name="oracle",
        summary="leave at the first right exit, by the labels; bounds accuracy, not speed",
        citation="Schwartz et al., 2020: The Right Tool for the Job",
        group="reference",
        families=("oracle",),
        training="joint-entropy",
    ),
)
