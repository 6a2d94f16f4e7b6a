"""Kernels that ship, written in the tile language: use them as they are, or `with_schedule` another schedule.

`flash_attention_2`, `efficient_layernorm`, `stable_softmax` and `rotary_embedding` are the specification's names.
"""

from __future__ import annotations

from tessera.stdlib.attentions import (
    alibi_attention,
    attention,
    attention_into,
    attention_lse,
    bias_attention,
    causal,
    flash_attention,
    narrow_attention,
    own_score,
    prefix_attention,
    sigmoid_attention,
    soft_cap,
    typed_attention,
    window_attention,
)
from tessera.stdlib.elementwise import gelu, gelu_bias, identity
from tessera.stdlib.manipulation import transpose
from tessera.stdlib.matmul import gemm, mlp
from tessera.stdlib.normalization import layernorm, rmsnorm, softmax
from tessera.stdlib.rotary import rope

flash_attention_2 = attention
efficient_layernorm = layernorm
stable_softmax = softmax
rotary_embedding = rope

__all__ = [
    "alibi_attention",
    "attention",
    "attention_into",
    "attention_lse",
    "bias_attention",
    "causal",
    "efficient_layernorm",
    "flash_attention",
    "flash_attention_2",
    "gelu",
    "gelu_bias",
    "gemm",
    "identity",
    "layernorm",
    "mlp",
    "narrow_attention",
    "own_score",
    "prefix_attention",
    "rmsnorm",
    "rope",
    "rotary_embedding",
    "sigmoid_attention",
    "soft_cap",
    "softmax",
    "stable_softmax",
    "transpose",
    "typed_attention",
    "window_attention",
]
