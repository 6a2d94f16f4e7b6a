// RUN: tessera opt %s | filecheck %s
// A thread's own memory. Rows start on cache lines and are not a large power of two apart, which the type does not show.
cpu.func @f() shapes [] grid [] {
  %a = cpu.buffer : !cpu.buffer<8x16xf32>
  %b = cpu.buffer {reused} : !cpu.buffer<1x3xbf16>
  %c = cpu.buffer : !cpu.buffer<6x80xi8>
  %d = cpu.buffer : !cpu.buffer<0x0xi1>
  %e = cpu.buffer : !cpu.buffer<4x4xui8>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   cpu.func @f() shapes [] grid [] {
// CHECK-NEXT:     %a = cpu.buffer : !cpu.buffer<8x16xf32>
// CHECK-NEXT:     %b = cpu.buffer {reused} : !cpu.buffer<1x3xbf16>
// CHECK-NEXT:     %c = cpu.buffer : !cpu.buffer<6x80xi8>
// CHECK-NEXT:     %d = cpu.buffer : !cpu.buffer<0x0xi1>
// CHECK-NEXT:     %e = cpu.buffer : !cpu.buffer<4x4xui8>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
