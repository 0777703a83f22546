"""Findings on written documents: every verdict can be reached, and a changed number changes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lab.tests.paper import written as w
from lab.tests.paper.written import Written

from de3lab.paper.items import FINDINGS, ITEMS
from de3lab.paper.judging import Verdict

UP, DOWN, MIXED = [0.02, 0.03, 0.025], [-0.02, -0.03, -0.025], [0.02, -0.03, 0.01]
JUDGES = {finding.name: finding.judge for _, finding in FINDINGS}


def judged(name: str, **given: Any) -> Verdict:
    return JUDGES[name](Written(**given))


def shifted(values: list[float], by: float) -> list[float]:
    return [value + by for value in values]


def gains(ours: str, theirs: str) -> Callable[[list[float]], dict[str, Any]]:
    """A comparison on one task with these gains at 2x and 3x."""

    def made(values: list[float]) -> dict[str, Any]:
        at = {"1.5": [0.0] * len(values), "2": values, "3": values, "4": values}
        return {"sst2": w.comparison({(ours, theirs): at})}

    return made


COMPARED = {
    "entropy": ("indicator", gains("EDR (λ = 1)", "entropy")),
    "growing": ("indicator", gains("EDR (λ = 1)", "entropy")),
    "one-rate": ("one-rate", gains("EDR (λ = 1)", "entropy")),
    "one-rate-growing": ("one-rate", gains("EDR (λ = 1)", "entropy")),
    "networks": ("components", gains("de3", "w/o PN")),
    "regulariser": ("components", gains("w/o PN", "w/o PN w/o DAR")),
}


@pytest.mark.parametrize("name", COMPARED)
def test_comparisons(name):
    item, made = COMPARED[name]
    assert judged(name, results={item: made(UP)}).holds == "yes"
    assert judged(name, results={item: made(DOWN)}).holds == "no"
    assert judged(name, results={item: made(MIXED)}).holds == "not significant"
    assert judged(name, results={item: made([0.02])}).holds == "too few runs"
    other = {"sst2": w.comparison({("a", "b"): {"2": UP, "3": UP}})}
    assert judged(name, results={item: other}).holds == "not measured"


def test_speeds_and_tasks_are_pooled_run_by_run():
    """One value for each task and seed: the mean of 2x and 3x; 1.5x and 4x do not count."""
    at = {"1.5": [9.0, 9.0], "2": [0.01, 0.03], "3": [0.03, 0.05], "4": [9.0, 9.0]}
    one = w.comparison({("EDR (λ = 1)", "entropy"): at})
    two = w.comparison({("EDR (λ = 1)", "entropy"): {"2": [0.05], "3": [0.07]}})
    seen = judged("entropy", results={"indicator": {"sst2": one, "qnli": two}})
    assert seen.numbers["n"] == 3
    assert seen.numbers["mean"] == pytest.approx((0.02 + 0.04 + 0.06) / 3)
    assert "+3.00 points at 2x, +5.00 points at 3x (SST-2, QNLI)" in seen.statement


def forms(a: list[float], b: list[float], c: list[float]) -> dict[str, Any]:
    named = (("de3", "v2"), ("de3", "v3"), ("v2", "v3"))
    pairs = {pair: {"2": v, "3": v} for pair, v in zip(named, (a, b, c), strict=True)}
    return {"dar-forms": {"sst2": w.comparison(pairs)}}


def test_forms_are_level_only_if_all_three_pairs_are():
    near = [0.001, -0.001, 0.0005]
    assert judged("forms", results=forms(near, near, near)).holds == "yes"
    assert judged("forms", results=forms(near, near, UP)).holds == "no"
    assert judged("forms", results=forms(near, MIXED, near)).holds == "not significant"


def shift(adapted: list[float], plain: list[float], bandit: list[float]) -> dict[str, Any]:
    rules = {"de3 adapted": adapted, "de3": plain, "ceebert": bandit}
    return {"shift": {"sst2": w.shift({"2": rules, "3": rules})}}


def test_adjustment():
    base = [0.8, 0.81, 0.79]
    better = [a + b for a, b in zip(base, UP, strict=True)]
    worse = [a + b for a, b in zip(base, DOWN, strict=True)]
    for name, makes in (
        ("adjustment", lambda a, b: shift(a, b, base)),
        ("adjusted", lambda a, b: shift(a, base, b)),
    ):
        assert judged(name, results=makes(better, base)).holds == "yes"
        assert judged(name, results=makes(worse, base)).holds == "no"
        assert judged(name, results=makes([0.8, 0.83, 0.78], base)).holds == "not significant"
        assert judged(name, results=makes([0.9], [0.8])).holds == "too few runs"
    without = {"shift": {"sst2": w.shift({"2": {"de3": base}, "3": {"de3": base}})}}
    assert judged("adjustment", results=without).holds == "not measured"


def test_against_the_bandit_as_trained():
    base = [0.8, 0.81, 0.79]
    worse = shifted(base, 0.0)
    for gains, holds in ((UP, "yes"), (DOWN, "no"), (MIXED, "not significant")):
        bandit = [a + b for a, b in zip(base, gains, strict=True)]
        assert judged("ceebert", results=shift(base, worse, bandit)).holds == holds


def test_a_target_with_one_point_is_not_judged():
    """Where the bandit has one speed for 2x and 3x, that is neither of them."""
    base = [0.8, 0.81, 0.79]
    rules = {"de3 adapted": base, "de3": shifted(DOWN, 0.8), "ceebert": base}
    good = {"de3 adapted": shifted(UP, 0.8), "de3": [0.8] * 3, "ceebert": [0.8] * 3}
    both = {
        "sst2": w.shift({"2": good, "3": good}),
        "mnli": w.shift({"2": rules, "3": rules}, speed=1.3),
    }
    seen = judged("adjustment", results={"shift": both})
    assert (seen.holds, seen.numbers["n"]) == ("yes", 3)
    assert seen.numbers["mean"] == pytest.approx(sum(UP) / 3)
    assert (
        "(SST-2 to IMDb). MNLI to SNLI is left out: CeeBERT has one point (1.3x)." in seen.statement
    )
    alone = judged("adjustment", results={"shift": {"mnli": both["mnli"]}})
    assert alone.holds == "not measured"


OTHERS = {
    "rules": ("paper_methods", {"2": ["layers-6"], "3": ["layers-4"]},
              ["deebert", "pabee", "berxit", "pcee"]),
    "students": ("paper_distillation", {}, ["distilbert", "pd", "pkd", "theseus"]),
    "backbone": ("paper_minilm", {"3": ["layers-2"]}, ["deebert", "pabee", "gpfee"]),
    "chinese": ("paper_chinese", {}, ["gpfee"]),
}  # fmt: skip


def compared(name: str, ours: list[float], last: list[float] | None = None) -> dict[str, Any]:
    """DE3's scores against 0.8 for everybody else; `last` replaces those of the last method."""
    study, more, both = OTHERS[name]
    scores = {}
    for speed in ("2", "3"):
        methods = {method: [0.8] * len(ours) for method in (*both, *more.get(speed, []))}
        if last is not None:
            methods[both[-1]] = last
        scores[speed] = {"sst2": {"de3": ours, **methods}}
    return {study: w.study(scores)}


