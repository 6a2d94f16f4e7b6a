// RUN: tessera opt %s -p cse -f "arg1 disjoint arg0" | filecheck %s
// RUN: tessera opt %s -p cse -f "arg0 disjoint arg2" | filecheck %s --check-prefix=UNASKED
// Arguments that are known not to overlap keep a read valid across a store, at the price of a guard.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>, %z: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N], [N]] grid [1] {
  %i = tile.program_id 0
  %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.store %a, %y[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  %b = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.debug_print "both", %a, %b : tensor<4xf32>, tensor<4xf32>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>, %z: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N], [N]] grid [1] {
// CHECK-NEXT:     %i = tile.program_id 0
// CHECK-NEXT:     %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     tile.store %a, %y[%i] : tensor<4xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.debug_print "both", %a, %a : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg0 disjoint arg1
// CHECK-NOT: guard

// UNASKED: builtin.module {
// UNASKED-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>, %z: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N], [N]] grid [1] {
// UNASKED-NEXT:     %i = tile.program_id 0
// UNASKED-NEXT:     %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// UNASKED-NEXT:     tile.store %a, %y[%i] : tensor<4xf32>, !tile.view<1, f32, global>
// UNASKED-NEXT:     %b = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// UNASKED-NEXT:     tile.debug_print "both", %a, %b : tensor<4xf32>, tensor<4xf32>
// UNASKED-NEXT:     tile.return
// UNASKED-NEXT:   }
// UNASKED-NEXT: }
// UNASKED-NOT: guard
