"""Plain fine-tuning: one head after the last layer, no exits. The reference for time and score."""

from de3bert.methods.method import METHODS, Method, Term

METHODS.add(
    "full",
    Method(
        name="full",
        summary="plain fine-tuning, no early exits",
        citation="Devlin et al., 2019",
        terms=(Term("cross_entropy", exits="last"),),
        prototypes="none",
        signal="entropy",
        internal_exits=False,
    ),
)