@pytest.mark.parametrize("name", OTHERS)
def test_above_all_others(name):
    up, down = shifted(UP, 0.8), shifted(DOWN, 0.8)
    assert judged(name, studies=compared(name, up)).holds == "yes"
    assert judged(name, studies=compared(name, down)).holds == "no"
    assert judged(name, studies=compared(name, shifted(MIXED, 0.8))).holds == "not significant"
    assert judged(name, studies=compared(name, [0.9])).holds == "too few runs"
    assert judged(name, studies=compared(name, up, last=up)).holds == "not significant"


def test_p_values_are_corrected_for_the_number_of_rivals():
    weak, strong = [0.81, 0.835, 0.802], [0.81, 0.82, 0.812]
    assert judged("chinese", studies=compared("chinese", strong)).holds == "yes"
    assert judged("rules", studies=compared("rules", strong)).holds == "not significant"
    seen = judged("rules", studies=compared("rules", strong)).numbers["deebert"]
    assert seen["p"] < 0.05 < seen["p_holm"]
    assert judged("chinese", studies=compared("chinese", weak)).holds == "not significant"


def test_fixed_depth_stands_for_the_cut_model_of_each_speed():
    at = {"2": {"sst2": {"de3": [0.9], "layers-6": [0.8]}},
          "3": {"sst2": {"de3": [0.8], "layers-4": [0.74]}}}  # fmt: skip
    seen = judged("rules", studies={"paper_methods": w.study(at)})
    assert "fixed depth +8.00 (SST-2)" in seen.statement
    assert seen.holds == "too few runs"


