; Whether words of memory are what they were (METH_NOARGS). `self` is the record that same_words.py packs, in words:
;   0 True   1 False   2 number of words   from 3 on, for each: where it is, and what it was

define ptr @same_words(ptr %self, ptr %nothing) nounwind {
entry:
  %record = call ptr @PyBytes_AsString(ptr %self)
  %count_at = getelementptr i64, ptr %record, i64 2
  %count = load i64, ptr %count_at, align 8
  %pairs = getelementptr i64, ptr %record, i64 3
  br label %each
each:
  %index = phi i64 [ 0, %entry ], [ %following, %compare ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %compare, label %same
compare:
  %word_at_at = getelementptr { ptr, i64 }, ptr %pairs, i64 %index, i32 0
  %word_at = load ptr, ptr %word_at_at, align 8
  %word = load i64, ptr %word_at, align 8
  %before_at = getelementptr { ptr, i64 }, ptr %pairs, i64 %index, i32 1
  %before = load i64, ptr %before_at, align 8
  %following = add i64 %index, 1
  %equal = icmp eq i64 %word, %before
  br i1 %equal, label %each, label %different
same:
  %true = load ptr, ptr %record, align 8
  call void @Py_IncRef(ptr %true)
  ret ptr %true
different:
  %false_at = getelementptr ptr, ptr %record, i64 1
  %false = load ptr, ptr %false_at, align 8
  call void @Py_IncRef(ptr %false)
  ret ptr %false
}
