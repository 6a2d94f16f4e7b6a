// RUN: tessera opt %s -p cse | filecheck %s
// Two reads at the same offsets merge when nothing was written in between; another pad or another size is another read.
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  %i = tile.program_id 0
  %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.debug_print "printing writes no memory"
  %b = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  %padded = tile.load %x[%i] pad 1.0 : !tile.view<1, f32, global> -> tensor<4xf32>
  %longer = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<8xf32>
  tile.debug_print "a, a, padded, longer", %a, %b, %padded, %longer : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8xf32>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
// CHECK-NEXT:     %i = tile.program_id 0
// CHECK-NEXT:     %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     tile.debug_print "printing writes no memory"
// CHECK-NEXT:     %padded = tile.load %x[%i] pad 1.0 : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     %longer = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<8xf32>
// CHECK-NEXT:     tile.debug_print "a, a, padded, longer", %a, %a, %padded, %longer : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8xf32>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
