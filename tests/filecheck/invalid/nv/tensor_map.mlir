nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
  // expected: 1 axes for !nv.map<64x8xf16, 128>, which has 2
  %m = nv.tensor_map %x <[3]> : !tile.view<4, f16, global> -> !nv.map<64x8xf16, 128>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
  // expected: the view holds f16, the map bf16
  %m = nv.tensor_map %x <[3, 2]> : !tile.view<4, f16, global> -> !nv.map<64x8xbf16, 128>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
  // expected: axis 4 is out of range for rank 4
  %m = nv.tensor_map %x <[4, 2]> : !tile.view<4, f16, global> -> !nv.map<64x8xf16, 128>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
  // expected: steps of at least 1, got 0
  %m = nv.tensor_map %x <[3 inner 0, 2]> : !tile.view<4, f16, global> -> !nv.map<64x8xf16, 128>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
  // expected: a box has 1 to 5 axes of 1 to 256 elements, got [64, 257]
  %m = nv.tensor_map %x <[3, 2]> : !tile.view<4, f16, global> -> !nv.map<64x257xf16, 128>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
  // expected: f80 is not a Tessera element type
  %m = nv.tensor_map %x <[3, 2]> : !tile.view<4, f16, global> -> !nv.map<64x8xf80, 128>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
  // expected: swizzling is over 0, 32, 64, 128 bytes, not over 256
  %m = nv.tensor_map %x <[3, 2]> : !tile.view<4, f16, global> -> !nv.map<64x8xf16, 256>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
  // expected: a box of 128 bytes is wider than the 64 it is swizzled over
  %m = nv.tensor_map %x <[3, 2]> : !tile.view<4, f16, global> -> !nv.map<64x8xf16, 64>
  nv.return
}
