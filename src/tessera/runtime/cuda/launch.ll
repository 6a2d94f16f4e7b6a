; What a call of a GPU's kernel runs on the host, in place of a kernel of the CPU: it finishes the params block that the
; entry of targets/cpu/launch.ll has filled in, and hands it to the driver. Words of the args block, as launching.py
; packs them:
;   1 the driver's status   8 cuLaunchKernel   9 function   10 stream   11 blocks   12 threads   13 bytes of shared memory
;   14 number of tensor maps   15 where their table begins, in bytes: for each, its address and its place in this block
;   16 and on: the params block

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define i64 @launch_on_device(ptr %args, i64 %thread, i64 %threads, ptr %workspace) nounwind {
entry:
  %params_at = alloca ptr, align 8
  %count_at = getelementptr i64, ptr %args, i64 14
  %count = load i64, ptr %count_at, align 8
  %table_at = getelementptr i64, ptr %args, i64 15
  %table_offset = load i64, ptr %table_at, align 8
  %table = getelementptr i8, ptr %args, i64 %table_offset
  br label %each
each:
  %index = phi i64 [ 0, %entry ], [ %following, %copy ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %copy, label %go
copy:
  %source_at = getelementptr { ptr, i64 }, ptr %table, i64 %index, i32 0
  %source = load ptr, ptr %source_at, align 8
  %place_at = getelementptr { ptr, i64 }, ptr %table, i64 %index, i32 1
  %place = load i64, ptr %place_at, align 8
  %target = getelementptr i8, ptr %args, i64 %place
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %target, ptr align 8 %source, i64 128, i1 false)
  %following = add i64 %index, 1
  br label %each
go:
  %params = getelementptr i64, ptr %args, i64 16
  store ptr %params, ptr %params_at, align 8
  %launch_at = getelementptr i64, ptr %args, i64 8
  %launch = load ptr, ptr %launch_at, align 8
  %function_at = getelementptr i64, ptr %args, i64 9
  %function = load ptr, ptr %function_at, align 8
  %stream_at = getelementptr i64, ptr %args, i64 10
  %stream = load ptr, ptr %stream_at, align 8
  %blocks_at = getelementptr i64, ptr %args, i64 11
  %blocks = load i32, ptr %blocks_at, align 8
  %size_at = getelementptr i64, ptr %args, i64 12
  %size = load i32, ptr %size_at, align 8
  %shared_at = getelementptr i64, ptr %args, i64 13
  %shared = load i32, ptr %shared_at, align 8
  %status = call i32 %launch(ptr %function, i32 %blocks, i32 1, i32 1, i32 %size, i32 1, i32 1, i32 %shared,
                             ptr %stream, ptr %params_at, ptr null)
  %wide = zext i32 %status to i64
  %status_at = getelementptr i64, ptr %args, i64 1
  store i64 %wide, ptr %status_at, align 8
  ret i64 0
}
