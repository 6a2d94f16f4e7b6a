; The entry that Python calls, one for all kernels (METH_FASTCALL). `self` is the record that launch.py packs:
;   0 kernel   8 threads   16 bytes of scratch   24 number of arguments   32 bytes of the args block   40 number of pairs
;   48 per argument: its kind (i32) and its offset in the args block, in bytes (i32); then the template of that block;
;   then per pair of arrays that must not overlap: their offsets (i32, i32), and the distances, in bytes, between which
;   the second one's address minus the first one's would lie if they did (i64, i64)

%record = type { ptr, i64, i64, i64, i64, i64, [0 x { i32, i32 }] }
%pair = type { i32, i32, i64, i64 }

; ndarray, NumPy's bool, True, False, TypeError, the class of arrays of devices, and where these have their address
@types = internal global [7 x ptr] zeroinitializer, align 8
@says_count = internal constant [40 x i8] c"the kernel takes %zd arguments, got %zd\00"
@says_array = internal constant [54 x i8] c"argument %zd of the kernel: expected an array, got %R\00"
@says_bool = internal constant [52 x i8] c"argument %zd of the kernel: expected a bool, got %R\00"
@seven_numbers = internal constant [10 x i8] c"(LLLLLLL)\00"

; The objects that arguments are compared with; they live as long as the interpreter.
define void @introduce(ptr %array, ptr %numpy_bool, ptr %true, ptr %false, ptr %type_error,
                       ptr %device_array, ptr %address_at) nounwind {
  store ptr %array, ptr @types, align 8
  %second = getelementptr ptr, ptr @types, i64 1
  store ptr %numpy_bool, ptr %second, align 8
  %third = getelementptr ptr, ptr @types, i64 2
  store ptr %true, ptr %third, align 8
  %fourth = getelementptr ptr, ptr @types, i64 3
  store ptr %false, ptr %fourth, align 8
  %fifth = getelementptr ptr, ptr @types, i64 4
  store ptr %type_error, ptr %fifth, align 8
  %sixth = getelementptr ptr, ptr @types, i64 5
  store ptr %device_array, ptr %sixth, align 8
  %seventh = getelementptr ptr, ptr @types, i64 6
  store ptr %address_at, ptr %seventh, align 8
  ret void
}

