nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: panels have 128, 64, 32, 16 bytes, not 48
  %a = nv.alloc : !nv.shared<64x32xbf16, 48>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: a tile in shared memory has rows and columns
  %a = nv.alloc : !nv.shared<64xbf16, 64>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: index is not a Tessera element type
  %a = nv.alloc : !nv.shared<64x32xindex, 64>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: columns are plain or paired, not woven
  %a = nv.alloc : !nv.shared<64x32xf8E4M3FN, 128, woven>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: columns of 8 bits are paired, 16·n of them, not 32 of bf16
  %a = nv.alloc : !nv.shared<64x32xbf16, 64, paired>
  nv.return
}
