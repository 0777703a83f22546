"""Tiny random encoders, one per family."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModel,
    BertConfig,
    BertModel,
    PreTrainedConfig,
    PreTrainedModel,
)

SIZES = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def _of(family: str, **changes: object) -> Callable[[], PreTrainedConfig]:
    return lambda: AutoConfig.for_model(family, **{**SIZES, **changes})


SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DEBERTA = {
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "position_buckets": 8,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
}
TESTED = {
    "bert": _of("bert"),
    "roberta": _of("roberta"),
    "xlm-roberta": _of("xlm-roberta"),
    "albert-1-group": _of("albert", embedding_size=16, hidden_dropout_prob=0.1),
    "albert-2-groups": _of("albert", embedding_size=16, num_hidden_layers=4, num_hidden_groups=2),
    "electra": _of("electra", embedding_size=16),
    "distilbert": lambda: AutoConfig.for_model(
        "distilbert", vocab_size=60, dim=32, n_layers=3, n_heads=4, hidden_dim=64
    ),
    "mpnet": _of("mpnet"),
    "deberta": _of("deberta", relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "deberta-v2": _of("deberta-v2", conv_kernel_size=3, conv_act="gelu", **DEBERTA),
    "deberta-v2-no-conv": _of("deberta-v2", **DEBERTA),
    "modernbert": _of(
        "modernbert",
        num_hidden_layers=4,
        global_attn_every_n_layers=2,
        local_attention=4,
        cls_token_id=1,
        sep_token_id=2,
        **SPECIAL,
    ),
}
# Not in the table of known families: the stack of layers is found by looking.
FOUND = {
    "eurobert": _of("eurobert", num_key_value_heads=2, head_dim=8, mask_token_id=4, **SPECIAL),
    "nomic-bert": _of("nomic_bert"),
    "camembert": _of("camembert", **SPECIAL),
    # Layers that return a tuple, and five of them: unwrapping the wrong thing cannot go unseen.
    "rembert": _of("rembert", num_hidden_layers=5, input_embedding_size=16, **SPECIAL),
}
FAMILIES = {**TESTED, **FOUND}


def tiny(family: str) -> PreTrainedModel:
    """A random encoder in evaluation mode. Weights are large enough to make every layer count."""
    config = FAMILIES[family]()
    with torch.random.fork_rng():
        torch.manual_seed(3)
        backbone = AutoModel.from_config(config)
        for parameter in backbone.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.15)
    return backbone.eval()


def tiny_bert(**changes: object) -> BertModel:
    """A random BERT with its ordinary initialisation, the same every time."""
    torch.manual_seed(1)
    return BertModel(BertConfig(**{**SIZES, **changes}))


def batch() -> dict[str, Tensor]:
    """Three rows of 7, 4 and 2 tokens."""
    ids = torch.tensor([[7, 9, 20, 31, 8, 12, 33], [9, 41, 5, 17, 1, 1, 1], [50, 6, 1, 1, 1, 1, 1]])
    lengths = torch.tensor([7, 4, 2])
    mask = (torch.arange(7) < lengths[:, None]).long()
    return {"input_ids": ids, "attention_mask": mask}
