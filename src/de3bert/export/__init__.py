"""From a trained model to a bundle: a folder that predicts without torch."""
