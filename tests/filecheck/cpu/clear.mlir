// RUN: tessera opt %s | filecheck %s
cpu.func @f() shapes [] grid [] {
  %a = cpu.buffer : !cpu.buffer<16x24xbf16>
  cpu.clear %a : !cpu.buffer<16x24xbf16>
  cpu.clear %a {again} : !cpu.buffer<16x24xbf16>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   cpu.func @f() shapes [] grid [] {
// CHECK-NEXT:     %a = cpu.buffer : !cpu.buffer<16x24xbf16>
// CHECK-NEXT:     cpu.clear %a : !cpu.buffer<16x24xbf16>
// CHECK-NEXT:     cpu.clear %a {again} : !cpu.buffer<16x24xbf16>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
