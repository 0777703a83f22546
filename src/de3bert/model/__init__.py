"""The model: encoders, pooling, heads, prototypes. Importing this registers the auto classes."""

from de3bert.model.config import EarlyExitConfig
from de3bert.model.modeling import EarlyExitForSequenceClassification
from de3bert.model.outputs import EarlyExitOutput

__all__ = ["EarlyExitConfig", "EarlyExitForSequenceClassification", "EarlyExitOutput"]
