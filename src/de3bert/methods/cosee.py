"""COSEE: exits weighted by where samples would leave, and a signal kept honest in training."""

from dataclasses import replace

from de3bert.methods.method import METHODS, Method, Phase, Term

COSEE = Method(
    name="cosee",
    summary="samples weigh most at the exits where they would leave; energy kept apart online",
    citation="He et al., 2025: COSEE",
    group="early exit",
    phases=(
        Phase((Term("weighted_cross_entropy"), Term("signal_calibration", weight="calibration"))),
    ),
    families=("energy",),
    options={
        "calibration": 0.1,  # weight of the signal calibration
        "b0": 0.2,  # how sharply the weights gather around the exit at the end of training
        "thresholds": 5.0,  # drawn per step
        "margin": 0.3,  # wanted between the mean signals of right and wrong samples
    },
)
METHODS.add("cosee", COSEE)

METHODS.add(
    "de-cosee",
    replace(
        COSEE,
        name="de-cosee",
        summary="the training of COSEE with the prototypes and the exit rule of DE3",
        citation="He et al., DE3-BERT",
        group="ours",
        phases=(
            replace(
                COSEE.phases[0], terms=(*COSEE.phases[0].terms, Term("distance", weight="alpha"))
            ),
        ),
        families=("edr",),
        prototypes="linear",
        options={
            **COSEE.options,
            "alpha": 0.1,
            "dar": "center",
            "beta": 1.0,
            "gamma": 0.5,
            "lambda": 1.0,
        },
    ),
)
