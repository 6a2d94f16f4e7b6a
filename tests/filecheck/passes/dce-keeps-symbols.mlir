// RUN: tessera opt %s -p dce | filecheck %s
// Functions and slots without uses stay: the host may call them.
graph.state @slot : !graph.tensor<[], f32>
graph.func @never_called() {
  graph.return
}
tile.func @never_launched() outputs 0 shapes [] grid [1] {
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.state @slot : !graph.tensor<[], f32>
// CHECK-NEXT:   graph.func @never_called() {
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   tile.func @never_launched() outputs 0 shapes [] grid [1] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
