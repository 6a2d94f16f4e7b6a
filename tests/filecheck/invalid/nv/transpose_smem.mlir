nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x128xf8E4M3FN, 128>
  %b = nv.alloc : !nv.shared<64x128xf8E4M3FN, 128>
  // expected: transposed is not !nv.shared<64x128xf8E4M3FN, 128>: expected panels of 128 bytes
  nv.transpose_smem %a, %b : !nv.shared<64x128xf8E4M3FN, 128>, !nv.shared<64x128xf8E4M3FN, 128>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf8E4M3FN, 64>
  %b = nv.alloc : !nv.shared<64x64xf8E4M3FN, 64>
  // expected: expected panels of 128 bytes
  nv.transpose_smem %a, %b : !nv.shared<64x64xf8E4M3FN, 64>, !nv.shared<64x64xf8E4M3FN, 64>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<48x64xf8E4M3FN, 128>
  %b = nv.alloc : !nv.shared<64x48xf8E4M3FN, 128>
  // expected: 32·n rows of 16·n columns of 8 bits are transposed, not !nv.shared<48x64xf8E4M3FN, 128>
  nv.transpose_smem %a, %b : !nv.shared<48x64xf8E4M3FN, 128>, !nv.shared<64x48xf8E4M3FN, 128>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  %b = nv.alloc : !nv.shared<64x64xf16, 128>
  // expected: columns of 8 bits are transposed
  nv.transpose_smem %a, %b : !nv.shared<64x64xf16, 128>, !nv.shared<64x64xf16, 128>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf8E4M3FN, 128, paired>
  %b = nv.alloc : !nv.shared<64x64xf8E4M3FN, 128>
  // expected: is an operand of dots: its columns are paired
  nv.transpose_smem %a, %b : !nv.shared<64x64xf8E4M3FN, 128, paired>, !nv.shared<64x64xf8E4M3FN, 128>
  nv.return
}
