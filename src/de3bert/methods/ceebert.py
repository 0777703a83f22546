"""CeeBERT: the threshold of a jointly trained model, learned online without labels."""

from dataclasses import replace

from de3bert.methods.joint_entropy import JOINT
from de3bert.methods.method import METHODS

METHODS.add(
    "ceebert",
    replace(
        JOINT,
        name="ceebert",
        summary="a bandit picks the confidence threshold on the stream it serves, no labels",
        citation="Bajpai and Hanawal, 2024: CeeBERT",
        group="early exit",
        families=("bandit",),
        training="joint-entropy",
    ),
)
