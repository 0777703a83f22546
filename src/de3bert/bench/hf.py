"""The model in eager torch at full depth, with the Hugging Face tokenizer: how most people run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.bench.contender import CONTENDERS, Contender, Maker, static
from de3bert.bench.material import BenchMaterial

__all__ = ["eager"]


@CONTENDERS.register("hf")
def eager(material: BenchMaterial, name: str) -> Maker:
    """The library's own encoder with its default attention, under inference mode."""

    def make() -> Contender:
        import torch

        plain = material.plain
        names = material.manifest.inputs  # a tokenizer may give more than the backbone takes

        @torch.inference_mode()
        def run(padded: Mapping[str, Any]) -> NDArray[np.float32]:
            return plain(**{each: padded[each] for each in names}).numpy()

        return static(material, name, run, material.trained.encoder, pool="torch")

    return make
