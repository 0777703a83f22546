"""Early-exit text classifiers on any Hugging Face encoder.

    >>> import de3bert
    >>> clf = de3bert.load("runs/demo/model")
    >>> clf.predict(["a joy from start to finish"], point="2x")

Importing this package loads neither torch nor transformers. After it, in whatever order the two
are imported, transformers opens our model folders: `AutoModelForSequenceClassification`,
`AutoConfig`, `AutoTokenizer` and `pipeline("text-classification", folder)`, which run full depth.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from de3bert import auto_classes

if TYPE_CHECKING:
    from de3bert.attached import attach
    from de3bert.exits.calibrate import calibrate
    from de3bert.exits.curve import curve
    from de3bert.exits.points import OperatingPoint
    from de3bert.exits.policy import Policy
    from de3bert.exits.replay import replay
    from de3bert.exits.trace import Trace
    from de3bert.model import EarlyExitForSequenceClassification, EarlyExitForTokenClassification
    from de3bert.model.config import EarlyExitConfig
    from de3bert.runtime.classifier import Classifier
    from de3bert.runtime.load import load
    from de3bert.tasks.answers import Prediction
    from de3bert.tasks.explanations import Explanation
    from de3bert.training.fit import fit
    from de3bert.training.recipe import Recipe

__all__ = [
    "Classifier",
    "EarlyExitConfig",
    "EarlyExitForSequenceClassification",
    "EarlyExitForTokenClassification",
    "Explanation",
    "OperatingPoint",
    "Policy",
    "Prediction",
    "Recipe",
    "Trace",
    "__version__",
    "attach",
    "calibrate",
    "curve",
    "fit",
    "load",
    "replay",
]

__version__ = "0.2.0"

# Where each name lives; imported when it is asked for, since some of these bring torch.
_HOME = {
    "Classifier": "de3bert.runtime.classifier",
    "EarlyExitConfig": "de3bert.model.config",
    "EarlyExitForSequenceClassification": "de3bert.model",
    "EarlyExitForTokenClassification": "de3bert.model",
    "Explanation": "de3bert.tasks.explanations",
    "OperatingPoint": "de3bert.exits.points",
    "Policy": "de3bert.exits.policy",
    "Prediction": "de3bert.tasks.answers",
    "Recipe": "de3bert.training.recipe",
    "Trace": "de3bert.exits.trace",
    "attach": "de3bert.attached",
    "calibrate": "de3bert.exits.calibrate",
    "curve": "de3bert.exits.curve",
    "fit": "de3bert.training.fit",
    "load": "de3bert.runtime.load",
    "replay": "de3bert.exits.replay",
}

auto_classes.announce()


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'de3bert' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
