"""Fine-tune an encoder with exits, see its curve, and store two operating points.

    python examples/train_and_calibrate.py BACKBONE train.csv dev.csv out/

BACKBONE is a folder or hub id of an encoder (google-bert/bert-base-uncased), the files have the
columns text and label. Thresholds are chosen on the rows of dev.csv: report scores on others.
"""

from __future__ import annotations

import sys

import de3bert
from de3bert.data.read import read_table
from de3bert.exits import Policy, curve, replay
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.evaluate import trace_table
from de3bert.training.recipe import recipe_from


def main(backbone: str, train: str, dev: str, out: str, *settings: str) -> None:
    """Further arguments override settings, such as train.epochs=1."""
    from de3bert.training.fit import fit  # here, because torch takes seconds to load

    data = {"train": train, "calibration": dev}
    trained = fit(recipe_from({"backbone": backbone, "data": data}, settings), out)
    for layer, accuracy in trained.exit_accuracy.items():
        print(f"exit after layer {layer:2}: {accuracy:.3f} on calibration rows")

    # One pass over the rows; every policy is then arithmetic on its outputs.
    table = read_table(dev)
    trace = trace_table(de3bert.load(out), table)
    entropy = curve(trace, "entropy")
    print(f"entropy rule: {entropy.score[0]:.3f} at full depth, {entropy.at(1.5):.3f} at 1.5x")
    exits = replay(trace, Policy.parse("entropy < 0.2")).exit_layers
    print(f"entropy < 0.2 executes {exits.mean():.2f} layers on average")

    half = calibrate_model(out, "layers=1.5", "1.5x", table=table)
    careful = calibrate_model(out, "drop=0.01", "careful", table=table, default=True)
    for point in (half, careful):
        print(f"{point.name}: {point.policy}, {point.measured['layer_speedup']:.2f}x in layers")


if __name__ == "__main__":
    if len(sys.argv) < 5:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
