// RUN: tessera opt %s | filecheck %s
cpu.func @f(%n: index) shapes [[]] grid [2] {
  cpu.parallel %n, %n once {
  ^bb0(%o: index):
    cpu.yield {first} %o, %n : index, index
  } do {
  ^bb0(%o: index, %i: index, %a: index, %b: index):
    cpu.yield
  }
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%n: index) shapes [[]] grid [2] {
// CHECK-NEXT:     cpu.parallel %n, %n once {
// CHECK-NEXT:     ^bb0(%o: index):
// CHECK-NEXT:       cpu.yield {first} %o, %n : index, index
// CHECK-NEXT:     } do {
// CHECK-NEXT:     ^bb0(%o_1: index, %i: index, %a: index, %b: index):
// CHECK-NEXT:       cpu.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
