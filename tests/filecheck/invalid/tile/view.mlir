tile.func @f(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: 1 sizes and 2 strides for a view of rank 1
  %v = tile.view %x offset %n sizes [%n] strides [%n, %n] : !tile.view<1, f32, global> -> !tile.view<1, f32, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: 2 sizes and 2 strides for a view of rank 1
  %v = tile.view %x offset %n sizes [%n, %n] strides [%n, %n] : !tile.view<1, f32, global> -> !tile.view<1, f32, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: a view keeps element and space: !tile.view<1, f32, global> became !tile.view<1, f16, global>
  %v = tile.view %x offset %n sizes [%n] strides [%n] : !tile.view<1, f32, global> -> !tile.view<1, f16, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: a view keeps element and space: !tile.view<1, f32, global> became !tile.view<1, f32, shared>
  %v = tile.view %x offset %n sizes [%n] strides [%n] : !tile.view<1, f32, global> -> !tile.view<1, f32, shared>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %n: i32) outputs 0 shapes [[N], []] grid [1] {
  // expected: operand is used with type index
  %v = tile.view %x offset %n sizes [] strides [] : !tile.view<1, f32, global> -> !tile.view<0, f32, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: operandSegmentSizes
  %v = "tile.view"(%x, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> : (!tile.view<1, f32, global>, index) -> !tile.view<1, f32, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: Expected 'strides'
  %v = tile.view %x offset %n sizes [%n] : !tile.view<1, f32, global> -> !tile.view<1, f32, global>
  tile.return
}