@pytest.mark.parametrize("name", ["gpfee", "leebert"])
def test_level_with_methods_that_improve_exits(name):
    def made(other: list[float], **withdrawn: str) -> dict[str, Any]:
        rows = {"de3": [0.8, 0.8, 0.8], name: other}
        return {"paper_methods": w.study({"2": {"sst2": rows}, "3": {"sst2": rows}}, withdrawn)}

    near = [0.801, 0.799, 0.8005]
    assert judged(name, studies=made(near)).holds == "yes"
    assert judged(name, studies=made(shifted(UP, 0.8))).holds == "no"
    assert judged(name, studies=made([0.83, 0.77, 0.82])).holds == "not significant"
    gone = judged(name, studies=made(near, **{name: "it slept"}))
    assert gone.holds == "not measured"
    assert gone.statement.endswith(f"{name} is withdrawn until it is trained again: it slept.")


def test_a_withdrawn_rival_has_no_part_in_a_verdict():
    rows = {"de3": [0.9, 0.91, 0.905], "deebert": [0.8] * 3, "pcee": [0.99, 0.98, 0.985]}
    at = {"2": {"sst2": rows}, "3": {"sst2": rows}}
    assert judged("rules", studies={"paper_methods": w.study(at)}).holds == "no"
    seen = judged("rules", studies={"paper_methods": w.study(at, {"pcee": "it slept"})})
    assert seen.holds == "yes"
    assert "pcee is withdrawn until it is trained again: it slept." in seen.statement
    assert "pcee" not in seen.numbers


def test_one_rival_without_a_test_leaves_it_open():
    rows = {"de3": [0.9, 0.91, 0.905], "deebert": [0.8] * 3, "pcee": [0.8]}
    at = {"2": {"sst2": rows}, "3": {"sst2": rows}}
    assert judged("rules", studies={"paper_methods": w.study(at)}).holds == "too few runs"


def test_forms_against_gpfee():
    def made(de3: list[float], v2: list[float], v3: list[float]) -> dict[str, Any]:
        rows = {"de3": de3, "de3-v2": v2, "de3-v3": v3, "gpfee": [0.8] * 3}
        return {"paper_dar_forms": w.study({"2": {"sst2": rows}, "3": {"sst2": rows}})}

    up, down, mixed = (shifted(values, 0.8) for values in (UP, DOWN, MIXED))
    assert judged("forms-gpfee", studies=made(up, up, up)).holds == "yes"
    assert judged("forms-gpfee", studies=made(up, up, down)).holds == "no"
    assert judged("forms-gpfee", studies=made(up, mixed, up)).holds == "not significant"
    assert judged("forms-gpfee", studies=made(up, up, [0.9])).holds == "too few runs"
    seen = judged("forms-gpfee", studies=made(up, up, up))
    assert "de3 +2.50, de3-v2 +2.50, de3-v3 +2.50 (SST-2)" in seen.statement