; The args block is on the stack: the join in dispatch is what makes that right.
define ptr @launch(ptr %self, ptr %values, i64 %count) nounwind "probe-stack"="inline-asm" {
entry:
  %record = call ptr @PyBytes_AsString(ptr %self)
  %lost = icmp eq ptr %record, null
  br i1 %lost, label %raise, label %check
check:
  %takes_at = getelementptr %record, ptr %record, i64 0, i32 3
  %takes = load i64, ptr %takes_at, align 8
  %fits = icmp eq i64 %count, %takes
  br i1 %fits, label %copy, label %wrong_count
copy:
  %size_at = getelementptr %record, ptr %record, i64 0, i32 4
  %size = load i64, ptr %size_at, align 8
  %args = alloca i8, i64 %size, align 64
  %template = getelementptr %record, ptr %record, i64 0, i32 6, i64 %takes
  call void @llvm.memcpy.p0.p0.i64(ptr align 64 %args, ptr align 8 %template, i64 %size, i1 false)
  br label %each
each:
  %index = phi i64 [ 0, %copy ], [ %following, %stored ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %convert, label %go
convert:
  %kind_at = getelementptr %record, ptr %record, i64 0, i32 6, i64 %index
  %kind = load i32, ptr %kind_at, align 8
  %offset_at = getelementptr %record, ptr %record, i64 0, i32 6, i64 %index, i32 1
  %offset = load i32, ptr %offset_at, align 4
  %distance = zext i32 %offset to i64
  %slot = getelementptr i8, ptr %args, i64 %distance
  %value_at = getelementptr ptr, ptr %values, i64 %index
  %value = load ptr, ptr %value_at, align 8
  %type_at = getelementptr i8, ptr %value, i64 8
  switch i32 %kind, label %array [ i32 1, label %integer
                                   i32 2, label %single
                                   i32 3, label %double
                                   i32 4, label %bool ]
stored:
  %following = add i64 %index, 1
  br label %each

array:
  %array_type = load ptr, ptr @types, align 8
  %type = load ptr, ptr %type_at, align 8
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %point, label %ask_device
ask_device:
  %device_array_at = getelementptr ptr, ptr @types, i64 5
  %device_array = load ptr, ptr %device_array_at, align 8
  %is_on_device = icmp eq ptr %type, %device_array
  br i1 %is_on_device, label %point_to_device, label %ask_type
point_to_device:
  %address_slot_at = getelementptr ptr, ptr @types, i64 6
  %address_slot = load i64, ptr %address_slot_at, align 8
  %address_at = getelementptr i8, ptr %value, i64 %address_slot
  %address = load ptr, ptr %address_at, align 8
  %far = call ptr @PyLong_AsVoidPtr(ptr %address)
  store ptr %far, ptr %slot, align 8
  br label %stored
ask_type:
  %derived = call i32 @PyType_IsSubtype(ptr %type, ptr %array_type)
  %no_array = icmp eq i32 %derived, 0
  br i1 %no_array, label %wrong_array, label %point
point:
  %data_at = getelementptr i8, ptr %value, i64 16
  %data = load ptr, ptr %data_at, align 8
  store ptr %data, ptr %slot, align 8
  br label %stored

integer:
  %number = call i64 @PyLong_AsLongLong(ptr %value)
  store i64 %number, ptr %slot, align 8
  %suspect_number = icmp eq i64 %number, -1
  br i1 %suspect_number, label %ask_error, label %stored
double:
  %real = call double @PyFloat_AsDouble(ptr %value)
  store double %real, ptr %slot, align 8
  %suspect_real = fcmp oeq double %real, -1.0
  br i1 %suspect_real, label %ask_error, label %stored
single:
  %wide = call double @PyFloat_AsDouble(ptr %value)
  %narrow = fptrunc double %wide to float
  store float %narrow, ptr %slot, align 8
  %suspect_wide = fcmp oeq double %wide, -1.0
  br i1 %suspect_wide, label %ask_error, label %stored
ask_error:
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %stored, label %raise

bool:
  %true_at = getelementptr ptr, ptr @types, i64 2
  %true = load ptr, ptr %true_at, align 8
  %is_true = icmp eq ptr %value, %true
  br i1 %is_true, label %flag, label %perhaps_false
perhaps_false:
  %false_at = getelementptr ptr, ptr @types, i64 3
  %false = load ptr, ptr %false_at, align 8
  %is_false = icmp eq ptr %value, %false
  br i1 %is_false, label %flag, label %perhaps_numpy
perhaps_numpy:
  %numpy_bool_at = getelementptr ptr, ptr @types, i64 1
  %numpy_bool = load ptr, ptr %numpy_bool_at, align 8
  %bool_type = load ptr, ptr %type_at, align 8
  %is_numpy = icmp eq ptr %bool_type, %numpy_bool
  br i1 %is_numpy, label %ask_truth, label %wrong_bool
ask_truth:
  %truth = call i32 @PyObject_IsTrue(ptr %value)
  %is_truth = icmp sgt i32 %truth, 0
  br label %flag
flag:
  %set = phi i1 [ true, %bool ], [ false, %perhaps_false ], [ %is_truth, %ask_truth ]
  %bit = zext i1 %set to i64
  store i64 %bit, ptr %slot, align 8
  br label %stored

go:
  %pairs_at = getelementptr %record, ptr %record, i64 0, i32 5
  %pairs = load i64, ptr %pairs_at, align 8
  %pair_table = getelementptr i8, ptr %template, i64 %size
  br label %compare
compare:
  %pair_index = phi i64 [ 0, %go ], [ %next_pair, %apart ]
  %pairs_left = icmp slt i64 %pair_index, %pairs
  br i1 %pairs_left, label %distance_of, label %run
distance_of:
  %pair = getelementptr %pair, ptr %pair_table, i64 %pair_index
  %first_offset = load i32, ptr %pair, align 8
  %second_offset_at = getelementptr %pair, ptr %pair, i64 0, i32 1
  %second_offset = load i32, ptr %second_offset_at, align 4
  %least_at = getelementptr %pair, ptr %pair, i64 0, i32 2
  %least = load i64, ptr %least_at, align 8
  %most_at = getelementptr %pair, ptr %pair, i64 0, i32 3
  %most = load i64, ptr %most_at, align 8
  %first_slot = getelementptr i8, ptr %args, i32 %first_offset
  %second_slot = getelementptr i8, ptr %args, i32 %second_offset
  %first_address = load i64, ptr %first_slot, align 8
  %second_address = load i64, ptr %second_slot, align 8
  %between = sub i64 %second_address, %first_address
  %above = icmp sgt i64 %between, %least
  %below = icmp slt i64 %between, %most
  %overlap = and i1 %above, %below
  %next_pair = add i64 %pair_index, 1
  br i1 %overlap, label %overlapping, label %apart
apart:
  br label %compare
overlapping:
  %status_of_overlap = call ptr @PyLong_FromLong(i64 -35)
  ret ptr %status_of_overlap
run:
  %kernel = load ptr, ptr %record, align 8
  %threads_at = getelementptr %record, ptr %record, i64 0, i32 1
  %threads = load i64, ptr %threads_at, align 8
  %bytes_at = getelementptr %record, ptr %record, i64 0, i32 2
  %bytes = load i64, ptr %bytes_at, align 8
  %state = call ptr @PyEval_SaveThread()
  %status = call i64 @dispatch(ptr %kernel, ptr %args, i64 %threads, i64 %bytes)
  call void @PyEval_RestoreThread(ptr %state)
  %good = icmp eq i64 %status, 0
  br i1 %good, label %success, label %failure
success:
  %nought = call ptr @PyLong_FromLong(i64 0)
  ret ptr %nought
failure:
  %starved = icmp eq i64 %status, -12
  br i1 %starved, label %no_memory, label %report
report:
  %at_2 = getelementptr i64, ptr %args, i64 2
  %at_3 = getelementptr i64, ptr %args, i64 3
  %at_4 = getelementptr i64, ptr %args, i64 4
  %at_5 = getelementptr i64, ptr %args, i64 5
  %at_6 = getelementptr i64, ptr %args, i64 6
  %at_7 = getelementptr i64, ptr %args, i64 7
  %word_2 = load i64, ptr %at_2, align 8
  %word_3 = load i64, ptr %at_3, align 8
  %word_4 = load i64, ptr %at_4, align 8
  %word_5 = load i64, ptr %at_5, align 8
  %word_6 = load i64, ptr %at_6, align 8
  %word_7 = load i64, ptr %at_7, align 8
  %tuple = call ptr (ptr, ...) @Py_BuildValue(ptr @seven_numbers, i64 %status, i64 %word_2, i64 %word_3, i64 %word_4,
                                              i64 %word_5, i64 %word_6, i64 %word_7)
  ret ptr %tuple
no_memory:
  %null = call ptr @PyErr_NoMemory()
  ret ptr %null

wrong_count:
  %type_error_at = getelementptr ptr, ptr @types, i64 4
  %type_error = load ptr, ptr %type_error_at, align 8
  %counted = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %type_error, ptr @says_count, i64 %takes, i64 %count)
  ret ptr null
wrong_array:
  br label %wrong
wrong_bool:
  br label %wrong
wrong:
  %message = phi ptr [ @says_array, %wrong_array ], [ @says_bool, %wrong_bool ]
  %wrong_type_at = getelementptr ptr, ptr @types, i64 4
  %wrong_type = load ptr, ptr %wrong_type_at, align 8
  %got = load ptr, ptr %type_at, align 8
  %said = call ptr (ptr, ptr, ...) @PyErr_Format(ptr %wrong_type, ptr %message, i64 %index, ptr %got)
  ret ptr null
raise:
  ret ptr null
}
