"""Honest timing: a bundle against what else one could run, on the user's own texts."""
