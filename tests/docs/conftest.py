from tests.fixtures_trained import toy_data

__all__ = ["toy_data"]
