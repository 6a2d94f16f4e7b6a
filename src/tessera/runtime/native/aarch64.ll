; What the pool needs of the processor, on AArch64; each family has the same functions.

declare void @llvm.aarch64.isb(i32)
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

; One iteration of a loop that waits. A hint to yield does nothing on most of these processors; this takes some tens of cycles.
define internal void @relax() alwaysinline nounwind {
  call void @llvm.aarch64.isb(i32 15)
  ret void
}

; Instructions that another thread wrote may be run from here on: what was fetched before is dropped.
define internal void @trust_new_code() alwaysinline nounwind {
  call void @llvm.aarch64.isb(i32 15)
  ret void
}

; How this thread rounds and what it does with subnormal numbers: FPCR.
define internal i64 @float_mode() alwaysinline nounwind {
  %bits = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %bits
}

; To nearest even, nothing flushed, no traps, NaN as they came.
define internal i1 @is_standard_mode(i64 %mode) alwaysinline nounwind {
  %same = icmp eq i64 %mode, 0
  ret i1 %same
}

define internal void @set_float_mode(i64 %mode) alwaysinline nounwind {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}

define internal void @set_standard_mode() alwaysinline nounwind {
  call void @set_float_mode(i64 0)
  ret void
}

; The system's number of the call futex.
define internal i64 @futex_number() alwaysinline nounwind {
  ret i64 98
}
