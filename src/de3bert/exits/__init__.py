"""When to leave: signals, policies, traces, replay, curves and calibration. Needs no torch."""

from de3bert.exits.calibrate import calibrate
from de3bert.exits.cost_model import CostModel, TimeSample
from de3bert.exits.curve import Curve, curve
from de3bert.exits.exit_placement import Placement, place_exits
from de3bert.exits.points import OperatingPoint, Target
from de3bert.exits.policy import Policy
from de3bert.exits.replay import replay
from de3bert.exits.signals.parse import Signal
from de3bert.exits.temperature import fit_temperatures
from de3bert.exits.trace import Trace
from de3bert.exits.view import ExitView

__all__ = [
    "CostModel",
    "Curve",
    "ExitView",
    "OperatingPoint",
    "Placement",
    "Policy",
    "Signal",
    "Target",
    "TimeSample",
    "Trace",
    "calibrate",
    "curve",
    "fit_temperatures",
    "place_exits",
    "replay",
]
