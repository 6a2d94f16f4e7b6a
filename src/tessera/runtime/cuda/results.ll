; Results of a call on a GPU (METH_FASTCALL): a tensor on memory that its stream has used before, made without a line of
; Python. Arguments: the stream, the size of the memory, the tensor's meta, the type of its elements as NumPy has it.
; `self` is the record that results.py packs, in words:
;   0 class of streams   1 where a stream has its lists   2 class of tensors   3 where these have their array   4 dtype
;   5 device   6 buffer   7 meta   8 class of metas   9 where these have their dtype   10 device   11 shape
;   12 class of arrays of devices   13 where these have their address   14 base   15 dtype   16 shape   17 strides
;   18 whether they may be written   19 class of memory   20 the variable that says whether shapes are tracked   21 None
;   22 True   23 what does the same in Python
;
; Memory is an object of two words behind the head: its address as a Python number, and the list that it goes home to.

@free_list = internal global ptr null, align 8
@append = internal constant [7 x i8] c"append\00"
@one_object = internal constant [2 x i8] c"O\00"

; Lists of this class are appended to without asking them how.
define void @introduce_lists(ptr %class) nounwind {
  store ptr %class, ptr @free_list, align 8
  ret void
}

define internal ptr @word(ptr %record, i64 %index) nounwind alwaysinline {
  %at = getelementptr ptr, ptr %record, i64 %index
  %found = load ptr, ptr %at, align 8
  ret ptr %found
}

; A slot of an object, whose offset is a word of the record.
define internal ptr @slot(ptr %object, ptr %record, i64 %index) nounwind alwaysinline {
  %offset_at = getelementptr i64, ptr %record, i64 %index
  %offset = load i64, ptr %offset_at, align 8
  %at = getelementptr i8, ptr %object, i64 %offset
  ret ptr %at
}

define internal void @put(ptr %object, ptr %record, i64 %index, ptr %value) nounwind alwaysinline {
  %at = call ptr @slot(ptr %object, ptr %record, i64 %index)
  call void @Py_IncRef(ptr %value)
  store ptr %value, ptr %at, align 8
  ret void
}

define ptr @result(ptr %self, ptr %values, i64 %count) nounwind "probe-stack"="inline-asm" {
entry:
  %told_at = alloca ptr, align 8
  %record = call ptr @PyBytes_AsString(ptr %self)
  %lost = icmp eq ptr %record, null
  br i1 %lost, label %raise, label %start
start:
  %stream = load ptr, ptr %values, align 8
  %size = call ptr @word(ptr %values, i64 1)
  %meta = call ptr @word(ptr %values, i64 2)
  %storage = call ptr @word(ptr %values, i64 3)
  %stream_class = call ptr @word(ptr %stream, i64 1)
  %wanted_stream = call ptr @word(ptr %record, i64 0)
  %is_stream = icmp eq ptr %stream_class, %wanted_stream
  %meta_class = call ptr @word(ptr %meta, i64 1)
  %wanted_meta = call ptr @word(ptr %record, i64 8)
  %is_meta = icmp eq ptr %meta_class, %wanted_meta
  %are_known = and i1 %is_stream, %is_meta
  br i1 %are_known, label %ask, label %slowly
ask:
  %variable = call ptr @word(ptr %record, i64 20)
  %asked = call i32 @PyContextVar_Get(ptr %variable, ptr null, ptr %told_at)
  %refused = icmp slt i32 %asked, 0
  br i1 %refused, label %raise, label %answered
answered:
  %told = load ptr, ptr %told_at, align 8
  %none = call ptr @word(ptr %record, i64 21)
  call void @Py_DecRef(ptr %told)                ; the setter holds it
  %untracked = icmp eq ptr %told, %none
  br i1 %untracked, label %look, label %slowly
look:
  %lists_at = call ptr @slot(ptr %stream, ptr %record, i64 1)
  %lists = load ptr, ptr %lists_at, align 8
  %list = call ptr @PyDict_GetItem(ptr %lists, ptr %size)
  %no_list = icmp eq ptr %list, null
  br i1 %no_list, label %slowly, label %measure
measure:
  %length = call i64 @PyList_Size(ptr %list)
  %has_some = icmp sgt i64 %length, 0
  br i1 %has_some, label %take, label %slowly

take:
  %last = sub i64 %length, 1
  %pointer = call ptr @PyList_GetItem(ptr %list, i64 %last)
  call void @Py_IncRef(ptr %pointer)
  %cut = call i32 @PyList_SetSlice(ptr %list, i64 %last, i64 %length, ptr null)
  %uncut = icmp slt i32 %cut, 0
  br i1 %uncut, label %drop_pointer, label %hold
drop_pointer:
  call void @Py_DecRef(ptr %pointer)
  br label %raise
hold:
  %memory_class = call ptr @word(ptr %record, i64 19)
  %memory = call ptr @PyType_GenericAlloc(ptr %memory_class, i64 0)
  %no_memory = icmp eq ptr %memory, null
  br i1 %no_memory, label %put_back, label %describe
put_back:
  %back = call i32 @PyList_Append(ptr %list, ptr %pointer)
  br label %drop_pointer
describe:
  ; From here on, who drops the memory sends it home.
  %pointer_at = getelementptr ptr, ptr %memory, i64 2
  store ptr %pointer, ptr %pointer_at, align 8
  %home_at = getelementptr ptr, ptr %memory, i64 3
  call void @Py_IncRef(ptr %list)
  store ptr %list, ptr %home_at, align 8
  %array_class = call ptr @word(ptr %record, i64 12)
  %array = call ptr @PyType_GenericAlloc(ptr %array_class, i64 0)
  %no_array = icmp eq ptr %array, null
  br i1 %no_array, label %drop_memory, label %geometry
drop_memory:
  call void @Py_DecRef(ptr %memory)
  br label %raise
geometry:
  call void @put(ptr %array, ptr %record, i64 13, ptr %pointer)
  %base_at = call ptr @slot(ptr %array, ptr %record, i64 14)
  store ptr %memory, ptr %base_at, align 8       ; taken over
  call void @put(ptr %array, ptr %record, i64 15, ptr %storage)
  %shape_at = call ptr @slot(ptr %meta, ptr %record, i64 11)
  %shape = load ptr, ptr %shape_at, align 8
  call void @put(ptr %array, ptr %record, i64 16, ptr %shape)
  call void @put(ptr %array, ptr %record, i64 17, ptr %none)  ; one after the other
  %true = call ptr @word(ptr %record, i64 22)
  call void @put(ptr %array, ptr %record, i64 18, ptr %true)
  br label %wrap
drop_array:
  call void @Py_DecRef(ptr %array)
  br label %raise
wrap:
  %tensor_class = call ptr @word(ptr %record, i64 2)
  %tensor = call ptr @PyType_GenericAlloc(ptr %tensor_class, i64 0)
  %no_tensor = icmp eq ptr %tensor, null
  br i1 %no_tensor, label %drop_array, label %fill
fill:
  %array_at = call ptr @slot(ptr %tensor, ptr %record, i64 3)
  store ptr %array, ptr %array_at, align 8
  %dtype_at = call ptr @slot(ptr %meta, ptr %record, i64 9)
  %dtype = load ptr, ptr %dtype_at, align 8
  call void @put(ptr %tensor, ptr %record, i64 4, ptr %dtype)
  %device_at = call ptr @slot(ptr %meta, ptr %record, i64 10)
  %device = load ptr, ptr %device_at, align 8
  call void @put(ptr %tensor, ptr %record, i64 5, ptr %device)
  call void @put(ptr %tensor, ptr %record, i64 6, ptr %none)
  call void @put(ptr %tensor, ptr %record, i64 7, ptr %meta)
  ret ptr %tensor

slowly:
  %python = call ptr @word(ptr %record, i64 23)
  %made = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %python, ptr %stream, ptr %size, ptr %meta,
                                                            ptr %storage, ptr null)
  ret ptr %made
