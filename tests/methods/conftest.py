from tests.fixtures_masked import masked_backbone, teacher
from tests.fixtures_trained import toy_data, trained_model

__all__ = ["masked_backbone", "teacher", "toy_data", "trained_model"]
