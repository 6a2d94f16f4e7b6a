// RUN: tessera opt %s | filecheck %s
cpu.func @f() shapes [] grid [] {
  cpu.return
}
cpu.func @g() shapes [] grid [] {
  cpu.return {last}
}

// CHECK: builtin.module {
// CHECK-NEXT:   cpu.func @f() shapes [] grid [] {
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT:   cpu.func @g() shapes [] grid [] {
// CHECK-NEXT:     cpu.return {last}
// CHECK-NEXT:   }
// CHECK-NEXT: }
