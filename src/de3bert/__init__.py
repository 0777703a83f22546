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
    from de3bert.runtime.classifier import Classifier
    from de3bert.runtime.load import load
    from de3bert.tasks.answers import Explanation, Prediction

__all__ = ["Classifier", "Explanation", "Prediction", "__version__", "attach", "load"]

__version__ = "0.1.0"

_HOME = {
    "Classifier": "de3bert.runtime.classifier",
    "Explanation": "de3bert.tasks.answers",
    "Prediction": "de3bert.tasks.answers",
    "attach": "de3bert.attached",
    "load": "de3bert.runtime.load",
}

auto_classes.announce()


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'de3bert' has no attribute {name!r}")
