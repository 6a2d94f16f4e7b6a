// RUN: tessera opt %s | filecheck %s
// A label alone, or with any number of scalars and tiles.
tile.func @f(%n: index, %h: bf16, %u: ui8) outputs 0 shapes [[], [], []] grid [1] {
  tile.debug_print "here"
  tile.debug_print "there" {k}
  tile.debug_print "n", %n : index
  %x = tile.full %h : tensor<4xbf16>
  %y = tile.full %u : tensor<ui8>
  tile.debug_print "x, y and n", %x, %y, %n {k} : tensor<4xbf16>, tensor<ui8>, index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%n: index, %h: bf16, %u: ui8) outputs 0 shapes [[], [], []] grid [1] {
// CHECK-NEXT:     tile.debug_print "here"
// CHECK-NEXT:     tile.debug_print "there" {k}
// CHECK-NEXT:     tile.debug_print "n", %n : index
// CHECK-NEXT:     %x = tile.full %h : tensor<4xbf16>
// CHECK-NEXT:     %y = tile.full %u : tensor<ui8>
// CHECK-NEXT:     tile.debug_print "x, y and n", %x, %y, %n {k} : tensor<4xbf16>, tensor<ui8>, index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
