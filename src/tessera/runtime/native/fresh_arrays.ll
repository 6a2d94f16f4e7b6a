; Fresh arrays for results (METH_NOARGS), uninitialised and aligned to 64 bytes. `self` is the tuple that
; fresh_arrays.py makes: numpy.ndarray, the shape, the dtype, the number of bytes. The memory is a bytearray, which the
; array keeps alive.

define ptr @fresh(ptr %self, ptr %nothing) nounwind {
entry:
  %array_type = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %shape = call ptr @PyTuple_GetItem(ptr %self, i64 1)
  %dtype = call ptr @PyTuple_GetItem(ptr %self, i64 2)
  %bytes_object = call ptr @PyTuple_GetItem(ptr %self, i64 3)
  %bytes = call i64 @PyLong_AsLongLong(ptr %bytes_object)
  %roomy = add i64 %bytes, 64
  %memory = call ptr @PyByteArray_FromStringAndSize(ptr null, i64 %roomy)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %raise, label %align
align:
  %data = call ptr @PyByteArray_AsString(ptr %memory)
  %address = ptrtoint ptr %data to i64
  %back = sub i64 0, %address
  %distance = and i64 %back, 63
  %offset = call ptr @PyLong_FromLong(i64 %distance)
  %array = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %array_type, ptr %shape, ptr %dtype, ptr %memory,
                                                             ptr %offset, ptr null)
  call void @Py_DecRef(ptr %memory)
  call void @Py_DecRef(ptr %offset)
  ret ptr %array
raise:
  ret ptr null
}
