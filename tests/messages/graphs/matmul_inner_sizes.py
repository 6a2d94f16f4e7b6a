from xdsl.ir import Block
from tessera import accum, bf16, f16, f32, i32, saturate
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType

block = Block(arg_types=[GraphTensorType.of(["B", "S", 64], f32), GraphTensorType.of([128, "F"], f32)])
x, w = block.args
heads = graph.ReshapeOp(x, ["B", "S", 8, 8])
swapped = graph.TransposeOp(heads.result, [0, 2, 1, 3])
graph.MatmulOp(swapped.result, w)