def test_training_of_cosee():
    def made(ours: list[float]) -> dict[str, Any]:
        rows = {"de-cosee": ours, "cosee": [0.8] * len(ours)}
        return {"paper_methods": w.study({"2": {"sst2": rows}, "3": {"sst2": rows}})}

    assert judged("cosee", studies=made(shifted(UP, 0.8))).holds == "yes"
    assert judged("cosee", studies=made(shifted(DOWN, 0.8))).holds == "no"
    assert judged("cosee", studies=made([0.9])).holds == "too few runs"


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("correctness", "correctness"),
        ("ranking", "correctness"),
        ("one-rate-ranking", "one-rate-correctness"),
    ],
)
def test_correctness(name, item):
    def made(values: list[float], reach: float = 0.01) -> dict[str, Any]:
        gains = {2: values, 5: values, 10: values}
        return {item: {"sst2": w.correctness(gains, reach)}}

    assert judged(name, results=made(UP)).holds == "yes"
    assert judged(name, results=made(DOWN)).holds == "no"
    assert judged(name, results=made(MIXED)).holds == "not significant"
    assert judged(name, results=made([0.02])).holds == "too few runs"


@pytest.mark.parametrize(
    ("name", "item"),
    [("shallow", "correctness"), ("one-rate-shallow", "one-rate-correctness")],
)
def test_shallow_layers_must_gain_and_gain_more(name, item):
    def made(first: list[float], last: list[float]) -> dict[str, Any]:
        return {item: {"sst2": w.correctness({2: first, 10: last})}}

    assert judged(name, results=made(UP, [0.0, 0.001, -0.001])).holds == "yes"
    assert judged(name, results=made(UP, shifted(UP, 0.03))).holds == "not significant"
    assert judged(name, results=made(DOWN, shifted(DOWN, -0.1))).holds == "no"
    # The layers of one model are no samples: one run is too few, however they fall.
    assert judged(name, results=made([0.05], [0.01])).holds == "too few runs"


def test_correlation():
    def made(ours: list[float], theirs: list[float]) -> dict[str, Any]:
        return {"homogeneity": {"sst2": w.homogeneity(ours, theirs)}}

    low, high = [0.1, 0.12, 0.2], [0.5, 0.45, 0.61]
    assert judged("correlation", results=made(low, high)).holds == "yes"
    assert judged("correlation", results=made(high, low)).holds == "no"
    assert judged("correlation", results=made([0.1], [0.5])).holds == "too few runs"
    assert "in hundredths" in judged("correlation", results=made([0.1], [0.5])).test


def test_best_lambda():
    rising = [[0.5, 0.25, 0.5], [0.667, 0.5, 1.0], [1.0, 1.5, 1.0], [3.0, 2.0, 2.0]]
    mixed = [[1.0, 0.5, 3.0], [0.5, 1.0, 2.0], [2.0, 0.667, 1.0], [1.5, 1.0, 0.5]]

    def made(best: list[list[float]]) -> dict[str, Any]:
        return {"lambda": {"sst2": w.lambdas(best)}}

    assert judged("lambda", results=made(rising)).holds == "yes"
    assert judged("lambda", results=made(rising[::-1])).holds == "no"
    assert judged("lambda", results=made(mixed)).holds == "not significant"
    one = [[run[0]] for run in rising]
    assert judged("lambda", results=made(one)).holds == "too few runs"  # of how many speeds ever
    same = [[1.0, 1.0, 1.0]] * 4
    assert judged("lambda", results=made(same)).holds == "not significant"


def test_speeds_without_a_best_lambda_do_not_count():
    """Where all lambdas are level the smallest is noted, which would look like a trend."""
    best = [[0.0, 0.0, 0.0], [1.0, 0.5, 2.0], [1.0, 0.5, 1.5], [1.0, 0.667, 2.0]]
    counted = judged("lambda", results={"lambda": {"sst2": w.lambdas(best)}})
    left_out = judged("lambda", results={"lambda": {"sst2": w.lambdas(best, flat=1)}})
    assert (counted.holds, left_out.holds) == ("yes", "not significant")
    none = judged("lambda", results={"lambda": {"sst2": w.lambdas(best, flat=4)}})
    assert none.holds == "not significant"
    assert "all are equally good" in none.statement


