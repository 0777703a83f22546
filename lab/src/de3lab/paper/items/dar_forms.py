"""Table XIII: three forms of the regulariser."""

from __future__ import annotations

from de3lab.paper.gains import gain_sample
from de3lab.paper.item import Finding, Item, Measurement, Training
from de3lab.paper.items.hyperparameters import LAMBDAS_OF
from de3lab.paper.items.methods import PUBLISHED as MAIN
from de3lab.paper.judging import Verdict, above, level_with, points, unmeasured, weakest
from de3lab.paper.published import score_rows
from de3lab.paper.rivals import at_speeds, study_sample, together
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import DEV, listed

__all__ = ["DAR_FORMS"]

OTHERS = score_rows("""
                         mnli      mrpc           qnli      qqp            rte       sst2
    2 de3-v2 DE3-BERT-v2 83.4@2.02 86.5/81.2@1.97 90.1@2.04 71.0/89.4@2.12 65.9@2.03 92.4@2.01 82.6
    2 de3-v3 DE3-BERT-v3 83.1@2.05 86.5/81.3@1.99 90.1@1.98 71.4/89.4@2.17 65.8@2.05 92.5@2.04 82.6
    3 de3-v2 DE3-BERT-v2 80.1@3.01 84.0/76.7@3.02 86.7@2.98 70.4/89.2@3.19 63.4@2.99 91.1@2.98 80.2
    3 de3-v3 DE3-BERT-v3 80.0@3.02 83.8/76.3@2.99 86.8@3.01 70.5/89.3@3.18 63.5@2.98 91.2@3.01 80.2
""")
PUBLISHED = {  # the other rows are those of the main table
    "1": MAIN["1"],
    **{speed: {k: MAIN[speed][k] for k in ("gpfee", "de3")} | OTHERS[speed] for speed in OTHERS},
}
STUDY = "paper_dar_forms"
FORMS = (("de3", "v2"), ("de3", "v3"), ("v2", "v3"))


def forms_are_level(stored: Stored) -> Verdict:
    """Every pair of forms within one point, the mean of 2x and 3x."""
    results = stored.results(DAR_FORMS)
    found = {pair: gain_sample(results, *pair) for pair in FORMS}
    if not all(sample for sample, _ in found.values()):
        return unmeasured("dar-forms")
    judged = [level_with(sample) for sample, _ in found.values()]
    said = "; ".join(f"{a} less {b} {points(found[a, b][0].mean)}" for a, b in found)
    worst, tasks = weakest(judged), found[FORMS[0]][1]
    return Verdict(
        worst.holds,
        f"each pair {worst.test}; the weakest of three is given",
        {"pairs": [dict(each.numbers) for each in judged]},
        f"{said} (mean of 2x and 3x, {listed(tasks)}).",
    )


def forms_are_above_gpfee(stored: Stored) -> Verdict:
    """Each of the three forms less GPFEE, the mean of 2x and 3x."""
    document = stored.study(STUDY)
    if document is None:
        return unmeasured("dar-forms")
    gpfee = at_speeds("gpfee")["gpfee"]
    found = {form: study_sample(document, form, gpfee) for form in ("de3", "de3-v2", "de3-v3")}
    if not all(sample for sample, _ in found.values()):
        return unmeasured("dar-forms")
    said = ", ".join(f"{form} {100 * sample.mean:+.2f}" for form, (sample, _) in found.items())
    tasks = dict.fromkeys(task for _, seen in found.values() for task in seen)
    judged = together({form: above(sample) for form, (sample, _) in found.items()})
    return judged.saying(f"Less GPFEE (mean of 2x and 3x), in points: {said} ({listed(tasks)}).")


DAR_FORMS = Item(
    name="dar-forms",
    references=("Table XIII",),
    labels=("tab:dar_performance",),
    title="Three forms of the regulariser",
    shows="Center, alienation and combined loss give about the same; all are above GPFEE on "
    "average.",
    setting="BERT-base, all training rows, settings searched for each task, GLUE test server",
    published=PUBLISHED,
    training=Training(STUDY),
    measurement=Measurement(
        "dar-forms",
        {"de3": "de3", "v2": "de3-v2", "v3": "de3-v3"},
        rows=DEV,
        settings=LAMBDAS_OF,
    ),
    of_study=True,
    findings=(
        Finding(
            "forms",
            "Center, alienation and combined form of the regulariser are level.",
            forms_are_level,
        ),
        Finding(
            "forms-gpfee",
            "All three forms of the regulariser are above GPFEE at 2x and 3x.",
            forms_are_above_gpfee,
        ),
    ),
)
