from tests.fixtures_trained import model_copy, toy_data, trained_model

__all__ = ["model_copy", "toy_data", "trained_model"]
