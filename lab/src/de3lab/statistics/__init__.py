"""Every test and interval of the laboratory, by scipy where it has them."""

from __future__ import annotations

from de3lab.statistics.hypotheses import (
    SIGNIFICANCE,
    holm,
    one_sample_test,
    paired_test,
    range_test,
    rank_trend,
    ranks,
)
from de3lab.statistics.intervals import (
    CONFIDENCE,
    described,
    difference_interval,
    pearson,
    percentile_interval,
    pooled_sd,
    share_difference_reach,
    spearman,
    spearman_interval,
    student_interval,
    summary,
)
from de3lab.statistics.resampling import RESAMPLES, row_counts, row_draws

__all__ = [
    "CONFIDENCE",
    "RESAMPLES",
    "SIGNIFICANCE",
    "described",
    "difference_interval",
    "holm",
    "one_sample_test",
    "paired_test",
    "pearson",
    "percentile_interval",
    "pooled_sd",
    "range_test",
    "rank_trend",
    "ranks",
    "row_counts",
    "row_draws",
    "share_difference_reach",
    "spearman",
    "spearman_interval",
    "student_interval",
    "summary",
]
