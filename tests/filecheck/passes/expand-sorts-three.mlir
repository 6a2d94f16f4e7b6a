// RUN: tessera opt %s -p expand-sorts | filecheck %s
// Three elements take the network of four: what lies behind the end is larger than all.
tile.func @f(%x: !tile.view<1, i32, global>, %y: !tile.view<1, i32, global>) outputs 1 shapes [[3], [3]] grid [1] {
  %zero = arith.constant 0 : index
  %row = tile.load %x[%zero] : !tile.view<1, i32, global> -> tensor<3xi32>
  %sorted = tile.sort %row, 0 : tensor<3xi32> -> tensor<3xi32>
  tile.store %sorted, %y[%zero] : tensor<3xi32>, !tile.view<1, i32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, i32, global>, %y: !tile.view<1, i32, global>) outputs 1 shapes [[3], [3]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %row = tile.load %x[%zero] : !tile.view<1, i32, global> -> tensor<3xi32>
// CHECK-NEXT:     %sorted = arith.constant 0 : index
// CHECK-NEXT:     %sorted_1 = tile.iota %sorted, 0 : tensor<3xi64>
// CHECK-NEXT:     %sorted_2 = arith.constant 2147483647 : i64
// CHECK-NEXT:     %sorted_3 = tile.full %sorted_2 : tensor<3xi64>
// CHECK-NEXT:     %sorted_4 = tile.ew<cast> %sorted_3 : tensor<3xi64> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_5 = arith.constant 1 : i64
// CHECK-NEXT:     %sorted_6 = tile.full %sorted_5 : tensor<3xi64>
// CHECK-NEXT:     %sorted_7 = tile.ew<xor> %sorted_1, %sorted_6 : tensor<3xi64>, tensor<3xi64> -> tensor<3xi64>
// CHECK-NEXT:     %sorted_8 = arith.constant 1 : i64
// CHECK-NEXT:     %sorted_9 = tile.full %sorted_8 : tensor<3xi64>
// CHECK-NEXT:     %sorted_10 = tile.ew<and> %sorted_1, %sorted_9 : tensor<3xi64>, tensor<3xi64> -> tensor<3xi64>
// CHECK-NEXT:     %sorted_11 = arith.constant 0 : i64
// CHECK-NEXT:     %sorted_12 = tile.full %sorted_11 : tensor<3xi64>
// CHECK-NEXT:     %sorted_13 = tile.ew<eq> %sorted_10, %sorted_12 : tensor<3xi64>, tensor<3xi64> -> tensor<3xi1>
// CHECK-NEXT:     %sorted_14 = tile.take %row[%sorted_7] : tensor<3xi32>, tensor<3xi64> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_15 = arith.constant 3 : i64
// CHECK-NEXT:     %sorted_16 = tile.full %sorted_15 : tensor<3xi64>
// CHECK-NEXT:     %sorted_17 = tile.ew<lt> %sorted_7, %sorted_16 : tensor<3xi64>, tensor<3xi64> -> tensor<3xi1>
// CHECK-NEXT:     %sorted_18 = tile.ew<select> %sorted_17, %sorted_14, %sorted_4 : tensor<3xi1>, tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_19 = tile.ew<min> %row, %sorted_18 : tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_20 = tile.ew<max> %row, %sorted_18 : tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_21 = tile.ew<select> %sorted_13, %sorted_19, %sorted_20 : tensor<3xi1>, tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_22 = arith.constant 3 : i64
// CHECK-NEXT:     %sorted_23 = tile.full %sorted_22 : tensor<3xi64>
// CHECK-NEXT:     %sorted_24 = tile.ew<xor> %sorted_1, %sorted_23 : tensor<3xi64>, tensor<3xi64> -> tensor<3xi64>
// CHECK-NEXT:     %sorted_25 = arith.constant 2 : i64
// CHECK-NEXT:     %sorted_26 = tile.full %sorted_25 : tensor<3xi64>
// CHECK-NEXT:     %sorted_27 = tile.ew<and> %sorted_1, %sorted_26 : tensor<3xi64>, tensor<3xi64> -> tensor<3xi64>
// CHECK-NEXT:     %sorted_28 = arith.constant 0 : i64
// CHECK-NEXT:     %sorted_29 = tile.full %sorted_28 : tensor<3xi64>
// CHECK-NEXT:     %sorted_30 = tile.ew<eq> %sorted_27, %sorted_29 : tensor<3xi64>, tensor<3xi64> -> tensor<3xi1>
// CHECK-NEXT:     %sorted_31 = tile.take %sorted_21[%sorted_24] : tensor<3xi32>, tensor<3xi64> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_32 = arith.constant 3 : i64
// CHECK-NEXT:     %sorted_33 = tile.full %sorted_32 : tensor<3xi64>
// CHECK-NEXT:     %sorted_34 = tile.ew<lt> %sorted_24, %sorted_33 : tensor<3xi64>, tensor<3xi64> -> tensor<3xi1>
// CHECK-NEXT:     %sorted_35 = tile.ew<select> %sorted_34, %sorted_31, %sorted_4 : tensor<3xi1>, tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_36 = tile.ew<min> %sorted_21, %sorted_35 : tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_37 = tile.ew<max> %sorted_21, %sorted_35 : tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_38 = tile.ew<select> %sorted_30, %sorted_36, %sorted_37 : tensor<3xi1>, tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_39 = arith.constant 1 : i64
// CHECK-NEXT:     %sorted_40 = tile.full %sorted_39 : tensor<3xi64>
// CHECK-NEXT:     %sorted_41 = tile.ew<xor> %sorted_1, %sorted_40 : tensor<3xi64>, tensor<3xi64> -> tensor<3xi64>
// CHECK-NEXT:     %sorted_42 = arith.constant 1 : i64
// CHECK-NEXT:     %sorted_43 = tile.full %sorted_42 : tensor<3xi64>
// CHECK-NEXT:     %sorted_44 = tile.ew<and> %sorted_1, %sorted_43 : tensor<3xi64>, tensor<3xi64> -> tensor<3xi64>
// CHECK-NEXT:     %sorted_45 = arith.constant 0 : i64
// CHECK-NEXT:     %sorted_46 = tile.full %sorted_45 : tensor<3xi64>
// CHECK-NEXT:     %sorted_47 = tile.ew<eq> %sorted_44, %sorted_46 : tensor<3xi64>, tensor<3xi64> -> tensor<3xi1>
// CHECK-NEXT:     %sorted_48 = tile.take %sorted_38[%sorted_41] : tensor<3xi32>, tensor<3xi64> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_49 = arith.constant 3 : i64
// CHECK-NEXT:     %sorted_50 = tile.full %sorted_49 : tensor<3xi64>
// CHECK-NEXT:     %sorted_51 = tile.ew<lt> %sorted_41, %sorted_50 : tensor<3xi64>, tensor<3xi64> -> tensor<3xi1>
// CHECK-NEXT:     %sorted_52 = tile.ew<select> %sorted_51, %sorted_48, %sorted_4 : tensor<3xi1>, tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_53 = tile.ew<min> %sorted_38, %sorted_52 : tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_54 = tile.ew<max> %sorted_38, %sorted_52 : tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
// CHECK-NEXT:     %sorted_55 = tile.ew<select> %sorted_47, %sorted_53, %sorted_54 : tensor<3xi1>, tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>
// CHECK-NEXT:     tile.store %sorted_55, %y[%zero] : tensor<3xi32>, !tile.view<1, i32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
