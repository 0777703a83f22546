"""Lines that people type: policies, families, targets, settings, limits, layer lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.arena import Arena
from tests.fuzz.budget import cases
from tests.fuzz.training import stopped_before_training
from tests.fuzz.values import VALUES, argument

POLICIES = ("entropy < 0.2", "edr(lambda=1.0) < 0.2", "max_probability > 0.9", "patience(2)",
            "layer(2)", "full", "oracle", "entropy < 0.2 x 2", "bandit(mu=0.1)", "certainty > 0.5",
            "bandit", "dr < 0.1", "edr", "entropy x 2", "patience", "layers")  # fmt: skip
TARGETS = ("layers=2.0", "drop=1%", "accuracy=0.9", "latency=8ms", "speedup=2.5", "full")
SETTINGS = ("train.epochs=2", "train.learning_rate=5e-5", "train.seed=1",
            "method_options.alpha=0.5", "data.max_length=32", "exit_layers=[1, 4]",
            "train.batch_size=4", "pooling=mean",
            "method_options.gamma=0.5", "train.head_rate=10", "train.warmup=0.1", "method=deebert",
            "data.calibration_share=0.5", "train.save_steps=2", "train.max_grad_norm=1",
            "train.mixed_precision=bf16", "data.metric=f1", "data.limit=8",
            "train.gradient_accumulation=2", "prototypes=none")  # fmt: skip
LIMITS = ("unpacked=8GB", "layers=2000", "document=1KB", "threads=3", "text=1")
LAYERS = ("2,4", "1,2,3", "4", "", ",", "1,1", "0", "-1", "99999999999999999999", "1.5", "a")
PARTS = ("<", ">", "<=", ">=", "=", "(", ")", ",", "x", "lambda", "-", "+", ".", "%", "ms", " ",
         "entropy", "edr", "nan", "inf", "-inf", "1e999", "-5", "0", "1", "1e-400", "9" * 400, "٣",
         "½", "true", "[", "]", "{", '"', "'''", "#", "\n", "\x1b[2J", "\udcff", "x 2", "x 0",
         "x 1e9", "mu=", "patience", "layer", "bandit", "e", "_", "0x10", "1_000")  # fmt: skip

known = st.sampled_from(POLICIES + TARGETS + SETTINGS + LIMITS + LAYERS)
hostile = st.sampled_from([argument(value) for value in VALUES.values()])
cuts = st.tuples(st.integers(0, 40), st.integers(0, 8), st.sampled_from(PARTS))
letters = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)


@st.composite
def lines(draw: st.DrawFn, sound: tuple[str, ...] = ()) -> str:
    """A line that is nearly right, or not at all."""
    how = draw(st.sampled_from(["spliced", "spliced", "spliced", "hostile", "letters", "value"]))
    if how == "hostile":
        return draw(hostile)
    if how == "letters":
        return draw(letters)
    line = draw(st.sampled_from(sound) if sound else known)
    if how == "value" and "=" in line:
        return line.partition("=")[0] + "=" + draw(st.one_of(hostile, st.sampled_from(PARTS)))
    for at, length, part in draw(st.lists(cuts, max_size=3)):
        line = line[:at] + part + line[at + length :]
    return line


def readers() -> dict[str, Callable[[str], Any]]:
    """Whatever reads a line, by what the line is."""
    from de3bert.cli.options import whole_numbers
    from de3bert.exits import Policy
    from de3bert.exits.family import Family
    from de3bert.exits.points import Target
    from de3bert.limits import set_limit
    from de3bert.training.recipe import recipe_from

    sound = {"backbone": "b", "data": {"train": "d.csv"}}
    return {
        "policy": lambda line: str(Policy.parse(line)),
        "family": lambda line: str(Family.parse(line)),
        "target": lambda line: str(Target.parse(line)),
        "setting": lambda line: recipe_from(sound, [line]).fingerprint(),
        "limit": set_limit,
        "layers": lambda line: whole_numbers(line, "--exits"),
    }


READERS = ("policy", "family", "target", "setting", "limit", "layers")


@cases("lines")
@given(lines(), st.sampled_from(READERS))
def test_readers(arena: Arena, line, kind):
    read = readers()[kind]
    arena.case("lines").call(lambda: read(line))


@cases("lines to verbs")
@given(
    st.data(),
    st.sampled_from(["--policy", "--target", "--family", "--set", "--limit", "--point", "--name"]),
)
def test_verbs(arena: Arena, data, option):
    materials, case = arena.materials, arena.case("lines to verbs")
    sound = {"--policy": POLICIES, "--target": TARGETS, "--family": POLICIES, "--set": SETTINGS,
             "--limit": LIMITS}  # fmt: skip
    line = data.draw(lines(sound.get(option, ("fast", "full", "none"))), "line").replace("\x00", "")
    given_as = f"{option}={line}"
    if option in ("--policy", "--point"):
        case.verb("predict", materials.bundle, given_as, stdin=b"a great film\n")
    elif option == "--limit":
        case.verb(given_as, "inspect", materials.bundle)
    elif option == "--family":
        case.verb("curve", materials.trace, given_as, "--quiet")
    elif option == "--set":
        with stopped_before_training():
            case.verb(
                "train", "--data", materials.rows, "--backbone", materials.backbone, "--out",
                case.folder / "out", given_as, "--quiet",
            )  # fmt: skip
    else:
        rest = ["--target=full"] if option == "--name" else ["--name=new"]
        model = case.copy(materials.bundle, "bundle")
        case.verb("calibrate", model, "--trace", materials.trace, given_as, *rest)
