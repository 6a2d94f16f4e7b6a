// RUN: tessera opt %s -p fix-extents | filecheck %s
// Extents of the grid that facts have made numbers are constants; others are asked for at the launch.
nv.func @f(%x: !tile.view<2, f32, global>) outputs 0 shapes [[M, N]] grid [12, "(N + 63)//64"] threads 128 {
  %across = nv.extent 0
  %down = nv.extent 1
  %count = arith.muli %across, %down : i32
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<2, f32, global>) outputs 0 shapes [[M, N]] grid [12, "(N + 63)//64"] threads 128 {
// CHECK-NEXT:     %across = arith.constant 12 : i32
// CHECK-NEXT:     %down = nv.extent 1
// CHECK-NEXT:     %count = arith.muli %across, %down : i32
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
