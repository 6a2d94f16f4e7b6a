// RUN: tessera opt %s | filecheck %s
// Room for a label alone, or for any number of tiles; the view of a tile without axes has one.
tile.func @f(%i: index, %j: index) outputs 0 shapes [[], []] grid [1] {
  tile.print_record 0 "here" at [] []
  %views:2 = tile.print_record 1 "x and n" at [%i, %j] [tensor<4x2xbf16>, tensor<i64>] {k} : !tile.view<2, bf16, global>, !tile.view<1, i64, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%i: index, %j: index) outputs 0 shapes [[], []] grid [1] {
// CHECK-NEXT{LITERAL}:     tile.print_record 0 "here" at[] []
// CHECK-NEXT{LITERAL}:     %views, %views_1 = tile.print_record 1 "x and n" at[%i, %j] [tensor<4x2xbf16>, tensor<i64>] {k} : !tile.view<2, bf16, global>, !tile.view<1, i64, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
