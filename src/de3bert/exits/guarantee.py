"""A promise that holds: a policy whose risk stays below a bound, with a stated probability.

A threshold that keeps 99 of 100 answers on calibration rows keeps fewer on other rows about as
often as not: it was chosen because these rows are kind to it. Here every policy of a family is a
hypothesis ("its risk is above the bound"), looked at in an order that is fixed beforehand, from
never leaving to leaving at once. Each is tested exactly; the first that cannot be refuted ends it,
and the last refuted one is taken. The probability that its risk is above the bound is then at most
1 - confidence over draws of calibration rows, whatever the signal and whatever the model (fixed
sequence testing; Angelopoulos et al., Learn then Test, 2021). With F families each has 1/F of that.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betaincinv, gammaln, xlog1py, xlogy

from de3bert.errors import De3Error, UsageError
from de3bert.exits.family import Family
from de3bert.exits.policy import Policy
from de3bert.exits.replay import exit_indices
from de3bert.exits.sweep import find_moves, signal_matrix, windowed
from de3bert.exits.trace import Trace

__all__ = ["Promise", "difference_p", "guaranteed", "rows_needed"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

GRID = 1000  # thresholds of a signal, fixed before any row is seen
LOWEST = 1e-4  # the smallest of them but 0, where probabilities near 1 lie
NUISANCE = 0.1  # the share of the error that goes into what else must be estimated
PAIRED = 0.8  # the share of the error of a difference that its own test has


@dataclass(frozen=True)
class Promise:
    """What is promised of a policy, and on which evidence.

    Attributes:
        kind: `agree` (answers that differ from full depth), `drop` (loss of accuracy against full
            depth) or `accuracy` (wrong answers).
        bound: the risk stays at or below it.
        confidence: with this probability over draws of calibration rows.
        rows: calibration rows.
        seen: the risk on them.
        p_value: of the hypothesis that the risk is above the bound.
        families: how many were tested; each had its share of 1 - confidence.
        layer_speedup: on these rows.
        without: the layer speed-up that the same bound gives on these rows when nothing is
            promised; the difference is what the promise costs.
    """

    kind: str
    bound: float
    confidence: float
    rows: int
    seen: float
    p_value: float
    families: int
    layer_speedup: float
    without: float

    def __str__(self) -> str:
        risk = {
            "agree": "answers differ from full depth in at most {:.4g} of texts",
            "drop": "accuracy is at most {:.4g} below full depth's",
            "accuracy": "at most {:.4g} of answers are wrong",
        }[self.kind].format(self.bound)
        return (
            f"{risk}, with probability {self.confidence:g} over calibration rows "
            f"({self.rows} here, {self.seen:.4g} seen)"
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"promise": str(self)}


@dataclass(frozen=True, eq=False)
class Candidates:
    """The policies of a family in their fixed order, each with what it does to the rows.

    Attributes:
        family: theirs.
        numbers: the number that makes each policy, (policies,).
        lost: rows that each policy answers worse than full depth would, (policies,).
        won: rows that it answers better; all 0 for risks that only count losses.
        layers: total layers executed, (policies,).
        wins: whether the risk counts won rows against lost ones.
    """

    family: Family
    numbers: Floats
    lost: Integers
    won: Integers
    layers: Integers
    wins: bool


def guaranteed(
    trace: Trace, kind: str, bound: float, confidence: float, families: Sequence[Family]
) -> tuple[Policy, Promise]:
    """The fastest policy of which the bound can be promised.

    Args:
        kind: `agree`, `drop` or `accuracy`, see `Promise`; the last two need labels.
        bound: the largest risk, above 0.
        families: of policies to try.

    Raises:
        De3Error: there is none but never leaving; the message says how near the rows come and
            about how many more it would take.
    """
    if not 0 < bound < 1:
        raise UsageError(
            f"A promise must allow some risk: the bound must lie between 0 and 1, got {bound:g}. "
            "Ask for agree=0.99 or drop=0.01, for example."
        )
    error = (1.0 - confidence) / len(families)
    lost, won = _losses(trace, kind)
    tested = [_candidates(trace, family, lost, won, kind == "drop") for family in families]
    best: tuple[int, float, Candidates, int, float] | None = None
    for each in tested:
        index, p_value = _last_refuted(each, trace.rows, bound, error)
        if index is None or each.layers[index] >= trace.rows * trace.depth:
            continue
        found = (int(each.layers[index]), p_value, each, index, p_value)
        best = found if best is None or found[:2] < best[:2] else best
    if best is None:
        raise _refusal(trace, tested, kind, bound, confidence, error)
    layers, p_value, chosen, index, _ = best
    policy = chosen.family.policy(float(chosen.numbers[index]))
    return policy, Promise(
        kind=kind,
        bound=bound,
        confidence=confidence,
        rows=trace.rows,
        seen=float(chosen.lost[index] - chosen.won[index]) / trace.rows,
        p_value=p_value,
        families=len(families),
        layer_speedup=trace.rows * trace.base / layers,
        without=trace.rows * trace.base / _fewest_layers(tested, trace.rows, bound),
    )


@functools.lru_cache(maxsize=65_536)
def difference_p(lost: int, won: int, rows: int, bound: float, share: float) -> float:
    """An upper bound on the p-value of "lost rows less won ones are above the bound".

    Given the chance w to win a row, the hypothesis is nearest to what was seen where the chance to
    lose one is w + bound, and the probability of so small a difference follows exactly from two
    binomials. w is not known: the largest over an exact interval for it counts, and the probability
    `share` that it lies outside is added (Berger and Boos, 1994).
    """
    high = float(betaincinv(won + 1, rows - won, 1 - share / 2)) if won < rows else 1.0
    low = float(betaincinv(won, rows - won + 1, share / 2)) if won else 0.0
    high = min(high, (1.0 - bound) / 2)
    chances = np.linspace(min(low, high), high, 9)
    return share + max(_at_most(lost - won, rows, w + bound, w) for w in chances.tolist())


def _at_most(difference: int, rows: int, lose: float, win: float) -> float:
    """P(lost - won <= difference) when each row is lost, won or neither."""
    spread = 12.0 * math.sqrt(rows * win * (1 - win)) + 12.0
    middle = rows * win
    wins = np.arange(max(0, int(middle - spread)), min(rows, int(middle + spread)) + 1)
    most, left = difference + wins, rows - wins
    # bdtr is for 0 <= most <= left: below nothing is possible, above everything.
    rest = np.where(most < 0, 0.0, bdtr(np.clip(most, 0, left), left, min(1.0, lose / (1 - win))))
    return float((_binomial(wins, rows, win) * rest).sum())


def _binomial(count: Integers, rows: int, chance: float) -> Floats:
    """P(count) of a binomial, by logarithms."""
    ways = gammaln(rows + 1) - gammaln(count + 1) - gammaln(rows - count + 1)
    found: Floats = np.exp(ways + xlogy(count, chance) + xlog1py(rows - count, -chance))
    return found


def rows_needed(risk: float, bound: float, error: float, most: int = 10_000_000) -> int | None:
    """About how many rows refute "above the bound" for a policy with this risk; None: none do."""
    if risk >= bound:
        return None
    low, high = 1, 1
    while bdtr(math.floor(risk * high), high, bound) > error:
        low, high = high, high * 2
        if high > most:
            return None
    while low < high:
        middle = (low + high) // 2
        if bdtr(math.floor(risk * middle), middle, bound) > error:
            low = middle + 1
        else:
            high = middle
    return high


def _losses(trace: Trace, kind: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each row is lost, or won, when it leaves at each exit. (rows, exits)"""
    said = trace.predictions
    none = np.zeros(said.shape, dtype=np.bool_)
    if kind == "agree":
        return said != said[:, -1:], none
    right = trace.correct
    if kind == "accuracy":
        return ~right, none
    return ~right & right[:, -1:], right & ~right[:, -1:]


