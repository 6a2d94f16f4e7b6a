// RUN: tessera opt %s | filecheck %s
// It takes nothing.
tile.func @plain() outputs 0 shapes [] grid [] {
  tile.return
}
tile.func @attributed() outputs 0 shapes [] grid [] {
  tile.return {why = "done"}
}

// CHECK: builtin.module {
// CHECK-NEXT:   tile.func @plain() outputs 0 shapes [] grid [] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   tile.func @attributed() outputs 0 shapes [] grid [] {
// CHECK-NEXT:     tile.return {why = "done"}
// CHECK-NEXT:   }
// CHECK-NEXT: }
