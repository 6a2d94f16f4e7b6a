// RUN: tessera opt %s | filecheck %s
// Behind it, what the kernels in front of this one have written is there.
nv.func @f(%x: !tile.view<1, f32, global>, %w: !tile.view<1, f32, global>) outputs 0 shapes [[N], [32]] grid [1] threads 32 attributes {readonly = array<i64: 1>} {
  %zero = arith.constant 0 : index
  %a = tile.load %w[%zero] : !tile.view<1, f32, global> -> tensor<32xf32, #nv.layout<[32:0*1], []>>
  nv.griddepcontrol_wait {k}
  %b = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<32xf32, #nv.layout<[32:0*1], []>>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<1, f32, global>, %w: !tile.view<1, f32, global>) outputs 0 shapes [[N], [32]] grid [1] threads 32 attributes {readonly = array<i64: 1>} {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %a = tile.load %w[%zero] : !tile.view<1, f32, global> -> tensor<32xf32, #nv.layout<[32:0*1], []>>
// CHECK-NEXT:     nv.griddepcontrol_wait {k}
// CHECK-NEXT:     %b = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<32xf32, #nv.layout<[32:0*1], []>>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
