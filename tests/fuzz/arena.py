"""Where cases run: a folder that each has to itself, with canaries in it and a watch on it."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.budget import TALLY
from tests.fuzz.mutate import filled
from tests.fuzz.outcome import Finding, Outcome, captured, judged, limited, settled
from tests.fuzz.watch import Canaries, Watch

__all__ = ["Arena", "Case", "Materials"]

EXECUTED = "executed"  # what foreign code makes, wherever it comes to run
EVIL = f"""import os
os.mkdir({EXECUTED!r})
class Config: ...
class Model: ...
class Tokenizer: ...
"""
CANARY = "a secret that nobody asked for"


@dataclass(frozen=True)
class Materials:
    """Sound things that cases spoil copies of.

    Attributes:
        model, bundle: a classifier with operating points and its bundle, which was profiled.
        words: a tagger.
        backbone: an encoder without exits.
        rows: a few labelled rows, as CSV.
        trace, model_trace: of the bundle and of the model, on these rows.
        recipe: settings of a short training.
        stopped: the checkpoints of a training by `recipe` that was stopped.
    """

    model: Path
    bundle: Path
    words: Path
    backbone: Path
    rows: Path
    trace: Path
    model_trace: Path
    recipe: dict[str, Any]
    stopped: Path


@functools.cache
def the_watch() -> Watch:
    return Watch()


class Arena:
    """Makes cases, one after the other, in the same folder: messages do not differ by a number."""

    def __init__(self, root: Path, materials: Materials) -> None:
        self.root, self.materials = root, materials
        self.folder = root / "case"
        self.folder.mkdir(parents=True)
        self.canaries = [self.folder / f"outside.{kind}" for kind in ("onnx", "json", "bin")]
        shutil.copy(next(materials.bundle.glob("distances-*.onnx")), self.canaries[0])
        for path in self.canaries[1:]:
            path.write_text(CANARY)
        self.kernel = Canaries(self.canaries)
        self.watch = the_watch()
        self.watch.readable += [
            os.path.realpath(path) for path in vars(materials).values() if isinstance(path, Path)
        ]

    def case(self, target: str) -> Case:
        for path in self.folder.iterdir():
            if path in self.canaries:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        return Case(self, target)

    def close(self) -> None:
        self.kernel.close()


class Case:
    """One call of a verb or of a reader, on things that a stranger gave.

    Example:
        >>> case = arena.case("tables")
        >>> case.verb("evaluate", bundle, "--data", case.write("rows.csv", data))
    """

    def __init__(self, arena: Arena, target: str) -> None:
        self.arena, self.target = arena, target
        self.folder = arena.folder

    def write(self, name: str, data: bytes, *, own: bool = False) -> Path:
        """
        Args:
            own: it is a file of the user's own, who may name any other to be read: no canary.
        """
        path = self.folder / name
        path.write_bytes(filled(data, self.folder / "elsewhere" if own else self.folder))
        return path

    def copy(self, source: Path, name: str) -> Path:
        """A copy to spoil, with foreign code in it that a file may name."""
        folder = Path(shutil.copytree(source, self.folder / name))
        (folder / "evil.py").write_text(EVIL)
        return folder

    def verb(self, *arguments: object, stdin: bytes = b"") -> Outcome:
        from de3bert.cli.main import main

        sys.argv = ["de3", *map(str, arguments)]
        return self._run(main, stdin)

    def call(self, work: Callable[[], Any]) -> Outcome:
        """Runs a reader; what it returns is not looked at."""
        return self._run(work, b"", spoken=False)

    def _run(self, work: Callable[[], Any], stdin: bytes, spoken: bool = True) -> Outcome:
        with self._surroundings(), captured(stdin) as said:
            self.arena.kernel.disturbed()  # by whoever made the case
            self.arena.watch.start(self.folder, self.arena.canaries)
            try:
                with limited():
                    kind = settled(work)
            finally:
                noted = self.arena.watch.stop()
        found = [*noted, *self.arena.kernel.disturbed()]
        if (self.folder / EXECUTED).exists():
            found.append("foreign code was executed")
        if found:
            raise Finding("; ".join(found[:10]))
        if CANARY in (said.out + said.err).decode(errors="replace"):
            raise Finding("the content of a canary was shown")
        outcome = judged(kind, said) if spoken else Outcome(kind)
        TALLY[self.target, outcome.kind] += 1
        return outcome

    @contextlib.contextmanager
    def _surroundings(self) -> Iterator[None]:
        """The case's own current folder and temporary files; what it sets is undone."""
        here, environment, arguments = os.getcwd(), dict(os.environ), sys.argv
        temporary = tempfile.tempdir
        os.chdir(self.folder)
        (self.folder / "tmp").mkdir(exist_ok=True)
        tempfile.tempdir = str(self.folder / "tmp")
        try:
            yield
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(environment)
            sys.argv, tempfile.tempdir = arguments, temporary
            if "torch" in sys.modules:
                sys.modules["torch"].set_num_threads(1)
