from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import datasets
import huggingface_hub
import pytest
import typer.main
from tests.export.bundles import pointed_model, trained_bundle
from tests.fixtures_trained import toy_data, trained_model
from tests.fuzz.arena import Arena
from tests.fuzz.budget import LONG, TALLY, summary
from tests.fuzz.materials import build_materials

__all__ = ["pointed_model", "toy_data", "trained_bundle", "trained_model"]

CACHE = huggingface_hub.constants.HF_HOME
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}


@pytest.fixture(scope="package")
def arena(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_backbone: Path,
    pointed_model: Path,
    trained_bundle: Path,
) -> Iterator[Arena]:
    """Where the cases of this folder run."""
    import matplotlib.pyplot  # noqa: F401  # it makes folders of its own when it is first loaded

    materials = build_materials(tmp_path_factory, tiny_backbone, pointed_model, trained_bundle)
    made = Arena(tmp_path_factory.mktemp("arena"), materials)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUIET.items():
            patch.setenv(name, value)
        for constants in (huggingface_hub.constants, datasets.config):
            _at_home(constants, made.folder / "tmp", patch)
        # The tree of verbs and options is the same for all cases, and dear to build.
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        with _quiet_libraries():
            yield made
    made.close()


def _at_home(constants: ModuleType, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """No network, and caches in the case's own folder. Both are read from the environment once."""
    patch.setattr(constants, "HF_HUB_OFFLINE", True)
    for name, value in vars(constants).items():
        if isinstance(value, str | Path) and str(value).startswith(CACHE):
            patch.setattr(constants, name, type(value)(folder / Path(value).name))


class _quiet_libraries:  # noqa: N801
    """The bars of libraries that a process of its own would load after the verb had spoken."""

    def __enter__(self) -> None:
        from transformers.utils import logging

        self.level = logging.get_verbosity()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        datasets.disable_progress_bars()

    def __exit__(self, *_: object) -> None:
        from transformers.utils import logging

        logging.set_verbosity(self.level)
        logging.enable_progress_bar()
        datasets.enable_progress_bars()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """What the workers counted comes together."""
    for target, outcome, count in getattr(node, "workeroutput", {}).get("fuzz", []):
        TALLY[target, outcome] += count


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["fuzz"] = [[*key, count] for key, count in TALLY.items()]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In a long run a finding is told when it is found."""
    if LONG and report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\n{report.nodeid}\n{report.longreprtext[-4000:]}", flush=True)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if LONG and sum(TALLY.values()) and "PYTEST_XDIST_WORKER" not in os.environ:
        terminalreporter.section("cases")
        for line in summary(Counter(TALLY)):
            terminalreporter.write_line(line)
