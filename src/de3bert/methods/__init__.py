"""Methods as declarations: a method names its parts; model, objective and exits supply them."""

from de3bert.methods import de3, full, joint_entropy
from de3bert.methods.method import METHODS, Method, Term

__all__ = ["METHODS", "Method", "Term", "de3", "full", "joint_entropy"]
