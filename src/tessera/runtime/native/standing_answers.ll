; An answer that holds while nothing has changed (METH_NOARGS). `self` is the bytearray that standing_answers.py packs, in:
; words:
;   0 what is asked where something has   1 the answer   2 where a word is   3 what it was   4 a list   5 its first item
;   6 number of context variables   7 and on: for each, the variable and its value
; Objects are compared by identity; the writer of the words holds those that are in them.

define ptr @unchanged(ptr %self, ptr %nothing) nounwind {
entry:
  %found_at = alloca ptr, align 8
  %words = call ptr @PyByteArray_AsString(ptr %self)
  %word_at_at = getelementptr ptr, ptr %words, i64 2
  %word_at = load ptr, ptr %word_at_at, align 8
  %word = load i64, ptr %word_at, align 8
  %word_before_at = getelementptr i64, ptr %words, i64 3
  %word_before = load i64, ptr %word_before_at, align 8
  %same_word = icmp eq i64 %word, %word_before
  br i1 %same_word, label %look, label %changed
look:
  %list_at = getelementptr ptr, ptr %words, i64 4
  %list = load ptr, ptr %list_at, align 8
  %item = call ptr @PyList_GetItem(ptr %list, i64 0)
  %item_before_at = getelementptr ptr, ptr %words, i64 5
  %item_before = load ptr, ptr %item_before_at, align 8
  %same_item = icmp eq ptr %item, %item_before
  br i1 %same_item, label %count_them, label %changed
count_them:
  %count_at = getelementptr i64, ptr %words, i64 6
  %count = load i64, ptr %count_at, align 8
  %pairs = getelementptr ptr, ptr %words, i64 7
  br label %each
each:
  %index = phi i64 [ 0, %count_them ], [ %following, %compare ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %ask, label %same
ask:
  %variable_at = getelementptr { ptr, ptr }, ptr %pairs, i64 %index, i32 0
  %variable = load ptr, ptr %variable_at, align 8
  %asked = call i32 @PyContextVar_Get(ptr %variable, ptr null, ptr %found_at)
  %refused = icmp slt i32 %asked, 0
  br i1 %refused, label %raise, label %answered
answered:
  %found = load ptr, ptr %found_at, align 8
  %lost = icmp eq ptr %found, null               ; it has neither a value nor a default
  br i1 %lost, label %changed, label %compare
compare:
  call void @Py_DecRef(ptr %found)               ; the context, or the variable, holds it
  %before_at = getelementptr { ptr, ptr }, ptr %pairs, i64 %index, i32 1
  %before = load ptr, ptr %before_at, align 8
  %following = add i64 %index, 1
  %equal = icmp eq ptr %found, %before
  br i1 %equal, label %each, label %changed
same:
  %answer_at = getelementptr ptr, ptr %words, i64 1
  %answer = load ptr, ptr %answer_at, align 8
  call void @Py_IncRef(ptr %answer)
  ret ptr %answer
changed:
  %otherwise = load ptr, ptr %words, align 8
  %anew = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %otherwise, ptr null)
  ret ptr %anew
raise:
  ret ptr null
}
