// RUN: tessera opt %s | filecheck %s
// Arguments, results, effects and attributes are each optional; names may need quotes.
graph.func @nothing() {
  graph.return
}
graph.func @empty_lists() -> () effects [] {
  graph.return
}
graph.func @"a name with spaces"(%x: !graph.tensor<[], f32>) -> (!graph.tensor<[], f32>) {
  graph.return %x : !graph.tensor<[], f32>
}
graph.func @dtypes(%a: !graph.tensor<[4], bf16>, %b: !graph.tensor<[4], f8E4M3FN>, %c: !graph.tensor<[4], i4>, %d: !graph.tensor<[4], ui8>, %e: !graph.tensor<[4], i1>) {
  graph.return
}
graph.func @scalars(%i: index, %f: f32, %b: i1) -> (f32, index) {
  graph.return %f, %i : f32, index
}
graph.func @sizes(%x: !graph.tensor<[S, "1 + S*2", "S//64", "(S + 63)//64*64", "S%64", 0], f32>) {
  graph.return
}
graph.func @policies(%x: !graph.tensor<[4], bf16, saturate, accum(f32)>, %y: !graph.tensor<[4], f16, loss_scale(1048576)>, %z: !graph.tensor<[4], i8, scaled(0)>, %s: !graph.tensor<[4], f16, loss_scale(0.00006103515625), stochastic_round>) {
  graph.return
}
graph.func @effects() effects [random, io, "state(cache)", "collective(data parallel)"] {
  graph.return
}
graph.func @attributed(%x: f32) -> (f32) effects [io] attributes {inline = true, note = "é \22quoted\22"} {
  graph.return %x : f32
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @nothing() {
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @empty_lists() {
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @"a name with spaces"(%x: !graph.tensor<[], f32>) -> (!graph.tensor<[], f32>) {
// CHECK-NEXT:     graph.return %x : !graph.tensor<[], f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @dtypes(%a: !graph.tensor<[4], bf16>, %b: !graph.tensor<[4], f8E4M3FN>, %c: !graph.tensor<[4], i4>, %d: !graph.tensor<[4], ui8>, %e: !graph.tensor<[4], i1>) {
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @scalars(%i: index, %f: f32, %b: i1) -> (f32, index) {
// CHECK-NEXT:     graph.return %f, %i : f32, index
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @sizes(%x: !graph.tensor<[S, "2*S + 1", "S//64", "64*((S + 63)//64)", "S%64", 0], f32>) {
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @policies(%x: !graph.tensor<[4], bf16, accum(f32), saturate>, %y: !graph.tensor<[4], f16, loss_scale(1048576)>, %z: !graph.tensor<[4], i8, scaled(0)>, %s: !graph.tensor<[4], f16, stochastic_round, loss_scale(6.103515625e-05)>) {
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @effects() effects [random, io, "state(cache)", "collective(data parallel)"] {
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @attributed(%x: f32) -> (f32) effects [io] attributes {inline = true, note = "\C3\A9 \22quoted\22"} {
// CHECK-NEXT:     graph.return %x : f32
// CHECK-NEXT:   }
// CHECK-NEXT: }