def _candidates(
    trace: Trace, family: Family, lost: NDArray[np.bool_], won: NDArray[np.bool_], wins: bool
) -> Candidates:
    if family.kind == "threshold":
        return _thresholds(trace, family, lost, won, wins)
    numbers = _members(trace, family)
    rows = np.arange(trace.rows)
    where = [exit_indices(trace, family.policy(number)) for number in numbers]
    depth = np.asarray(trace.exit_layers, dtype=np.int64)
    return Candidates(
        family,
        np.asarray(numbers, dtype=np.float64),
        np.array([lost[rows, index].sum() for index in where], dtype=np.int64),
        np.array([won[rows, index].sum() for index in where], dtype=np.int64),
        np.array([depth[index].sum() for index in where], dtype=np.int64),
        wins,
    )


def _members(trace: Trace, family: Family) -> list[float]:
    if family.kind == "layers":
        return [float(layer) for layer in reversed(trace.exit_layers)]
    if family.kind == "patience":
        return [float(count) for count in range(max(1, trace.exits - 1), 0, -1)]
    raise UsageError(
        f"Nothing can be promised for `{family}`: what it does with a row depends on the rows "
        "before it, or on labels. Name a family such as `entropy`, `edr` or `patience`."
    )


def _thresholds(
    trace: Trace, family: Family, lost: NDArray[np.bool_], won: NDArray[np.bool_], wins: bool
) -> Candidates:
    """All thresholds of the fixed grid at once: rows move as the threshold passes their signals."""
    assert family.signal is not None  # a threshold family has one
    grid = fixed_grid(family)
    sign = -1.0 if family.signal.rising else 1.0
    moves = find_moves(windowed(signal_matrix(trace, family.signal), family.count))
    passed = np.searchsorted(moves.value, sign * grid, side="left")  # moves below each threshold
    layer = np.asarray(trace.exit_layers, dtype=np.int64)

    def after(values: NDArray[Any]) -> Integers:
        """The sum of values (rows, exits) over rows, where each threshold leaves them."""
        change = values[moves.row, moves.target].astype(np.int64) - values[moves.row, moves.source]
        total = int(values[:, -1].sum())
        return total + np.concatenate([[0], np.cumsum(change)])[passed]

    return Candidates(
        family,
        grid,
        after(lost),
        after(won),
        after(np.broadcast_to(layer, lost.shape)),
        wins,
    )


