// RUN: tessera opt %s | filecheck %s
// c + a·b: rows of a buffer, columns of a packed matrix or of another buffer; the last may be cut short.
cpu.func @f(%row: index, %n: index, %col: index, %live: index, %x: f32) shapes [[], [], [], [], []] grid [1] {
  %a = cpu.buffer : !cpu.buffer<12x64xf32>
  %b = cpu.reserve %n : !cpu.panels<64x48xf32, 16>
  %c = tile.full %x : tensor<6x16xf32>
  %plain = cpu.dot %a[%row], %b[%n, %col], %c : !cpu.buffer<12x64xf32>, !cpu.panels<64x48xf32, 16>, tensor<6x16xf32> -> tensor<6x16xf32>
  %cut = cpu.dot %a[%row], %b[%n, %col], %c depth %live : !cpu.buffer<12x64xf32>, !cpu.panels<64x48xf32, 16>, tensor<6x16xf32> -> tensor<6x16xf32>
  %d = cpu.buffer : !cpu.buffer<80x16xf32>
  %made = cpu.dot %a[%row], %d[%n, %col], %c {k} : !cpu.buffer<12x64xf32>, !cpu.buffer<80x16xf32>, tensor<6x16xf32> -> tensor<6x16xf32>
  cpu.return
}
cpu.func @narrow(%n: index, %x: f32, %i: i32) shapes [[], [], []] grid [1] {
  %a = cpu.buffer : !cpu.buffer<4x8xbf16>
  %b = cpu.reserve %n : !cpu.panels<8x16xbf16, 16>
  %c = tile.full %x : tensor<4x16xf32>
  %s = cpu.dot %a[%n], %b[%n, %n], %c : !cpu.buffer<4x8xbf16>, !cpu.panels<8x16xbf16, 16>, tensor<4x16xf32> -> tensor<4x16xf32>
  %e = cpu.buffer : !cpu.buffer<4x8xi8>
  %g = cpu.buffer : !cpu.buffer<8x16xi8>
  %h = tile.full %i : tensor<4x16xi32>
  %t = cpu.dot %e[%n], %g[%n, %n], %h : !cpu.buffer<4x8xi8>, !cpu.buffer<8x16xi8>, tensor<4x16xi32> -> tensor<4x16xi32>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%row: index, %n: index, %col: index, %live: index, %x: f32) shapes [[], [], [], [], []] grid [1] {
// CHECK-NEXT:     %a = cpu.buffer : !cpu.buffer<12x64xf32>
// CHECK-NEXT:     %b = cpu.reserve %n : !cpu.panels<64x48xf32, 16>
// CHECK-NEXT:     %c = tile.full %x : tensor<6x16xf32>
// CHECK-NEXT:     %plain = cpu.dot %a[%row], %b[%n, %col], %c : !cpu.buffer<12x64xf32>, !cpu.panels<64x48xf32, 16>, tensor<6x16xf32> -> tensor<6x16xf32>
// CHECK-NEXT:     %cut = cpu.dot %a[%row], %b[%n, %col], %c depth %live : !cpu.buffer<12x64xf32>, !cpu.panels<64x48xf32, 16>, tensor<6x16xf32> -> tensor<6x16xf32>
// CHECK-NEXT:     %d = cpu.buffer : !cpu.buffer<80x16xf32>
// CHECK-NEXT:     %made = cpu.dot %a[%row], %d[%n, %col], %c {k} : !cpu.buffer<12x64xf32>, !cpu.buffer<80x16xf32>, tensor<6x16xf32> -> tensor<6x16xf32>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   cpu.func @narrow(%n: index, %x: f32, %i: i32) shapes [[], [], []] grid [1] {
// CHECK-NEXT:     %a = cpu.buffer : !cpu.buffer<4x8xbf16>
// CHECK-NEXT:     %b = cpu.reserve %n : !cpu.panels<8x16xbf16, 16>
// CHECK-NEXT:     %c = tile.full %x : tensor<4x16xf32>
// CHECK-NEXT:     %s = cpu.dot %a[%n], %b[%n, %n], %c : !cpu.buffer<4x8xbf16>, !cpu.panels<8x16xbf16, 16>, tensor<4x16xf32> -> tensor<4x16xf32>
// CHECK-NEXT:     %e = cpu.buffer : !cpu.buffer<4x8xi8>
// CHECK-NEXT:     %g = cpu.buffer : !cpu.buffer<8x16xi8>
// CHECK-NEXT:     %h = tile.full %i : tensor<4x16xi32>
// CHECK-NEXT:     %t = cpu.dot %e[%n], %g[%n, %n], %h : !cpu.buffer<4x8xi8>, !cpu.buffer<8x16xi8>, tensor<4x16xi32> -> tensor<4x16xi32>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
