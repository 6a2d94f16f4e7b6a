; What a call of a GPU's kernel runs on the host, instead of a kernel of the CPU: it finishes the params block that the
; entry of runtime/native/launch.ll has filled in, and hands it to the driver. Words of the args block, as launching.py
; packs them:
;   1 the driver's status   8 cuLaunchKernel   9 function   10 stream   11 blocks   12 threads   13 bytes of shared memory
;   14 number of tensor maps   15 where their table begins, in bytes: for each, its address and its offset in this block
;   16 and on: the params block
;
; A graph takes two such steps instead of launches. `node_on_device` looks whether the params block of a node is what it
; was, and tells the driver where it is not; its word 8 is cuGraphExecKernelNodeSetParams_v2, its word 10 the node's part
; of the graph's state: graph, node, number of words, and that many words, the params block as the driver has it.
; `graph_on_device` replays: 8 cuGraphLaunch   9 the graph's part of the state: the graph   10 stream

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal void @put_maps(ptr %args) nounwind alwaysinline {
entry:
  %count_at = getelementptr i64, ptr %args, i64 14
  %count = load i64, ptr %count_at, align 8
  %table_at = getelementptr i64, ptr %args, i64 15
  %table_offset = load i64, ptr %table_at, align 8
  %table = getelementptr i8, ptr %args, i64 %table_offset
  br label %each
each:
  %index = phi i64 [ 0, %entry ], [ %following, %copy ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %copy, label %done
copy:
  %source_at = getelementptr { ptr, i64 }, ptr %table, i64 %index, i32 0
  %source = load ptr, ptr %source_at, align 8
  %offset_at = getelementptr { ptr, i64 }, ptr %table, i64 %index, i32 1
  %offset = load i64, ptr %offset_at, align 8
  %target = getelementptr i8, ptr %args, i64 %offset
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %target, ptr align 8 %source, i64 128, i1 false)
  %following = add i64 %index, 1
  br label %each
done:
  ret void
}