raise:
  ret ptr null
}

; This memory is no longer needed. Errors here are not reported to the thread that releases it.
define void @memory_dealloc(ptr %self) nounwind {
entry:
  %type = alloca ptr, align 8
  %value = alloca ptr, align 8
  %trace = alloca ptr, align 8
  %class_at = getelementptr ptr, ptr %self, i64 1
  %class = load ptr, ptr %class_at, align 8
  %pointer_at = getelementptr ptr, ptr %self, i64 2
  %pointer = load ptr, ptr %pointer_at, align 8
  %home_at = getelementptr ptr, ptr %self, i64 3
  %home = load ptr, ptr %home_at, align 8
  %homeless = icmp eq ptr %home, null
  br i1 %homeless, label %free, label %which
which:
  call void @PyErr_Fetch(ptr %type, ptr %value, ptr %trace)
  %home_class_at = getelementptr ptr, ptr %home, i64 1
  %home_class = load ptr, ptr %home_class_at, align 8
  %list_class = load ptr, ptr @free_list, align 8
  %is_list = icmp eq ptr %home_class, %list_class
  br i1 %is_list, label %append_to_list, label %ask
append_to_list:
  %status = call i32 @PyList_Append(ptr %home, ptr %pointer)
  %bad_status = icmp slt i32 %status, 0
  br i1 %bad_status, label %tell, label %home_again
ask:
  %answer = call ptr (ptr, ptr, ptr, ...) @PyObject_CallMethod(ptr %home, ptr @append, ptr @one_object, ptr %pointer)
  %no_answer = icmp eq ptr %answer, null
  br i1 %no_answer, label %tell, label %drop_answer
drop_answer:
  call void @Py_DecRef(ptr %answer)
  br label %home_again
tell:
  call void @PyErr_WriteUnraisable(ptr %home)
  br label %home_again
home_again:
  %type_before = load ptr, ptr %type, align 8
  %value_before = load ptr, ptr %value, align 8
  %trace_before = load ptr, ptr %trace, align 8
  call void @PyErr_Restore(ptr %type_before, ptr %value_before, ptr %trace_before)
  call void @Py_DecRef(ptr %home)
  br label %free
free:
  call void @Py_DecRef(ptr %pointer)
  call void @PyObject_Free(ptr %self)
  call void @Py_DecRef(ptr %class)
  ret void
}
