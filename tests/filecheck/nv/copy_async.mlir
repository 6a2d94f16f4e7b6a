// RUN: tessera opt %s | filecheck %s
// A tile of a view into shared memory; turned, its columns become rows. What is known of it saves tests.
nv.func @f(%x: !tile.view<2, bf16, global>, %y: !tile.view<4, bf16, global>, %i: index) outputs 0 shapes [[M, N], [A, B, C, D], []] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x32xbf16, 64>
  nv.copy_async %x[%i, %i], %a : !tile.view<2, bf16, global>, !nv.shared<64x32xbf16, 64>
  nv.copy_async %y[%i, %i, %i, %i], %a transposed {aligned} : !tile.view<4, bf16, global>, !nv.shared<64x32xbf16, 64>
  nv.copy_async %x[%i, %i], %a {aligned, inside} : !tile.view<2, bf16, global>, !nv.shared<64x32xbf16, 64>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<2, bf16, global>, %y: !tile.view<4, bf16, global>, %i: index) outputs 0 shapes [[M, N], [A, B, C, D], []] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.alloc : !nv.shared<64x32xbf16, 64>
// CHECK-NEXT:     nv.copy_async %x[%i, %i], %a : !tile.view<2, bf16, global>, !nv.shared<64x32xbf16, 64>
// CHECK-NEXT:     nv.copy_async %y[%i, %i, %i, %i], %a transposed {aligned} : !tile.view<4, bf16, global>, !nv.shared<64x32xbf16, 64>
// CHECK-NEXT:     nv.copy_async %x[%i, %i], %a {aligned, inside} : !tile.view<2, bf16, global>, !nv.shared<64x32xbf16, 64>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
