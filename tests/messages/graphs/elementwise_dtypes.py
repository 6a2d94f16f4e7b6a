from xdsl.ir import Block
from tessera import accum, bf16, f16, f32, i32, saturate
from tessera.ir.graph import dialect as graph
from tessera.ir.graph.types import GraphTensorType

block = Block(arg_types=[GraphTensorType.of(["S"], bf16 @ accum(f32)), GraphTensorType.of(["S"], f16)])
x, y = block.args
graph.EwOp("mul", [graph.EwOp("neg", [x]).result, y])
