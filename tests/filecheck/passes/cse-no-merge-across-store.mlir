// RUN: tessera opt %s -p cse | filecheck %s
// A store may have changed what was read, through the same argument, a view of it, or another argument.
tile.func @same(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  %i = tile.program_id 0
  %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.store %a, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  %b = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.debug_print "both", %a, %b : tensor<4xf32>, tensor<4xf32>
  tile.return
}
tile.func @through_a_view(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  %i = tile.program_id 0
  %v = tile.view %x offset %i sizes [%i] strides [%i] : !tile.view<1, f32, global> -> !tile.view<1, f32, global>
  %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.store %a, %v[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  %b = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.debug_print "both", %a, %b : tensor<4xf32>, tensor<4xf32>
  tile.return
}
tile.func @other(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid [1] {
  %i = tile.program_id 0
  %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.store %a, %y[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  %b = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.debug_print "both", %a, %b : tensor<4xf32>, tensor<4xf32>
  tile.return
}
tile.func @atomic(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  %i = tile.program_id 0
  %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.atomic<sum> %a, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  %b = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.debug_print "both", %a, %b : tensor<4xf32>, tensor<4xf32>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @same(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
// CHECK-NEXT:     %i = tile.program_id 0
// CHECK-NEXT:     %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     tile.store %a, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     %b = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     tile.debug_print "both", %a, %b : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @through_a_view(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
// CHECK-NEXT:     %i = tile.program_id 0
// CHECK-NEXT:     %v = tile.view %x offset %i sizes[%i] strides[%i] : !tile.view<1, f32, global> -> !tile.view<1, f32, global>
// CHECK-NEXT:     %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     tile.store %a, %v[%i] : tensor<4xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     %b = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     tile.debug_print "both", %a, %b : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @other(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid [1] {
// CHECK-NEXT:     %i = tile.program_id 0
// CHECK-NEXT:     %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     tile.store %a, %y[%i] : tensor<4xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     %b = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     tile.debug_print "both", %a, %b : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @atomic(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
// CHECK-NEXT:     %i = tile.program_id 0
// CHECK-NEXT:     %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     tile.atomic<sum> %a, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     %b = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     tile.debug_print "both", %a, %b : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
