"""The margin between the two likeliest classes as a signal, and a method that leaves by it."""

import numpy as np

from de3bert.exits.signals import SIGNALS, SignalKind, probabilities
from de3bert.methods import METHODS, Method, Phase, Term


def margin(view, params):
    """How far the likeliest class is ahead of the next one, in [0, 1]. (rows, K) -> (rows,)"""
    ranked = np.sort(probabilities(view.logits), axis=-1)
    return ranked[..., -1] - ranked[..., -2]


SIGNALS.add("margin", SignalKind(margin, rising=True, safest=1.0, range=(0.0, 1.0)))

METHODS.add(
    "joint-margin",
    Method(
        name="joint-margin",
        summary="all exits weigh the same; leave when the best class is far ahead",
        citation="examples/plugin",
        group="baseline",
        heads="bottleneck",
        phases=(Phase((Term("smoothed", exits="mean"),)),),
        families=("margin",),
        options={"smoothing": 0.05},
    ),
)