def test_lambda_rises_then_falls():
    def made(scores: list[list[float]]) -> Verdict:
        return judged("lambda-shape", results={"lambda": {"sst2": w.lambda_scores(scores)}})

    low, mid = [0.80, 0.81, 0.79], [0.83, 0.845, 0.825]
    end = [0.81, 0.80, 0.80]
    assert made([low, [0.81, 0.82, 0.80], mid, end]).holds == "yes"
    assert made([mid, [0.81, 0.82, 0.80], low, end]).holds == "no"  # it falls from the start
    assert made([low, end, low, mid]).holds == "no"  # it rises to the end
    noisy = [[0.82, 0.80, 0.81], [0.7, 0.7, 0.7], [0.79, 0.82, 0.80]]
    assert made([low, *noisy]).holds == "not significant"
    assert made([[0.8], [0.9], [0.7]]).holds == "too few runs"  # none is left to choose lambda on
    assert made([low[:2], mid[:2], end[:2]]).holds == "too few runs"


def test_lambda_is_chosen_on_other_runs_than_it_is_scored_by():
    """Each run has its peak elsewhere: chosen on itself it would rise, on others it does not."""
    peaks = [[0.8] * 3, [0.9, 0.7, 0.7], [0.7, 0.9, 0.7], [0.7, 0.7, 0.9], [0.8] * 3]
    seen = judged("lambda-shape", results={"lambda": {"sst2": w.lambda_scores(peaks)}})
    assert seen.numbers["rises"]["mean"] == pytest.approx(-0.1)


def test_alpha():
    def made(ranges: dict[float, float], sd: float | None = 0.002, runs: int = 3) -> dict[str, Any]:
        return {"alpha": {"sst2": w.alphas(ranges, sd, runs)}}

    assert judged("alpha", results=made({2.0: 0.004, 3.0: 0.0099})).holds == "yes"
    assert judged("alpha", results=made({2.0: 0.004, 3.0: 0.03})).holds == "no"
    assert (
        judged("alpha", results=made({2.0: 0.004, 3.0: 0.03}, sd=0.02)).holds == "not significant"
    )
    one = judged("alpha", results=made({2.0: 0.004}, sd=None, runs=1))
    assert one.holds == "too few runs"
    assert "1 run of each alpha, 3 are needed" in one.test
    assert judged("alpha", results=made({2.0: 0.004}, runs=2)).holds == "too few runs"


def strategies(oracle: float) -> dict[str, Any]:
    curve = {"layer_speedup": [1.0, 2.0, 6.0], "score": [0.9, 0.88, 0.7]}
    return {
        "rows": 500,
        "strategies": [{"name": "entropy", "curve": curve}],
        "points": [{"name": "oracle", "score": oracle, "layer_speedup": 4.0}],
    }


def test_oracle():
    seen = judged("oracle", results={"strategies": {"qnli": strategies(0.95)}})
    assert seen.holds == "by construction"
    assert "the best rule there (entropy) 79.0" in seen.statement
    assert "no rule can be above the oracle" in seen.test
    assert "a bound on the score, not on speed" in seen.test
    assert judged("oracle", results={"strategies": {"qnli": strategies(0.80)}}).holds == (
        "not significant"
    )


def test_exits_must_move_at_every_threshold():
    def made(layers: list[float]) -> dict[str, Any]:
        seen = [
            {"tau": tau, "layers_mean": mean, "score": 0.9}
            for tau, mean in zip((0.14, 0.4, 0.65), layers, strict=True)
        ]
        return {"exit-layers": {"qnli": {"thresholds": seen}}}

    assert judged("exits", results=made([9.0, 5.0, 3.0])).holds == "by construction"
    assert judged("exits", results=made([9.0, 5.0, 5.0])).holds == "no"


