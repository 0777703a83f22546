"""What kind of rule a graph computes, and which policies are that rule with other numbers.

A policy is code; in a graph it is nodes, and what can still be chosen are the graph's inputs. One
form serves many policies: EDR with lambda 0 is entropy, a threshold that nothing meets is full
depth, and `layer(6)` is full depth with a limit.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from de3bert.errors import De3Error, UsageError
from de3bert.exits.policy import Policy
from de3bert.exits.rules import FixedLayer, Full, Patience, Threshold
from de3bert.exits.signals.parse import SIGNALS

__all__ = ["IN_GRAPHS", "RuleForm", "form_of"]

# The signals that the exporter can write as nodes.
IN_GRAPHS = (
    "entropy",
    "max_probability",
    "energy",
    "raw_energy",
    "distance_ratio",
    "edr",
    "certainty",
)
PATIENCE = "patience"
FORM = re.compile(rf"{PATIENCE}(?:\((?P<counted>\w+)\))?|(?P<signal>\w+)")
NEVER = 1_000_000  # exits in a row: more than any model has
OUTSIDE = 1.0  # how far beyond all values of a signal a threshold lies that nothing meets
FARTHEST = 3e38  # the same for a signal without bounds; a float32 still holds it


@dataclass(frozen=True)
class RuleForm:
    """A rule whose numbers are open.

    Attributes:
        signal: what a threshold is compared with; None for patience, which compares answers.
        counted: whether several exits in a row can be asked for (PCEE); always so for patience.

    Example:
        >>> RuleForm("edr").values(Policy.parse("entropy < 0.25"), 12)
        {'threshold': 0.25, 'lambda': 0.0, 'max_layers': 12}
    """

    signal: str | None
    counted: bool = False

    @classmethod
    def parse(cls, text: str) -> RuleForm:
        """Reads what `str` gives; De3Error for anything else."""
        match = FORM.fullmatch(text)
        signal = match and (match["counted"] or match["signal"])
        if match is None or signal not in (None, *IN_GRAPHS):
            raise De3Error(f"There is no rule of the form {text!r:.60} in graphs.")
        return cls(signal, match["signal"] is None)

    def __str__(self) -> str:
        if self.signal is None:
            return PATIENCE
        return f"{PATIENCE}({self.signal})" if self.counted else self.signal

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of its numbers, in order."""
        there = {
            "threshold": self.signal is not None,
            "lambda": self.signal == "edr",
            "patience": self.counted,
            "max_layers": True,
        }
        return tuple(name for name, present in there.items() if present)

    @property
    def rising(self) -> bool:
        return self.signal is not None and SIGNALS[self.signal].rising

    @property
    def needs_distances(self) -> bool:
        return self.signal is not None and SIGNALS[self.signal].needs_distances

    def values(self, policy: Policy, depth: int) -> dict[str, float | int]:
        """The inputs that make this form the policy; UsageError with the reason where none do."""
        if type(policy) is not Policy or policy.window is not None:
            raise UsageError(f"`{policy}` is more than a rule over exits")
        rule = policy.rule
        if isinstance(rule, Full):
            return self._filled({}, depth)
        if isinstance(rule, FixedLayer):
            return self._filled({"max_layers": rule.layer}, depth)
        if isinstance(rule, Patience) and self.signal is None:
            return self._filled({"patience": rule.count}, depth)
        if type(rule) is Threshold and self._reads(rule):
            weight = dict(rule.signal.params).get("lambda", 0.0)
            numbers = {
                "threshold": _in_32_bits(rule.threshold, rule.comparison),
                "lambda": weight,
                "patience": rule.count,
            }
            return self._filled(numbers, depth)
        raise UsageError(f"`{policy}` is not of the form {self}")

    def fits(self, policy: Policy) -> bool:
        """Whether some inputs make this form the policy."""
        # A rule that learns is of no form, and has no hash.
        return isinstance(policy.rule, Hashable) and _fits(self, policy)

    def _reads(self, rule: Threshold) -> bool:
        name = rule.signal.name
        same = name == self.signal or (name == "entropy" and self.signal == "edr")
        return same and (self.counted or rule.count == 1)

    def _filled(self, given: dict[str, float | int], depth: int) -> dict[str, float | int]:
        """All inputs in their order; those not given let every row run to the end."""
        usual = {"lambda": 0.0, "patience": 1, "max_layers": depth}
        if self.signal is None:
            usual["patience"] = NEVER
        else:
            usual["threshold"] = self._never(self.signal)
        return {name: given.get(name, usual[name]) for name in self.inputs}

    def _never(self, signal: str) -> float:
        """A threshold that no value meets."""
        low, high = SIGNALS[signal].range or (OUTSIDE - FARTHEST, FARTHEST - OUTSIDE)
        return high + OUTSIDE if self.rising else low - OUTSIDE


def form_of(policy: Policy, others: Iterable[Policy] = ()) -> RuleForm:
    """The form that has `policy`, made as general as some of the others ask for.

    Raises:
        UsageError: such a policy cannot be written as nodes of a graph.
    """
    if type(policy) is not Policy or policy.window is not None:
        raise UsageError(f"`{policy}` is more than a rule over exits")
    rule = policy.rule
    if isinstance(rule, Patience):
        return RuleForm(None, counted=True)
    if type(rule) is not Threshold:
        raise UsageError(f"`{policy}` does more than compare a number at each exit")
    name = rule.signal.name
    if name not in IN_GRAPHS:
        known = ", ".join(IN_GRAPHS)
        raise UsageError(f"the signal {name} has no nodes; those that have: {known}")
    alike = [each.rule for each in others if type(each.rule) is Threshold]
    if name == "entropy" and any(each.signal.name == "edr" for each in alike):
        name = "edr"
    wide = RuleForm(name, counted=True)
    counts = [each.count for each in (rule, *alike) if wide._reads(each)]
    return RuleForm(name, counted=max(counts) > 1)


@functools.lru_cache(maxsize=256)  # asked for every single row
def _fits(form: RuleForm, policy: Policy) -> bool:
    try:
        form.values(policy, depth=1)
    except UsageError:
        return False
    return True


def _in_32_bits(threshold: float, comparison: str) -> float:
    """The float32 nearest beyond a threshold, so that `<` and `>` let go what the policy lets go.

    Graphs compare with `<` or `>`; an inclusive comparison is that with the next number.
    """
    end = math.inf if comparison.startswith("<") else -math.inf
    short = np.float32(threshold)
    exact = float(short)  # numpy would compare in 32 bits
    inside = exact < threshold if end > 0 else exact > threshold
    if inside or (comparison.endswith("=") and exact == threshold):
        short = np.nextafter(short, np.float32(end))
    return float(str(short))  # the shortest text that is this number again
