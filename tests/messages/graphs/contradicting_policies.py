from xdsl.ir import Block
from tessera import accum, bf16, f16, f32, i32, saturate
from tessera.dialects import graph
from tessera.dialects.graph_types import GraphTensorType

f16 @ accum(f32) @ accum(f16)