def test_layers_against_time():
    """By the interval over texts, against full depth without tests; not over thresholds."""

    def made(low: float, high: float, tested: float = 3.0) -> dict[str, Any]:
        plain = {"value": (low + high) / 2, "low": low, "high": high}
        spent = {
            "layer_ratio": 3.0, "time_ratio_untested": plain, "percent_of_ideal_untested": 70.0,
            "time_ratio": {"value": tested}, "percent_of_ideal": 100 * tested / 3.0,
        }  # fmt: skip
        r = {"seconds": {"value": 0.999, "low": 0.99, "high": 1.0}}
        found = {"correlations": r, "efficiency": spent, "thresholds": [0] * 16}
        return {"speed": {"sst2": found}}

    # A saved layer is worth half its time: two thirds of the layers saved, 2 times less time.
    assert judged("layers", results=made(2.1, 2.3)).holds == "yes"
    assert judged("layers", results=made(1.2, 1.9)).holds == "no"
    assert judged("layers", results=made(1.9, 2.1)).holds == "not significant"
    said = judged("layers", results=made(2.1, 2.3, tested=2.7)).statement
    assert "2.20x less time than full depth without any test (70 % of the ideal; 90 %" in said


def costs(**changes: float) -> dict[str, Any]:
    modules = {
        "embedding": 786_432.0, "encoder layer": 1_813_512_192.0, "pooler": 1_179_648.0,
        "prediction head": 3_072.0, "prototypical network": 1_179_648.0,
        "internal classifier": 3_072.0, "EDR": 9_216.0,
    }  # fmt: skip
    three = {**modules, "prediction head": 4_608.0, "internal classifier": 4_608.0}
    kind = {
        "method": "de3",
        "parameters": {"added_percent": 5.9},
        "flops": {"convention": modules},
    }
    return {"kinds": [kind], "paper": {"recounted": {"2": {**modules, **changes}, "3": three}}}


def test_overheads_are_checked_digit_by_digit():
    seen = judged("overheads", results={"costs": {"sst2": costs()}})
    assert seen.holds == "by construction"
    assert "5.90 % parameters and 0.066 % operations" in seen.statement
    seen = judged("overheads", results={"costs": {"sst2": costs(EDR=9_300.0)}})
    assert seen.holds == "no"
    assert "EDR (2 classes)" in seen.statement
    assert ITEMS["costs"].published["more"][2] == round(100 * 6_513_430 / 109_482_240, 2)


def test_training_time():
    def made(low: float, high: float) -> dict[str, Any]:
        seen = {"ratio": (low + high) / 2, "interval": [low, high], "rounds": 40}
        return {"training-time.json": seen}

    assert judged("training-time", documents=made(0.99, 1.05)).holds == "yes"
    assert judged("training-time", documents=made(1.2, 1.3)).holds == "no"
    assert judged("training-time", documents=made(1.0, 1.3)).holds == "not significant"


def test_space():
    def made(ours: float, theirs: float, rows: int = 1000) -> dict[str, Any]:
        panels = [
            {"label": label, "layer": layer, "neighbours_accuracy": share}
            for label, share in (("de3", ours), ("w/o DAR", theirs))
            for layer in (2, 5)
        ]
        return {"rows": rows, "layers": [2, 5], "panels": panels}

    def seen(*pairs: tuple[float, float]) -> Verdict:
        tasks = ("mnli", "sst2", "qnli")
        found = {task: made(*pair) for task, pair in zip(tasks, pairs, strict=False)}
        return judged("space", results={"space": found})

    assert seen((0.7, 0.6)).holds == "too few runs"  # two layers are not two runs
    assert seen((0.7, 0.6), (0.8, 0.72), (0.75, 0.66)).holds == "yes"
    assert seen((0.6, 0.7), (0.72, 0.8), (0.66, 0.75)).holds == "no"
    assert seen((0.7, 0.6), (0.7, 0.8), (0.7, 0.7)).holds == "not significant"


def test_everything_is_unmeasured_without_results():
    assert len(JUDGES) == len(FINDINGS)
    for name, judge in JUDGES.items():
        seen = judge(Written())
        assert seen.holds == "not measured", name
        assert "measures it" in seen.statement


def test_all_that_is_measured_is_judged_by_something():
    for _, finding in FINDINGS:
        assert finding.claim.endswith(".")
    measured = {item.name for item in ITEMS.values() if item.training is not None}
    assert measured - {item.name for item, _ in FINDINGS} == {"sample"}
