// RUN: tessera opt %s -p lazy-rescale | filecheck %s
// A branch for the rows that rise; sums have another one. In all other iterations a comparison is left.
tile.func @f(%x: !tile.view<2, f32, global>, %v: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[4, N], [N, 2], [4, 2]] grid [1] {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %n = tile.dim %x, 1 : !tile.view<2, f32, global>
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %first = arith.constant 0xff800000 : f32
  %infinite = arith.constant 0xff800000 : f32
  %half = arith.constant 0.5 : f32
  %zero = tile.full %f0 : tensor<4xf32>
  %one = tile.full %f1 : tensor<4xf32>
  %start = tile.full %first : tensor<4xf32>
  %nothing = tile.full %infinite : tensor<4xf32>
  %clear = tile.full %f0 : tensor<4x2xf32>
  %scale = tile.full %half : tensor<4xf32>
  %scales = tile.full %half : tensor<4x3xf32>
  %sums, %m, %totals = scf.for %i = %c0 to %n step %c3 iter_args(%acc = %clear, %old = %start, %total = %zero)
      -> (tensor<4x2xf32>, tensor<4xf32>, tensor<4xf32>) {
    %s = tile.load %x[%c0, %i] pad 0xfff0000000000000 : !tile.view<2, f32, global> -> tensor<4x3xf32>
    %w = tile.load %v[%i, %c0] : !tile.view<2, f32, global> -> tensor<3x2xf32>
    %greatest = tile.reduce<top> %s, 1 : tensor<4x3xf32> -> tensor<4xf32>
    %t = tile.ew<mul> %greatest, %scale : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %new = tile.ew<max> %old, %t : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %none = tile.ew<eq> %new, %nothing : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
    %safe = tile.ew<select> %none, %zero, %new : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %same = tile.ew<le> %t, %old : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
    %fall = tile.ew<sub> %old, %safe : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %less = tile.ew<exp> %fall : tensor<4xf32> -> tensor<4xf32>
    %alpha = tile.ew<select> %same, %one, %less : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %scaled = tile.ew<mul> %s, %scales : tensor<4x3xf32>, tensor<4x3xf32> -> tensor<4x3xf32>
    %column = tile.expand %safe, 1 : tensor<4xf32> -> tensor<4x1xf32>
    %base = tile.broadcast %column : tensor<4x1xf32> -> tensor<4x3xf32>
    %power = tile.ew<sub> %scaled, %base : tensor<4x3xf32>, tensor<4x3xf32> -> tensor<4x3xf32>
    %p = tile.ew<exp> %power : tensor<4x3xf32> -> tensor<4x3xf32>
    %sum = tile.reduce<sum> %p, 1 : tensor<4x3xf32> -> tensor<4xf32>
    %faded = tile.ew<mul> %total, %alpha : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %total_new = tile.ew<add> %faded, %sum : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %alpha_column = tile.expand %alpha, 1 : tensor<4xf32> -> tensor<4x1xf32>
    %alphas = tile.broadcast %alpha_column : tensor<4x1xf32> -> tensor<4x2xf32>
    %acc_faded = tile.ew<mul> %acc, %alphas : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
    %acc_new = tile.dot %p, %w, %acc_faded : tensor<4x3xf32>, tensor<3x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
    scf.yield %acc_new, %new, %total_new : tensor<4x2xf32>, tensor<4xf32>, tensor<4xf32>
  }
  %empty = tile.ew<eq> %totals, %zero : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
  %safe_totals = tile.ew<select> %empty, %one, %totals : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %totals_column = tile.expand %safe_totals, 1 : tensor<4xf32> -> tensor<4x1xf32>
  %divisors = tile.broadcast %totals_column : tensor<4x1xf32> -> tensor<4x2xf32>
  %shares = tile.ew<div> %sums, %divisors : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
  tile.store %shares, %y[%c0, %c0] : tensor<4x2xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %v: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[4, N], [N, 2], [4, 2]] grid [1] {
// CHECK-NEXT:     %c0 = arith.constant 0 : index
// CHECK-NEXT:     %c3 = arith.constant 3 : index
// CHECK-NEXT:     %n = tile.dim %x, 1 : !tile.view<2, f32, global>
// CHECK-NEXT:     %f0 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %f1 = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:     %first = arith.constant 0xff800000 : f32
// CHECK-NEXT:     %infinite = arith.constant 0xff800000 : f32
// CHECK-NEXT:     %half = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:     %zero = tile.full %f0 : tensor<4xf32>
// CHECK-NEXT:     %one = tile.full %f1 : tensor<4xf32>
// CHECK-NEXT:     %start = tile.full %first : tensor<4xf32>
// CHECK-NEXT:     %nothing = tile.full %infinite : tensor<4xf32>
// CHECK-NEXT:     %clear = tile.full %f0 : tensor<4x2xf32>
// CHECK-NEXT:     %scale = tile.full %half : tensor<4xf32>
// CHECK-NEXT:     %scales = tile.full %half : tensor<4x3xf32>
// CHECK-NEXT:     %0 = arith.constant 0xff800000 : f32
// CHECK-NEXT:     %1 = tile.full %0 : tensor<4xf32>
// CHECK-NEXT:     %none = tile.ew<eq> %start, %nothing : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
// CHECK-NEXT:     %safe = tile.ew<select> %none, %zero, %start : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:     %2 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %3 = tile.full %2 : tensor<4xf32>
// CHECK-NEXT:     %4 = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:     %5 = tile.full %4 : tensor<4xf32>
// CHECK-NEXT:     %6 = arith.constant 11.0903549 : f32
// CHECK-NEXT:     %7 = tile.full %6 : tensor<4xf32>
// CHECK-NEXT:     %sums, %totals, %8, %9 = scf.for %i = %c0 to %n step %c3 iter_args(%acc = %clear, %total = %zero, %limit = %1, %10 = %safe) -> (tensor<4x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:       %s = tile.load %x[%c0, %i] pad -inf : !tile.view<2, f32, global> -> tensor<4x3xf32>
// CHECK-NEXT:       %w = tile.load %v[%i, %c0] : !tile.view<2, f32, global> -> tensor<3x2xf32>
// CHECK-NEXT:       %greatest = tile.reduce<top> %s, 1 : tensor<4x3xf32> -> tensor<4xf32>
// CHECK-NEXT:       %rises = tile.ew<gt> %greatest, %limit : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
// CHECK-NEXT:       %11 = tile.any %rises {tile.by_rows} : tensor<4xi1>
// CHECK-NEXT:       %safe_1, %faded, %alpha, %limit_1 = scf.if %11 -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:         %t = tile.ew<mul> %greatest, %scale : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:         %none_1 = tile.ew<eq> %t, %nothing : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
// CHECK-NEXT:         %safe_2 = tile.ew<select> %none_1, %zero, %t : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:         %12 = tile.ew<sub> %10, %safe_2 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:         %13 = tile.ew<eq> %limit, %1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
// CHECK-NEXT:         %14 = tile.ew<exp> %12 : tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:         %15 = tile.ew<select> %13, %3, %14 : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:         %16 = tile.ew<select> %rises, %15, %5 : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:         %faded_1 = tile.ew<mul> %total, %16 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:         %17 = tile.ew<select> %rises, %safe_2, %10 : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:         %18 = tile.ew<add> %greatest, %7 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:         %19 = tile.ew<eq> %t, %1 : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
// CHECK-NEXT:         %20 = tile.ew<select> %19, %1, %18 : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:         %21 = tile.ew<select> %rises, %20, %limit : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:         scf.yield %17, %faded_1, %16, %21 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:       } else {
// CHECK-NEXT:         scf.yield %10, %total, %5, %limit : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:       }
// CHECK-NEXT:       %scaled = tile.ew<mul> %s, %scales : tensor<4x3xf32>, tensor<4x3xf32> -> tensor<4x3xf32>
// CHECK-NEXT:       %column = tile.expand %safe_1, 1 : tensor<4xf32> -> tensor<4x1xf32>
// CHECK-NEXT:       %base = tile.broadcast %column : tensor<4x1xf32> -> tensor<4x3xf32>
// CHECK-NEXT:       %power = tile.ew<sub> %scaled, %base : tensor<4x3xf32>, tensor<4x3xf32> -> tensor<4x3xf32>
// CHECK-NEXT:       %p = tile.ew<exp> %power : tensor<4x3xf32> -> tensor<4x3xf32>
// CHECK-NEXT:       %sum = tile.reduce<sum> %p, 1 : tensor<4x3xf32> -> tensor<4xf32>
// CHECK-NEXT:       %total_new = tile.ew<add> %faded, %sum : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:       %acc_faded = scf.if %11 -> (tensor<4x2xf32>) {
// CHECK-NEXT:         %alpha_column = tile.expand %alpha, 1 : tensor<4xf32> -> tensor<4x1xf32>
// CHECK-NEXT:         %alphas = tile.broadcast %alpha_column : tensor<4x1xf32> -> tensor<4x2xf32>
// CHECK-NEXT:         %acc_faded_1 = tile.ew<mul> %acc, %alphas : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
// CHECK-NEXT:         scf.yield %acc_faded_1 : tensor<4x2xf32>
// CHECK-NEXT:       } else {
// CHECK-NEXT:         scf.yield %acc : tensor<4x2xf32>
// CHECK-NEXT:       }
// CHECK-NEXT:       %acc_new = tile.dot %p, %w, %acc_faded : tensor<4x3xf32>, tensor<3x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
// CHECK-NEXT:       scf.yield %acc_new, %total_new, %limit_1, %safe_1 : tensor<4x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %empty = tile.ew<eq> %totals, %zero : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
// CHECK-NEXT:     %safe_totals = tile.ew<select> %empty, %one, %totals : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:     %totals_column = tile.expand %safe_totals, 1 : tensor<4xf32> -> tensor<4x1xf32>
// CHECK-NEXT:     %divisors = tile.broadcast %totals_column : tensor<4x1xf32> -> tensor<4x2xf32>
// CHECK-NEXT:     %shares = tile.ew<div> %sums, %divisors : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x2xf32>
// CHECK-NEXT:     tile.store %shares, %y[%c0, %c0] : tensor<4x2xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
