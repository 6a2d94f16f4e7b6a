tile.func @f() outputs 0 shapes [] grid [] {
  // expected: sites are counted from 0, got -1
  tile.print_record -1 "here" at [] []
  tile.return
}
// -----
tile.func @f() outputs 0 shapes [] grid [] {
  // expected: 0 views for 1 tiles
  tile.print_record 0 "x" at [] [tensor<4xf32>]
  tile.return
}
// -----
tile.func @f() outputs 0 shapes [] grid [] {
  // expected: a record holds tiles, not f32
  %x = tile.print_record 0 "x" at [] [f32] : !tile.view<1, f32, global>
  tile.return
}
// -----
tile.func @f() outputs 0 shapes [] grid [] {
  // expected: the record holds tensor<f32>, the view is !tile.view<0, f32, global>
  %x = tile.print_record 0 "x" at [] [tensor<f32>] : !tile.view<0, f32, global>
  tile.return
}
// -----
tile.func @f() outputs 0 shapes [] grid [] {
  // expected: the record holds tensor<4xf32>, the view is !tile.view<1, bf16, global>
  %x = tile.print_record 0 "x" at [] [tensor<4xf32>] : !tile.view<1, bf16, global>
  tile.return
}
// -----
tile.func @f(%n: i32) outputs 0 shapes [[]] grid [] {
  // expected: operand
  tile.print_record 0 "x" at [%n] []
  tile.return
}
