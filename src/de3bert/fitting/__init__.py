"""Exits fitted after training, without a gradient step: heads, maps and prototypes from states.

Numpy and scipy alone; `de3bert.training` runs the encoder and puts the results into a model.
"""
