"""Joint training of all exits with the entropy rule: DE3 without prototypes."""

from de3bert.methods.method import METHODS, Method, Term

METHODS.add(
    "joint-entropy",
    Method(
        name="joint-entropy",
        summary="all exits trained together; leave when the entropy is low",
        citation="the training of PABEE (Zhou et al., 2020) with the rule of DeeBERT "
        "(Xin et al., 2020)",
        terms=(Term("cross_entropy"),),
        prototypes="none",
        signal="entropy",
    ),
)