def fixed_grid(family: Family) -> Floats:
    """Thresholds that no data has chosen, from where no row leaves to where all do."""
    assert family.signal is not None
    kind = family.signal.kind
    if kind.range is None:  # any number: dense around 0, where most values are
        steps: Floats = np.sinh(np.linspace(-8.0, 8.0, GRID))
        return -steps if family.signal.rising else steps
    low, high = kind.range
    small = np.geomspace(LOWEST, 0.1, GRID // 3)
    steps = np.concatenate([[0.0], small, np.linspace(0.1, 1.0, GRID - len(small))[1:]])
    return high - steps * (high - low) if family.signal.rising else low + steps * (high - low)


def _last_refuted(
    each: Candidates, rows: int, bound: float, error: float
) -> tuple[int | None, float]:
    """The last policy before the first whose risk may be above the bound, and its p-value."""
    last, p_value = None, 1.0
    for index, found in enumerate(_p_values(each, rows, bound, error)):
        if found > error:
            break
        last, p_value = index, found
    return last, p_value


def _p_values(each: Candidates, rows: int, bound: float, error: float) -> Iterator[float]:
    """Of the hypothesis that the risk is above the bound, policy by policy.

    A loss of accuracy is tested in two ways, each with its share of the error: as the difference
    that it is, and by the lost rows alone, which is sharper where hardly any are won.
    """
    alone = bdtr(each.lost, rows, bound)
    if not each.wins:
        yield from alone.tolist()
        return
    share = NUISANCE * error * PAIRED
    both = zip((alone / (1 - PAIRED)).tolist(), each.lost.tolist(), each.won.tolist(), strict=True)
    for by_loss, lost, won in both:
        if by_loss <= error:
            yield by_loss
        else:
            yield min(by_loss, difference_p(lost, won, rows, bound, share) / PAIRED)


def _fewest_layers(tested: Sequence[Candidates], rows: int, bound: float) -> int:
    """Of all policies within the bound on these rows, without a promise."""
    fewest = [
        int(each.layers[(each.lost - each.won) <= bound * rows].min(initial=each.layers[0]))
        for each in tested
    ]
    return min(fewest)


def _refusal(
    trace: Trace,
    tested: Sequence[Candidates],
    kind: str,
    bound: float,
    confidence: float,
    error: float,
) -> De3Error:
    """Why nothing can be promised, how near it comes, and how many more rows it would take."""
    rows = trace.rows
    if kind == "accuracy":
        risk = min(int((each.lost - each.won)[0]) for each in tested) / rows
        if risk >= bound:
            return De3Error(
                f"Full depth itself is wrong in {risk:.4g} of these rows, so no policy can be "
                f"promised to be wrong in at most {bound:.4g}."
            )
    least = rows_needed(0.0, bound, error) or 0
    if rows < least:
        nearest = 1.0 - error ** (1.0 / rows)
        return De3Error(
            f"{rows} rows are too few for this promise: even if none of them is lost, a risk of "
            f"{bound:.4g} can only be excluded with probability {confidence:g} from {least} rows "
            f"on ({least - rows} more). With these rows the nearest promise is a risk of "
            f"{nearest:.3g}."
        )
    first = min(tested, key=lambda each: _first_leaving(each, rows * trace.depth))
    index = _leaving(first, rows * trace.depth)
    lost = int(first.lost[index] - first.won[index])
    wanted = rows_needed(lost / rows, bound, error)
    more = f"about {wanted - rows} more rows" if wanted and wanted > rows else "a larger bound"
    policy = first.family.policy(float(first.numbers[index]))
    speed = rows * trace.base / int(first.layers[index])
    return De3Error(
        f"No policy that leaves early can be promised a risk of at most {bound:.4g} with "
        f"probability {confidence:g} on {rows} rows. The nearest is `{policy}` (layer speed-up "
        f"{speed:.3g}), which loses {lost} of them; it would take {more}."
    )


def _leaving(each: Candidates, full: int) -> int:
    """The first policy in the order that lets a row leave."""
    early = np.flatnonzero(each.layers < full)
    return int(early[0]) if early.size else len(each.layers) - 1


def _first_leaving(each: Candidates, full: int) -> int:
    index = _leaving(each, full)
    return int(each.lost[index] - each.won[index])
