"""DE3 with its exits in closed form: the paper's parts, fitted after training."""

from dataclasses import replace

from de3bert.methods.full import FULL_METHOD
from de3bert.methods.method import METHODS, with_fitted_exits

METHODS.add(
    "de3-fitted",
    replace(
        with_fitted_exits(FULL_METHOD, name="de3-fitted"),
        summary="plain fine-tuning; then heads, maps and prototypes of all exits in closed form",
        citation="the indicator of He et al., DE3-BERT; heads as logistic regressions, the "
        "prototypical network as the whitening of the covariance within classes",
        group="ours",
        training="full+fitted",
    ),
)
