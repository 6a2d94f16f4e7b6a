// RUN: tessera opt %s | filecheck %s
// A tile of 8 bits, transposed into another place: its columns as they were, or in pairs.
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x128xf8E4M3FN, 128>
  %b = nv.alloc : !nv.shared<128x64xf8E4M3FN, 128, paired>
  %c = nv.alloc : !nv.shared<128x64xf8E4M3FN, 128>
  nv.transpose_smem %a, %b : !nv.shared<64x128xf8E4M3FN, 128>, !nv.shared<128x64xf8E4M3FN, 128, paired>
  nv.transpose_smem %a, %c {k} : !nv.shared<64x128xf8E4M3FN, 128>, !nv.shared<128x64xf8E4M3FN, 128>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.alloc : !nv.shared<64x128xf8E4M3FN, 128>
// CHECK-NEXT:     %b = nv.alloc : !nv.shared<128x64xf8E4M3FN, 128, paired>
// CHECK-NEXT:     %c = nv.alloc : !nv.shared<128x64xf8E4M3FN, 128>
// CHECK-NEXT:     nv.transpose_smem %a, %b : !nv.shared<64x128xf8E4M3FN, 128>, !nv.shared<128x64xf8E4M3FN, 128, paired>
// CHECK-NEXT:     nv.transpose_smem %a, %c {k} : !nv.shared<64x128xf8E4M3FN, 128>, !nv.shared<128x64xf8E4M3FN, 128>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
