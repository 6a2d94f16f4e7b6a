; What the pool needs of the processor, on x86-64; each family has the same functions.

declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

; One iteration of a loop that waits.
define internal void @relax() alwaysinline nounwind {
  call void @llvm.x86.sse2.pause()
  ret void
}

; Instructions that another thread wrote may be run from here on: on this processor, always.
define internal void @trust_new_code() alwaysinline nounwind {
  ret void
}

; How this thread rounds and what it does with subnormal numbers: MXCSR, with the exceptions that were raised.
define internal i64 @float_mode() alwaysinline nounwind {
  %register = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %register)
  %bits = load i32, ptr %register, align 4
  %wide = zext i32 %bits to i64
  ret i64 %wide
}

; To nearest even, nothing flushed, no traps.
define internal i1 @is_standard_mode(i64 %mode) alwaysinline nounwind {
  %control = and i64 %mode, 65472
  %same = icmp eq i64 %control, 8064
  ret i1 %same
}

define internal void @set_float_mode(i64 %mode) alwaysinline nounwind {
  %register = alloca i32, align 4
  %bits = trunc i64 %mode to i32
  store i32 %bits, ptr %register, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %register)
  ret void
}

define internal void @set_standard_mode() alwaysinline nounwind {
  call void @set_float_mode(i64 8064)
  ret void
}

; The system's number of the call futex.
define internal i64 @futex_number() alwaysinline nounwind {
  ret i64 202
}
