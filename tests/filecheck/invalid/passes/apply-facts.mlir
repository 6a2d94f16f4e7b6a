// options: -p apply-facts -f "arg0.size[0] is large"
// expected: cannot read the fact 'arg0.size[0] is large'
builtin.module {}
// -----
// options: -p apply-facts -f "arg0.size[0] = 4" -f "arg0.size[0] = 5"
// expected: contradicting facts about arg0.size[0]: arg0.size[0] = 4, arg0.size[0] = 5
builtin.module {}
// -----
// options: -p apply-facts -f "arg0.size[0] = 4"
// expected: facts are about one function, found 0 that they could be about
builtin.module {}
// -----
// options: -p apply-facts -f "arg0.size[0] = 4"
// expected: facts are about one function, found 2 that they could be about
graph.func @f(%x: !graph.tensor<[S], f32>) {
  graph.return
}
graph.func @g(%x: !graph.tensor<[S], f32>) {
  graph.return
}
// -----
// options: -p "apply-facts{function=h}" -f "arg0.size[0] = 4"
// expected: facts are about one function, found 0 that they could be about
graph.func @f(%x: !graph.tensor<[S], f32>) {
  graph.return
}
// -----
// options: -p apply-facts -f "arg0.dtype = f16"
// expected: the fact arg0.dtype = f16 contradicts the signature of @f
graph.func @f(%x: !graph.tensor<[S], f32>) {
  graph.return
}
// -----
// options: -p apply-facts -f "arg0.rank = 2"
// expected: the fact arg0.rank = 2 contradicts the signature of @f
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  tile.return
}
// -----
// options: -p apply-facts -f "arg0.size[0] = 9"
// expected: the fact arg0.size[0] = 9 contradicts the signature of @f
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[8]] grid [1] {
  tile.return
}
// -----
// options: -p apply-facts -f "arg0.size[0] = 7"
// expected: the fact arg0.size[0] = 7 contradicts the others
graph.func @f(%x: !graph.tensor<["2*S"], f32>) {
  graph.return
}
// -----
// options: -p apply-facts -f "arg0.size[0] = 6" -f "arg1.size[0] = 4"
// expected: contradicts the others
graph.func @f(%x: !graph.tensor<["2*S"], f32>, %y: !graph.tensor<[S], f32>) {
  graph.return
}
// -----
// options: -p apply-facts -f "arg0 = 3"
// expected: the fact arg0 = 3 contradicts the signature of @f
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  tile.return
}
// -----
// options: -p apply-facts -f "arg0 = 2.5"
// expected: arg0: expected a number of i32, got 2.5
tile.func @f(%n: i32) outputs 0 shapes [[]] grid [1] {
  tile.return
}
// -----
// options: -p apply-facts -f "arg0 = 300"
// expected: arg0: expected a number of i8, got 300
tile.func @f(%n: i8) outputs 0 shapes [[]] grid [1] {
  tile.return
}
// -----
// options: -p apply-facts -f "arg0.size[0] = 12" -f "arg1.size[0] = 13"
// expected: the fact arg1.size[0] = 13 contradicts the others
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid [1] {
  tile.return
}
