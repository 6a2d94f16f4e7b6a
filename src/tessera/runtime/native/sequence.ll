; Several kernels one after the other, as one kernel: what a compiled program runs. Words of the args block:
;   1 the status of the first that failed   2 its number   3 to 7 what it says of that   8 the table   9 and on: values
; The table, as sequence.py packs it, is words that do not change:
;   0 number of launches   1 bytes of the largest args block   then, for each launch:
;   kernel, threads, bytes of scratch, template, bytes of the template, number of fields, fields
; Templates and fields are told by how many bytes after the table's beginning they are.
; A field is three words: an offset in the args block of the launch, in bytes; a word of this block; what is added to it.

%step = type { ptr, i64, i64, i64, i64, i64, i64 }
%field = type { i64, i64, i64 }

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; One args block serves all launches, one after the other: dispatch joins before it returns.
define i64 @sequence(ptr %args, i64 %thread, i64 %threads, ptr %workspace) nounwind "probe-stack"="inline-asm" {
entry:
  %table_at = getelementptr i64, ptr %args, i64 8
  %table = load ptr, ptr %table_at, align 8
  %count = load i64, ptr %table, align 8
  %largest_at = getelementptr i64, ptr %table, i64 1
  %largest = load i64, ptr %largest_at, align 8
  %steps = getelementptr i64, ptr %table, i64 2
  %block = alloca i8, i64 %largest, align 64
  br label %each
each:
  %index = phi i64 [ 0, %entry ], [ %following, %launched ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %prepare, label %done
prepare:
  %kernel_at = getelementptr %step, ptr %steps, i64 %index, i32 0
  %kernel = load ptr, ptr %kernel_at, align 8
  %team_at = getelementptr %step, ptr %steps, i64 %index, i32 1
  %team = load i64, ptr %team_at, align 8
  %scratch_at = getelementptr %step, ptr %steps, i64 %index, i32 2
  %scratch = load i64, ptr %scratch_at, align 8
  %template_at = getelementptr %step, ptr %steps, i64 %index, i32 3
  %template_offset = load i64, ptr %template_at, align 8
  %template = getelementptr i8, ptr %table, i64 %template_offset
  %bytes_at = getelementptr %step, ptr %steps, i64 %index, i32 4
  %bytes = load i64, ptr %bytes_at, align 8
  %fields_count_at = getelementptr %step, ptr %steps, i64 %index, i32 5
  %fields_count = load i64, ptr %fields_count_at, align 8
  %fields_at = getelementptr %step, ptr %steps, i64 %index, i32 6
  %fields_offset = load i64, ptr %fields_at, align 8
  %fields = getelementptr i8, ptr %table, i64 %fields_offset
  call void @llvm.memcpy.p0.p0.i64(ptr align 64 %block, ptr align 8 %template, i64 %bytes, i1 false)
  br label %fill
fill:
  %field_index = phi i64 [ 0, %prepare ], [ %next, %store ]
  %unfilled = icmp slt i64 %field_index, %fields_count
  br i1 %unfilled, label %store, label %launch
store:
  %to_at = getelementptr %field, ptr %fields, i64 %field_index, i32 0
  %to = load i64, ptr %to_at, align 8
  %word_at = getelementptr %field, ptr %fields, i64 %field_index, i32 1
  %word = load i64, ptr %word_at, align 8
  %added_at = getelementptr %field, ptr %fields, i64 %field_index, i32 2
  %added = load i64, ptr %added_at, align 8
  %value_at = getelementptr i64, ptr %args, i64 %word
  %value = load i64, ptr %value_at, align 8
  %sum = add i64 %value, %added
  %target = getelementptr i8, ptr %block, i64 %to
  store i64 %sum, ptr %target, align 8
  %next = add i64 %field_index, 1
  br label %fill
launch:
  %status = call i64 @dispatch(ptr %kernel, ptr %block, i64 %team, i64 %scratch)
  %good = icmp eq i64 %status, 0
  br i1 %good, label %launched, label %failed
launched:
  %following = add i64 %index, 1
  br label %each
failed:
  %status_at = getelementptr i64, ptr %args, i64 1
  store i64 %status, ptr %status_at, align 8
  %number_at = getelementptr i64, ptr %args, i64 2
  store i64 %index, ptr %number_at, align 8
  %details = getelementptr i64, ptr %block, i64 2
  %said_at = getelementptr i64, ptr %args, i64 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %said_at, ptr align 8 %details, i64 40, i1 false)
  br label %done
done:
  ret i64 0
}
