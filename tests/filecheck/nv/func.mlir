// RUN: tessera opt %s | filecheck %s
// A kernel as a block of threads runs it; attributes say what launching it takes besides.
nv.func @nothing() outputs 0 shapes [] grid [] threads 32 {
  nv.return
}
nv.func @"a name with spaces"(%x: !tile.view<0, f32, global>) outputs 1 shapes [[]] grid [1, 2, 3] threads 1024 {
  nv.return
}
nv.func @scalars(%n: index, %f: f32, %b: i1, %y: !tile.view<2, bf16, global>) outputs 1 shapes [[], [], [], ["2*S + 1", 64]] grid ["S//64 + 1", "S*2 + 1"] threads 96 {
  nv.return
}
nv.func @attributed(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid ["(N + 127)//128"] threads 384 attributes {blocks = 1 : i64, cluster = 2 : i64, counters = 8 : i64, group = 8 : i64, row_aligned = array<i64: 0, 1>, persistent = 1 : i64} {
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @nothing() outputs 0 shapes [] grid [] threads 32 {
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   nv.func @"a name with spaces"(%x: !tile.view<0, f32, global>) outputs 1 shapes [[]] grid [1, 2, 3] threads 1024 {
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   nv.func @scalars(%n: index, %f: f32, %b: i1, %y: !tile.view<2, bf16, global>) outputs 1 shapes [[], [], [], ["2*S + 1", 64]] grid ["S//64 + 1", "2*S + 1"] threads 96 {
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   nv.func @attributed(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid ["(N + 127)//128"] threads 384 attributes {blocks = 1 : i64, cluster = 2 : i64, counters = 8 : i64, group = 8 : i64, row_aligned = array<i64: 0, 1>, persistent = 1 : i64} {
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
