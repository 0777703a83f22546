"""Every option of every verb, with values that fit and values that do not."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from tests.fuzz.arena import Arena
from tests.fuzz.asked import placed, requests
from tests.fuzz.budget import cases
from tests.fuzz.training import _stop, stopped_before_training

from de3bert.cli.main import VERBS

NAMES = tuple(verb.__name__.rsplit(".", 1)[-1].replace("_", "-") for verb in VERBS)
# Work that a right request would begin: minutes of it, so it ends where it would start.
WORK = (
    "de3bert.export.bundle.export_model",
    "de3bert.bench.run.run_bench",
    "de3bert.demo.run.run_demo",
    "de3bert.runtime.profile._timed",
)


@cases("options")
@given(requests(NAMES))
def test_options(arena: Arena, words):
    case = arena.case("options")
    arguments = [placed(case, word) for word in words]
    with ExitStack() as stack:
        stack.enter_context(stopped_before_training())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in WORK:
            patch.setattr(name, _stop)
        case.verb(*arguments, stdin=b"a great film\n")
