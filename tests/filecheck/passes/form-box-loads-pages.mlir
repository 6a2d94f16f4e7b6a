// RUN: tessera opt %s -p "form-box-loads" | filecheck %s
// Groups of eight rows have one page each, and places there that follow each other: two boxes, which end with the
// sequence. Rows that are looked up one by one stay as they are.
tile.func @f(%pages: !tile.view<3, bf16, global>, %table: !tile.view<1, i32, global>, %q: !tile.view<2, bf16, global>, %length: index, %y: !tile.view<2, f32, global>) outputs 1 shapes [[N, 8, 16], [M], [16, 16], [], [16, 16]] grid [1] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : i64
  %end = arith.index_cast %length : index to i64
  %row = tile.iota %zero, 0 : tensor<16x1xi64>
  %page = tile.full %eight : tensor<16x1xi64>
  %number = tile.ew<floordiv> %row, %page : tensor<16x1xi64>, tensor<16x1xi64> -> tensor<16x1xi64>
  %found = tile.read %table[%number] : !tile.view<1, i32, global>, tensor<16x1xi64> -> tensor<16x1xi32>
  %which = tile.ew<cast> %found : tensor<16x1xi32> -> tensor<16x1xi64>
  %inside = tile.ew<rem> %row, %page : tensor<16x1xi64>, tensor<16x1xi64> -> tensor<16x1xi64>
  %column = tile.iota %zero, 1 : tensor<1x16xi64>
  %ends = tile.full %end : tensor<16x1xi64>
  %there = tile.ew<lt> %row, %ends : tensor<16x1xi64>, tensor<16x1xi64> -> tensor<16x1xi1>
  %mask = tile.broadcast %there : tensor<16x1xi1> -> tensor<16x16xi1>
  %0 = tile.broadcast %which : tensor<16x1xi64> -> tensor<16x16xi64>
  %1 = tile.broadcast %inside : tensor<16x1xi64> -> tensor<16x16xi64>
  %2 = tile.broadcast %column : tensor<1x16xi64> -> tensor<16x16xi64>
  %keys = tile.read %pages[%0, %1, %2] mask %mask : tensor<16x16xi1> : !tile.view<3, bf16, global>, tensor<16x16xi64>, tensor<16x16xi64>, tensor<16x16xi64> -> tensor<16x16xbf16>
  %each = tile.read %table[%row] : !tile.view<1, i32, global>, tensor<16x1xi64> -> tensor<16x1xi32>
  %own = tile.ew<cast> %each : tensor<16x1xi32> -> tensor<16x1xi64>
  %3 = tile.broadcast %own : tensor<16x1xi64> -> tensor<16x16xi64>
  %values = tile.read %pages[%3, %1, %2] : !tile.view<3, bf16, global>, tensor<16x16xi64>, tensor<16x16xi64>, tensor<16x16xi64> -> tensor<16x16xbf16>
  %queries = tile.load %q[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<16x16xbf16>
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<16x16xf32>
  %turned = tile.trans %keys, [1, 0] : tensor<16x16xbf16> -> tensor<16x16xbf16>
  %scores = tile.dot %queries, %turned, %clear : tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xf32> -> tensor<16x16xf32>
  %all = tile.dot %queries, %values, %scores : tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %all, %y[%zero, %zero] : tensor<16x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%pages: !tile.view<3, bf16, global>, %table: !tile.view<1, i32, global>, %q: !tile.view<2, bf16, global>, %length: index, %y: !tile.view<2, f32, global>) outputs 1 shapes [[N, 8, 16], [M], [16, 16], [], [16, 16]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %eight = arith.constant 8 : i64
// CHECK-NEXT:     %row = tile.iota %zero, 0 : tensor<16x1xi64>
// CHECK-NEXT:     %page = tile.full %eight : tensor<16x1xi64>
// CHECK-NEXT:     %inside = tile.ew<rem> %row, %page : tensor<16x1xi64>, tensor<16x1xi64> -> tensor<16x1xi64>
// CHECK-NEXT:     %column = tile.iota %zero, 1 : tensor<1x16xi64>
// CHECK-NEXT:     %0 = tile.broadcast %inside : tensor<16x1xi64> -> tensor<16x16xi64>
// CHECK-NEXT:     %1 = tile.broadcast %column : tensor<1x16xi64> -> tensor<16x16xi64>
// CHECK-NEXT:     %keys = arith.constant 0 : index
// CHECK-NEXT:     %keys_1 = tile.item %table[%keys] : !tile.view<1, i32, global> -> i32
// CHECK-NEXT:     %keys_2 = arith.index_cast %keys_1 : i32 to index
// CHECK-NEXT:     %keys_3 = arith.constant 1 : index
// CHECK-NEXT:     %keys_4 = tile.item %table[%keys_3] : !tile.view<1, i32, global> -> i32
// CHECK-NEXT:     %keys_5 = arith.index_cast %keys_4 : i32 to index
// CHECK-NEXT:     %keys_6 = tile.load_boxes %pages[%keys_2, %keys, %zero, %keys_5, %keys, %zero] along [1, 2] until %length : !tile.view<3, bf16, global> -> tensor<16x16xbf16>
// CHECK-NEXT:     %each = tile.read %table[%row] : !tile.view<1, i32, global>, tensor<16x1xi64> -> tensor<16x1xi32>
// CHECK-NEXT:     %own = tile.ew<cast> %each : tensor<16x1xi32> -> tensor<16x1xi64>
// CHECK-NEXT:     %2 = tile.broadcast %own : tensor<16x1xi64> -> tensor<16x16xi64>
// CHECK-NEXT:     %values = tile.read %pages[%2, %0, %1] : !tile.view<3, bf16, global>, tensor<16x16xi64>, tensor<16x16xi64>, tensor<16x16xi64> -> tensor<16x16xbf16>
// CHECK-NEXT:     %queries = tile.load %q[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<16x16xbf16>
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %clear = tile.full %nothing : tensor<16x16xf32>
// CHECK-NEXT:     %turned = tile.trans %keys_6, [1, 0] : tensor<16x16xbf16> -> tensor<16x16xbf16>
// CHECK-NEXT:     %scores = tile.dot %queries, %turned, %clear : tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT:     %all = tile.dot %queries, %values, %scores : tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT:     tile.store %all, %y[%zero, %zero] : tensor<16x16xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
