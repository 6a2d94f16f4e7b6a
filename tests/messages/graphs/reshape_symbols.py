from xdsl.ir import Block
from tessera import accum, bf16, f16, f32, i32, saturate
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType

block = Block(arg_types=[GraphTensorType.of(["B", "S", 64], f32)])
flat = graph.ReshapeOp(block.args[0], ["B*S", 64])
graph.ReshapeOp(flat.result, ["B", 64, "T"])