define i64 @launch_on_device(ptr %args, i64 %thread, i64 %threads, ptr %workspace) nounwind {
  %params_at = alloca ptr, align 8
  call void @put_maps(ptr %args)
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

%node_params = type { ptr, i32, i32, i32, i32, i32, i32, i32, ptr, ptr, ptr, ptr }

define i64 @node_on_device(ptr %args, i64 %thread, i64 %threads, ptr %workspace) nounwind {
entry:
  %params_at = alloca ptr, align 8
  %node_at = alloca %node_params, align 8
  call void @put_maps(ptr %args)
  %params = getelementptr i64, ptr %args, i64 16
  %state_at = getelementptr i64, ptr %args, i64 10
  %state = load ptr, ptr %state_at, align 8
  %count_at = getelementptr i64, ptr %state, i64 2
  %count = load i64, ptr %count_at, align 8
  %known = getelementptr i64, ptr %state, i64 3
  br label %each
each:
  %index = phi i64 [ 0, %entry ], [ %following, %compare ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %compare, label %same
compare:
  %now_at = getelementptr i64, ptr %params, i64 %index
  %now = load i64, ptr %now_at, align 8
  %before_at = getelementptr i64, ptr %known, i64 %index
  %before = load i64, ptr %before_at, align 8
  %following = add i64 %index, 1
  %equal = icmp eq i64 %now, %before
  br i1 %equal, label %each, label %change
same:
  ret i64 0
change:
  store ptr %params, ptr %params_at, align 8
  call void @llvm.memset.p0.i64(ptr align 8 %node_at, i8 0, i64 72, i1 false)
  %function_at = getelementptr i64, ptr %args, i64 9
  %function = load ptr, ptr %function_at, align 8
  store ptr %function, ptr %node_at, align 8
  %blocks_at = getelementptr i64, ptr %args, i64 11
  %blocks = load i32, ptr %blocks_at, align 8
  %x_at = getelementptr %node_params, ptr %node_at, i64 0, i32 1
  store i32 %blocks, ptr %x_at, align 4
  %y_at = getelementptr %node_params, ptr %node_at, i64 0, i32 2
  store i32 1, ptr %y_at, align 4
  %z_at = getelementptr %node_params, ptr %node_at, i64 0, i32 3
  store i32 1, ptr %z_at, align 4
  %size_at = getelementptr i64, ptr %args, i64 12
  %size = load i32, ptr %size_at, align 8
  %threads_x_at = getelementptr %node_params, ptr %node_at, i64 0, i32 4
  store i32 %size, ptr %threads_x_at, align 4
  %threads_y_at = getelementptr %node_params, ptr %node_at, i64 0, i32 5
  store i32 1, ptr %threads_y_at, align 4
  %threads_z_at = getelementptr %node_params, ptr %node_at, i64 0, i32 6
  store i32 1, ptr %threads_z_at, align 4
  %shared_at = getelementptr i64, ptr %args, i64 13
  %shared = load i32, ptr %shared_at, align 8
  %bytes_at = getelementptr %node_params, ptr %node_at, i64 0, i32 7
  store i32 %shared, ptr %bytes_at, align 4
  %list_at = getelementptr %node_params, ptr %node_at, i64 0, i32 8
  store ptr %params_at, ptr %list_at, align 8
  %set_at = getelementptr i64, ptr %args, i64 8
  %set = load ptr, ptr %set_at, align 8
  %graph = load ptr, ptr %state, align 8
  %which_at = getelementptr i64, ptr %state, i64 1
  %which = load ptr, ptr %which_at, align 8
  %status = call i32 %set(ptr %graph, ptr %which, ptr %node_at)
  %wide = zext i32 %status to i64
  %said_at = getelementptr i64, ptr %args, i64 1
  store i64 %wide, ptr %said_at, align 8
  %good = icmp eq i32 %status, 0
  br i1 %good, label %keep, label %done
keep:
  %bytes = shl i64 %count, 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %known, ptr align 8 %params, i64 %bytes, i1 false)
  br label %done
done:
  ret i64 0
}

define i64 @graph_on_device(ptr %args, i64 %thread, i64 %threads, ptr %workspace) nounwind {
  %launch_at = getelementptr i64, ptr %args, i64 8
  %launch = load ptr, ptr %launch_at, align 8
  %state_at = getelementptr i64, ptr %args, i64 9
  %state = load ptr, ptr %state_at, align 8
  %graph = load ptr, ptr %state, align 8
  %stream_at = getelementptr i64, ptr %args, i64 10
  %stream = load ptr, ptr %stream_at, align 8
  %status = call i32 %launch(ptr %graph, ptr %stream)
  %wide = zext i32 %status to i64
  %said_at = getelementptr i64, ptr %args, i64 1
  store i64 %wide, ptr %said_at, align 8
  ret i64 0
}

; How the copy engine sees an array: 8 cuTensorMapEncodeTiled   9 type of elements   10 axes   11 swizzle
; 12 what the cache fetches at once   13 where the map goes   14 the array   15 sizes   20 strides
; 25 the box, and 28 steps within it, two in a word
define i64 @encode_map(ptr %args, i64 %thread, i64 %threads, ptr %workspace) nounwind {
  %encode_at = getelementptr i64, ptr %args, i64 8
  %encode = load ptr, ptr %encode_at, align 8
  %type_at = getelementptr i64, ptr %args, i64 9
  %type = load i32, ptr %type_at, align 8
  %rank_at = getelementptr i64, ptr %args, i64 10
  %rank = load i32, ptr %rank_at, align 8
  %swizzle_at = getelementptr i64, ptr %args, i64 11
  %swizzle = load i32, ptr %swizzle_at, align 8
  %fetched_at = getelementptr i64, ptr %args, i64 12
  %fetched = load i32, ptr %fetched_at, align 8
  %map_at = getelementptr i64, ptr %args, i64 13
  %map = load ptr, ptr %map_at, align 8
  %array_at = getelementptr i64, ptr %args, i64 14
  %array = load ptr, ptr %array_at, align 8
  %sizes = getelementptr i64, ptr %args, i64 15
  %strides = getelementptr i64, ptr %args, i64 20
  %box = getelementptr i64, ptr %args, i64 25
  %steps = getelementptr i64, ptr %args, i64 28
  %status = call i32 %encode(ptr %map, i32 %type, i32 %rank, ptr %array, ptr %sizes, ptr %strides, ptr %box, ptr %steps,
                             i32 0, i32 %swizzle, i32 %fetched, i32 0)
  %wide = zext i32 %status to i64
  %status_at = getelementptr i64, ptr %args, i64 1
  store i64 %wide, ptr %status_at, align 8
  ret i64 0
}
