from tests.fixtures_masked import context, masked_backbone, teacher
from tests.fixtures_trained import model_copy, toy_data, trained_model

__all__ = ["context", "masked_backbone", "model_copy", "teacher", "toy_data", "trained_model"]
