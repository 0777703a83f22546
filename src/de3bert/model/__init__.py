"""The model: encoders, pooling, heads, prototypes. Importing this registers the auto classes."""

from de3bert.model.config import EarlyExitConfig
from de3bert.model.early_exit import EarlyExitModel
from de3bert.model.modeling import (
    EarlyExitForSequenceClassification,
    EarlyExitForTokenClassification,
)
from de3bert.model.outputs import EarlyExitOutput

__all__ = [
    "EarlyExitConfig",
    "EarlyExitForSequenceClassification",
    "EarlyExitForTokenClassification",
    "EarlyExitModel",
    "EarlyExitOutput",
]
