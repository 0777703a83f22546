"""The model in eager torch at full depth, with the Hugging Face tokenizer: how most people run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from de3bert.bench.contender import CONTENDERS, Contender, Maker, Static, of_units
from de3bert.bench.material import BenchMaterial
from de3bert.data.tokens import TokenRow

__all__ = ["eager"]


@CONTENDERS.register("hf")
def eager(material: BenchMaterial, name: str) -> Maker:
    """The library's own encoder with its default attention, under inference mode."""

    def make() -> Contender:
        import torch

        plain, encoder = material.plain, material.trained.encoder
        names = material.manifest.inputs  # a tokenizer may give more than the backbone takes

        @torch.inference_mode()
        def logits(rows: Sequence[TokenRow]) -> NDArray[np.float32]:
            padded = encoder.pad(rows)
            found = plain(**{each: padded[each] for each in names}).numpy()
            return of_units(found, padded)

        return Static(
            name=name,
            precision="fp32",
            layers=material.depth,
            depth=material.depth,
            task=material.task,
            label_names=material.label_names,
            encode=encoder,
            logits=logits,
            pool="torch",
        )

    return make
