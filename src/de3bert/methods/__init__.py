"""Methods as declarations: a method names its parts; model, objective and exits supply them.

Importing this registers all of them.
"""

from importlib import import_module
from pkgutil import iter_modules

from de3bert.methods.method import METHODS, Method, Phase, Term

__all__ = ["METHODS", "Method", "Phase", "Term"]

for _module in iter_modules(__path__):  # every file in this folder declares a method or a few
    import_module(f"{__name__}.{_module.name}")
