; A call whose arguments are like those of an earlier one (METH_FASTCALL | METH_KEYWORDS): they are looked at, and passed
; on to what was made then. `self` is the record that earlier_calls.py packs, in words:
;   0 what takes all other calls   1 number of arguments   2 their class   3 where they have what is compared
;   4 a context variable   5 what it has to be   6 what is asked at each call   7 what asks whether an entry still holds
;   8 True   9 number of entries; from 10 on, for each entry:
;   answer of 6, function, what 7 is asked or null, what is done with its result (0 nothing, 1 its first item is taken,
;   2 it is given to a function), that function, then for each argument what it has to have, compared by identity

define internal ptr @asked(ptr %callable, ptr %argument) nounwind alwaysinline {
  %answer = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %callable, ptr %argument, ptr null)
  ret ptr %answer
}

define ptr @match(ptr %self, ptr %values, i64 %count, ptr %names) nounwind {
entry:
  %found_at = alloca ptr, align 8
  %record = call ptr @PyBytes_AsString(ptr %self)
  %lost = icmp eq ptr %record, null
  br i1 %lost, label %raise, label %look
look:
  %wanted_at = getelementptr i64, ptr %record, i64 1
  %wanted = load i64, ptr %wanted_at, align 8
  %fits = icmp eq i64 %count, %wanted
  %nameless = icmp eq ptr %names, null
  %is_plain = and i1 %fits, %nameless
  br i1 %is_plain, label %classes, label %otherwise
classes:
  %class_at = getelementptr ptr, ptr %record, i64 2
  %class = load ptr, ptr %class_at, align 8
  br label %each_class
each_class:
  %value_index = phi i64 [ 0, %classes ], [ %next_value, %is_one ]
  %unseen = icmp slt i64 %value_index, %count
  br i1 %unseen, label %look_at_class, label %ask
look_at_class:
  %one_at = getelementptr ptr, ptr %values, i64 %value_index
  %one = load ptr, ptr %one_at, align 8
  %class_of_one_at = getelementptr ptr, ptr %one, i64 1
  %class_of_one = load ptr, ptr %class_of_one_at, align 8
  %alike = icmp eq ptr %class_of_one, %class
  br i1 %alike, label %is_one, label %otherwise
is_one:
  %next_value = add i64 %value_index, 1
  br label %each_class

ask:
  %variable_at = getelementptr ptr, ptr %record, i64 4
  %variable = load ptr, ptr %variable_at, align 8
  %status = call i32 @PyContextVar_Get(ptr %variable, ptr null, ptr %found_at)
  %refused = icmp slt i32 %status, 0
  br i1 %refused, label %raise, label %answered
answered:
  %found = load ptr, ptr %found_at, align 8
  %valueless = icmp eq ptr %found, null
  br i1 %valueless, label %otherwise, label %compare_variable
compare_variable:
  call void @Py_DecRef(ptr %found)               ; the context, or the variable, holds it
  %expected_at = getelementptr ptr, ptr %record, i64 5
  %expected = load ptr, ptr %expected_at, align 8
  %as_expected = icmp eq ptr %found, %expected
  br i1 %as_expected, label %settle, label %otherwise
settle:
  %question_at = getelementptr ptr, ptr %record, i64 6
  %question = load ptr, ptr %question_at, align 8
  %now = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %question, ptr null)
  %unsettled = icmp eq ptr %now, null
  br i1 %unsettled, label %raise, label %settled
settled:
  call void @Py_DecRef(ptr %now)                 ; entries hold those that are compared with it
  %slot_at = getelementptr i64, ptr %record, i64 3
  %slot = load i64, ptr %slot_at, align 8
  %entries_at = getelementptr i64, ptr %record, i64 9
  %entries = load i64, ptr %entries_at, align 8
  %first = getelementptr ptr, ptr %record, i64 10
  %words = add i64 %count, 5
  br label %each
each:
  %index = phi i64 [ 0, %settled ], [ %following, %differs ]
  %more = icmp slt i64 %index, %entries
  br i1 %more, label %compare_settings, label %otherwise
compare_settings:
  %before = mul i64 %index, %words
  %this = getelementptr ptr, ptr %first, i64 %before
  %settings = load ptr, ptr %this, align 8
  %same_settings = icmp eq ptr %settings, %now
  br i1 %same_settings, label %compare, label %differs
differs:
  %following = add i64 %index, 1
  br label %each
compare:
  %keys = getelementptr ptr, ptr %this, i64 5
  br label %each_key
each_key:
  %number = phi i64 [ 0, %compare ], [ %next_number, %same_key ]
  %left = icmp slt i64 %number, %count
  br i1 %left, label %compare_key, label %matched
compare_key:
  %value_at = getelementptr ptr, ptr %values, i64 %number
  %value = load ptr, ptr %value_at, align 8
  %has_at = getelementptr i8, ptr %value, i64 %slot
  %has = load ptr, ptr %has_at, align 8
  %key_at = getelementptr ptr, ptr %keys, i64 %number
  %key = load ptr, ptr %key_at, align 8
  %same = icmp eq ptr %has, %key
  br i1 %same, label %same_key, label %differs
same_key:
  %next_number = add i64 %number, 1
  br label %each_key

matched:
  %check_at = getelementptr ptr, ptr %this, i64 2
  %check = load ptr, ptr %check_at, align 8
  %unchecked = icmp eq ptr %check, null
  br i1 %unchecked, label %run, label %holds
holds:
  %holds_at = getelementptr ptr, ptr %record, i64 7
  %ask_whether = load ptr, ptr %holds_at, align 8
  %answer = call ptr @asked(ptr %ask_whether, ptr %check)
  %unanswered = icmp eq ptr %answer, null
  br i1 %unanswered, label %raise, label %whether
whether:
  call void @Py_DecRef(ptr %answer)              ; True and False live on
  %true_at = getelementptr ptr, ptr %record, i64 8
  %true = load ptr, ptr %true_at, align 8
  %still = icmp eq ptr %answer, %true
  br i1 %still, label %run, label %otherwise
run:
  %function_at = getelementptr ptr, ptr %this, i64 1
  %function = load ptr, ptr %function_at, align 8
  %results = call ptr @PyObject_Vectorcall(ptr %function, ptr %values, i64 %count, ptr null)
  %failed = icmp eq ptr %results, null
  br i1 %failed, label %raise, label %finish
finish:
  %mode_at = getelementptr i64, ptr %this, i64 3
  %mode = load i64, ptr %mode_at, align 8
  switch i64 %mode, label %whole [ i64 1, label %item
                                   i64 2, label %given ]
whole:
  ret ptr %results
item:
  %only = call ptr @PyTuple_GetItem(ptr %results, i64 0)
  %missing = icmp eq ptr %only, null
  br i1 %missing, label %drop, label %take
take:
  call void @Py_IncRef(ptr %only)
  call void @Py_DecRef(ptr %results)
  ret ptr %only
given:
  %last_at = getelementptr ptr, ptr %this, i64 4
  %last = load ptr, ptr %last_at, align 8
  %made = call ptr @asked(ptr %last, ptr %results)
  call void @Py_DecRef(ptr %results)
  ret ptr %made
drop:
  call void @Py_DecRef(ptr %results)
  br label %raise

otherwise:
  %rest = load ptr, ptr %record, align 8
  %slow = call ptr @PyObject_Vectorcall(ptr %rest, ptr %values, i64 %count, ptr %names)
  ret ptr %slow
raise:
  ret ptr null
}
