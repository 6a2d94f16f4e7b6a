; The pool: one caller at a time leads, workers help. Its protocol is told in pool.py; this is that protocol in LLVM's
; text. A line that says only "delay" is where the tests put pauses of random length. What depends on the processor's
; family is in a file of its name.

; Each of these has a pair of cache lines to itself, since processors fetch lines in pairs.
%job = type { i32, i32, ptr, ptr, i64, [96 x i8] }     ; tickets, threads, kernel, args block, bytes of scratch
%join = type { i32, i32, [120 x i8] }                  ; finished, whether the leader sleeps
%crew = type { i32, i32, i32, i32, i64, [104 x i8] }   ; sleepers, alive, wanted threads, key of scratch, spin in ns

@owner = internal global [32 x i32] zeroinitializer, align 128
@job = internal global %job zeroinitializer, align 128
@join = internal global %join zeroinitializer, align 128
@crew = internal global %crew zeroinitializer, align 128

@nothing = internal constant [64 x i8] zeroinitializer, align 64   ; the scratch of kernels that need none
@worker_name = internal constant [15 x i8] c"tessera-worker\00"

declare i64 @syscall(i64, ...)
declare i32 @clock_gettime(i32, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_key_create(ptr, ptr)
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)
declare i32 @prctl(i32, ...)
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

; ---- What Python calls

; Once per process, before anything else; 0, or the error of the C library.
define i32 @prepare() nounwind {
  %key = getelementptr %crew, ptr @crew, i32 0, i32 3
  %result = call i32 @pthread_key_create(ptr %key, ptr @drop_scratch)
  ret i32 %result
}

; How many threads a kernel gets at most, and how long one that waits keeps spinning.
define void @resize(i32 %threads, i64 %spin) nounwind {
  %wanted = getelementptr %crew, ptr @crew, i32 0, i32 2
  %patience = getelementptr %crew, ptr @crew, i32 0, i32 4
  store atomic i64 %spin, ptr %patience monotonic, align 8
  store atomic i32 %threads, ptr %wanted seq_cst, align 4
  ; delay
  ; A worker that is about to sleep must see that the word changed, so a ticket is drawn; a good one is handed in at once.
  %before = atomicrmw sub ptr @job, i32 1 acquire
  %good = icmp sgt i32 %before, 0
  br i1 %good, label %hand_in, label %wake
hand_in:
  call void @finish()
  br label %wake
wake:
  call void @wake(ptr @job, i32 2147483647)
  ret void
}

; How many threads a kernel gets at most: what resize said, or fewer where the system refused to start that many.
define i32 @wanted() nounwind {
  %wanted = getelementptr %crew, ptr @crew, i32 0, i32 2
  %threads = load atomic i32, ptr %wanted monotonic, align 4
  ret i32 %threads
}

; After a fork, in the child: the workers stayed with the parent, and so did the thread that led them.
define void @forget() nounwind {
  %sleepers = getelementptr %crew, ptr @crew, i32 0, i32 0
  %alive = getelementptr %crew, ptr @crew, i32 0, i32 1
  %leader_sleeps = getelementptr %join, ptr @join, i32 0, i32 1
  store atomic i32 0, ptr %sleepers monotonic, align 4
  store atomic i32 0, ptr %alive monotonic, align 4
  store atomic i32 0, ptr %leader_sleeps monotonic, align 4
  store atomic i32 0, ptr @join monotonic, align 4
  store atomic i32 0, ptr @job monotonic, align 4
  store atomic i32 0, ptr @owner seq_cst, align 4
  ret void
}

; Runs a kernel on at most so many threads; the status of the args block, or -12 (no memory) where there is no scratch.
define i64 @dispatch(ptr %kernel, ptr %args, i64 %threads, i64 %bytes) nounwind {
entry:
  ; Rounding and denormals must not depend on what the calling thread was set to: workers have the standard mode.
  %mode = call i64 @float_mode()
  %is_standard = call i1 @is_standard_mode(i64 %mode)
  br i1 %is_standard, label %ready, label %correct
correct:
  call void @set_standard_mode()
  br label %ready
ready:
  %scratch = call ptr @borrow(i64 %bytes)
  %failed = icmp eq ptr %scratch, null
  br i1 %failed, label %restore, label %choose
choose:
  %wanted = call i32 @wanted()
  %most = zext i32 %wanted to i64
  %team = call i64 @llvm.smin.i64(i64 %threads, i64 %most)
  %several = icmp sgt i64 %team, 1
  br i1 %several, label %ask, label %alone
ask:
  %owned = load atomic i32, ptr @owner monotonic, align 4
  %free = icmp eq i32 %owned, 0
  br i1 %free, label %take, label %alone
take:
  %taken = cmpxchg ptr @owner, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %taken, 1
  br i1 %mine, label %leading, label %alone
leading:
  call void @lead(ptr %kernel, ptr %args, i64 %team, i64 %bytes, ptr %scratch)
  ; delay
  store atomic i32 0, ptr @owner release, align 4
  br label %done
alone:
  %ignored = call i64 %kernel(ptr %args, i64 0, i64 1, ptr %scratch)
  br label %done
done:
  call void @give_back(ptr %scratch)
  %word = getelementptr i64, ptr %args, i64 1
  %status = load atomic i64, ptr %word monotonic, align 8
  br label %restore
restore:
  %result = phi i64 [ -12, %ready ], [ %status, %done ]
  br i1 %is_standard, label %return, label %put_back
put_back:
  call void @set_float_mode(i64 %mode)
  br label %return
return:
  ret i64 %result
}

; ---- The leader

define internal void @lead(ptr %kernel, ptr %args, i64 %team, i64 %bytes, ptr %scratch) nounwind {
entry:
  %threads = trunc i64 %team to i32
  %helpers = sub i32 %threads, 1
  %alive_at = getelementptr %crew, ptr @crew, i32 0, i32 1
  %alive = load atomic i32, ptr %alive_at monotonic, align 4
  %enough = icmp sge i32 %alive, %helpers
  br i1 %enough, label %publish, label %hire
hire:
  call void @recruit(i32 %helpers)
  br label %publish
publish:
  %threads_at = getelementptr %job, ptr @job, i32 0, i32 1
  %kernel_at = getelementptr %job, ptr @job, i32 0, i32 2
  %args_at = getelementptr %job, ptr @job, i32 0, i32 3
  %bytes_at = getelementptr %job, ptr @job, i32 0, i32 4
  store i32 %threads, ptr %threads_at, align 4
  store ptr %kernel, ptr %kernel_at, align 8
  store ptr %args, ptr %args_at, align 8
  store i64 %bytes, ptr %bytes_at, align 8
  ; delay
  %opened = atomicrmw xchg ptr @job, i32 %helpers seq_cst
  ; delay
  call void @call_helpers(i32 %helpers, i32 %helpers)
  %ignored = call i64 %kernel(ptr %args, i64 0, i64 %team, ptr %scratch)
  ; delay
  %left = atomicrmw xchg ptr @job, i32 0 acq_rel
  ; delay
  %unclaimed = call i32 @llvm.smax.i32(i32 %left, i32 0)
  %claimed = sub i32 %helpers, %unclaimed
  %none_claimed = icmp eq i32 %claimed, 0
  br i1 %none_claimed, label %return, label %settle
settle:
  %finished = atomicrmw sub ptr @join, i32 %claimed acq_rel
  %all = icmp eq i32 %finished, %claimed
  br i1 %all, label %return, label %wait
wait:
  %patience_at = getelementptr %crew, ptr @crew, i32 0, i32 4
  %patience = load atomic i64, ptr %patience_at monotonic, align 8
  ; Less patient than workers: one who is inside a kernel and late has most likely lost its processor, perhaps to this
  ; very spinning.
  %less = lshr i64 %patience, 2
  %start = call i64 @now()
  %deadline = add i64 %start, %less
  br label %spin
spin:
  %spins = phi i32 [ 0, %wait ], [ %next, %again ], [ 0, %clock ]
  %seen = load atomic i32, ptr @join acquire, align 4
  %over = icmp eq i32 %seen, 0
  br i1 %over, label %return, label %pause
pause:
  call void @relax()
  %next = add i32 %spins, 1
  %many = icmp eq i32 %next, 32
  br i1 %many, label %clock, label %again
again:
  br label %spin
clock:
  %time = call i64 @now()
  %patient = icmp slt i64 %time, %deadline
  br i1 %patient, label %spin, label %tire
tire:
  %sleeps_at = getelementptr %join, ptr @join, i32 0, i32 1
  store atomic i32 1, ptr %sleeps_at seq_cst, align 4
  br label %look
look:
  ; delay
  %still = load atomic i32, ptr @join acquire, align 4
  %ended = icmp eq i32 %still, 0
  br i1 %ended, label %rise, label %sleep
sleep:
  ; delay
  call void @sleep_while(ptr @join, i32 %still)
  br label %look
rise:
  store atomic i32 0, ptr %sleeps_at monotonic, align 4
  br label %return
return:
  ret void
}

; Starts workers until there are enough. They take no signals, so that those reach Python's own threads, except for those
; that their own instructions raise.
define internal void @recruit(i32 %enough) nounwind {
entry:
  %thread = alloca i64, align 8
  %before = alloca [16 x i64], align 16
  %blocked = alloca [16 x i64], align 16
  call void @llvm.memset.p0.i64(ptr align 16 %blocked, i8 -1, i64 128, i1 false)
  ; All but SIGILL 4, SIGTRAP 5, SIGABRT 6, SIGBUS 7, SIGFPE 8, SIGSEGV 11: bits 3 to 7 and 10.
  store i64 -1273, ptr %blocked, align 16
  %masked = call i32 @pthread_sigmask(i32 2, ptr %blocked, ptr %before)
  %alive_at = getelementptr %crew, ptr @crew, i32 0, i32 1
  %wanted_at = getelementptr %crew, ptr @crew, i32 0, i32 2
  br label %count
count:
  %alive = load atomic i32, ptr %alive_at monotonic, align 4
  %done = icmp sge i32 %alive, %enough
  br i1 %done, label %return, label %start
start:
  %counted = atomicrmw add ptr %alive_at, i32 1 monotonic
  %error = call i32 @pthread_create(ptr %thread, ptr null, ptr @work, ptr null)
  %started = icmp eq i32 %error, 0
  br i1 %started, label %let_go, label %refused
let_go:
  %handle = load i64, ptr %thread, align 8
  %detached = call i32 @pthread_detach(i64 %handle)
  br label %count
refused:
  ; As many as there are will do; asking again at every call would cost more than it brings.
  %counted_out = atomicrmw sub ptr %alive_at, i32 1 monotonic
  %wanted = load atomic i32, ptr %wanted_at monotonic, align 4
  %possible = call i32 @llvm.smin.i32(i32 %wanted, i32 %counted_out)
  %lowered = cmpxchg ptr %wanted_at, i32 %wanted, i32 %possible monotonic monotonic
  br label %return
return:
  %restored = call i32 @pthread_sigmask(i32 2, ptr %before, ptr null)
  ret void
}

; ---- A worker

define internal ptr @work(ptr %unused) nounwind {
entry:
  call void @set_standard_mode()
  %named = call i32 (i32, ...) @prctl(i32 15, ptr @worker_name)
  %sleepers_at = getelementptr %crew, ptr @crew, i32 0, i32 0
  %alive_at = getelementptr %crew, ptr @crew, i32 0, i32 1
  %patience_at = getelementptr %crew, ptr @crew, i32 0, i32 4
  %threads_at = getelementptr %job, ptr @job, i32 0, i32 1
  %kernel_at = getelementptr %job, ptr @job, i32 0, i32 2
  %args_at = getelementptr %job, ptr @job, i32 0, i32 3
  %bytes_at = getelementptr %job, ptr @job, i32 0, i32 4
  br label %rest
rest:
  %patience = load atomic i64, ptr %patience_at monotonic, align 8
  %start = call i64 @now()
  %deadline = add i64 %start, %patience
  br label %spin
spin:
  %spins = phi i32 [ 0, %rest ], [ %next, %again ], [ 0, %clock ]
  %seen = load atomic i32, ptr @job monotonic, align 4
  %open = icmp sgt i32 %seen, 0
  br i1 %open, label %draw, label %pause
pause:
  call void @relax()
  br label %tick
tick:
  %next = add i32 %spins, 1
  %many = icmp sge i32 %next, 32
  br i1 %many, label %clock, label %again
again:
  br label %spin
clock:
  %time = call i64 @now()
  %patient = icmp slt i64 %time, %deadline
  br i1 %patient, label %spin, label %doze

draw:
  ; delay
  %before = atomicrmw sub ptr @job, i32 1 acquire
  %good = icmp sgt i32 %before, 0
  br i1 %good, label %help, label %tick
help:
  ; From here until finish the leader cannot return, so the job and its args block stay as they are.
  ; delay
  %threads = load i32, ptr %threads_at, align 4
  %others = icmp sgt i32 %before, 1
  br i1 %others, label %call_others, label %prepare
call_others:
  %helpers = sub i32 %threads, 1
  %tickets = sub i32 %before, 1
  call void @call_helpers(i32 %helpers, i32 %tickets)
  br label %prepare
prepare:
  %kernel = load ptr, ptr %kernel_at, align 8
  %args = load ptr, ptr %args_at, align 8
  %bytes = load i64, ptr %bytes_at, align 8
  %scratch = call ptr @borrow(i64 %bytes)
  ; Without scratch the others do this one's share.
  %failed = icmp eq ptr %scratch, null
  br i1 %failed, label %hand_in, label %run
run:
  call void @trust_new_code()
  %number = sub i32 %threads, %before
  %thread = zext i32 %number to i64
  %team = zext i32 %threads to i64
  %ignored = call i64 %kernel(ptr %args, i64 %thread, i64 %team, ptr %scratch)
  call void @give_back(ptr %scratch)
  br label %hand_in
hand_in:
  ; delay
  call void @finish()
  ; delay
  br label %rest

doze:
  %word = load atomic i32, ptr @job seq_cst, align 4
  %late = icmp sgt i32 %word, 0
  br i1 %late, label %rest, label %review
review:
  %alive = load atomic i32, ptr %alive_at monotonic, align 4
  %wanted = call i32 @wanted()
  %needed = icmp slt i32 %alive, %wanted
  br i1 %needed, label %sleep, label %leave
leave:
  %fewer = sub i32 %alive, 1
  %left = cmpxchg ptr %alive_at, i32 %alive, i32 %fewer monotonic monotonic
  %gone = extractvalue { i32, i1 } %left, 1
  br i1 %gone, label %exit, label %review
sleep:
  %lie_down = atomicrmw add ptr %sleepers_at, i32 1 seq_cst
  ; delay
  call void @sleep_while(ptr @job, i32 %word)
  %get_up = atomicrmw sub ptr %sleepers_at, i32 1 seq_cst
  br label %rest
exit:
  ret ptr null
}

; A ticket is handed in. Only the last one after the leader closed the job brings the count to nought.
define internal void @finish() nounwind {
  %before = atomicrmw add ptr @join, i32 1 seq_cst
  %last = icmp eq i32 %before, -1
  br i1 %last, label %look, label %return
look:
  ; delay
  %sleeps_at = getelementptr %join, ptr @join, i32 0, i32 1
  %sleeps = load atomic i32, ptr %sleeps_at seq_cst, align 4
  %awake = icmp eq i32 %sleeps, 0
  br i1 %awake, label %return, label %wake
wake:
  call void @wake(ptr @join, i32 1)
  br label %return
return:
  ret void
}

; Wakes two where too few are awake for this job. Each of them calls again while there are tickets, so that the leader
; need not wake them all.
define internal void @call_helpers(i32 %helpers, i32 %tickets) nounwind {
  %sleepers_at = getelementptr %crew, ptr @crew, i32 0, i32 0
  %alive_at = getelementptr %crew, ptr @crew, i32 0, i32 1
  %sleepers = load atomic i32, ptr %sleepers_at seq_cst, align 4
  %some = icmp sgt i32 %sleepers, 0
  br i1 %some, label %compare, label %return
compare:
  %alive = load atomic i32, ptr %alive_at monotonic, align 4
  %awake = sub i32 %alive, %sleepers
  %short = icmp slt i32 %awake, %helpers
  br i1 %short, label %wake, label %return
wake:
  %two = call i32 @llvm.smin.i32(i32 %tickets, i32 2)
  call void @wake(ptr @job, i32 %two)
  br label %return
return:
  ret void
}

define internal void @wake(ptr %word, i32 %count) nounwind {
  %futex = call i64 @futex_number()
  %woken = call i64 (i64, ...) @syscall(i64 %futex, ptr %word, i32 129, i32 %count, ptr null, ptr null, i32 0)
  ret void
}

; Sleeps if the word is as it was seen; returns when woken, when it is not, or for no reason at all.
define internal void @sleep_while(ptr %word, i32 %seen) nounwind {
  %futex = call i64 @futex_number()
  %result = call i64 (i64, ...) @syscall(i64 %futex, ptr %word, i32 128, i32 %seen, ptr null, ptr null, i32 0)
  ret void
}

define internal i64 @now() nounwind {
  %time = alloca { i64, i64 }, align 8
  %error = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest_at = getelementptr { i64, i64 }, ptr %time, i32 0, i32 1
  %rest = load i64, ptr %rest_at, align 8
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}

; ---- Scratch memory, one piece per thread, kept between calls

%slab = type { ptr, i64, i64, i64 }   ; the mapping, its length, usable bytes, state: 0 idle, 1 lent, 2 only for one call

; At least so many bytes; null where the system has none. Where this thread's piece is lent already, the call is nested
; in a kernel, and gets a piece that goes away afterwards.
define internal ptr @borrow(i64 %bytes) nounwind {
entry:
  %none = icmp eq i64 %bytes, 0
  br i1 %none, label %empty, label %ask
empty:
  ret ptr @nothing
ask:
  %key_at = getelementptr %crew, ptr @crew, i32 0, i32 3
  %key = load i32, ptr %key_at, align 4
  %piece = call ptr @pthread_getspecific(i32 %key)
  %first = icmp eq ptr %piece, null
  br i1 %first, label %own, label %check
check:
  %size_at = getelementptr %slab, ptr %piece, i32 0, i32 2
  %size = load i64, ptr %size_at, align 8
  %state_at = getelementptr %slab, ptr %piece, i32 0, i32 3
  %state = load i64, ptr %state_at, align 8
  %idle = icmp eq i64 %state, 0
  br i1 %idle, label %measure, label %nested
measure:
  %fits = icmp ule i64 %bytes, %size
  br i1 %fits, label %lend, label %grow
lend:
  store i64 1, ptr %state_at, align 8
  %scratch = getelementptr i8, ptr %piece, i64 64
  ret ptr %scratch
grow:
  ; Doubling, so that slowly growing demands do not map anew each time.
  %twice = shl i64 %size, 1
  %more = call i64 @llvm.umax.i64(i64 %bytes, i64 %twice)
  %forgotten = call i32 @pthread_setspecific(i32 %key, ptr null)
  call void @drop_scratch(ptr %piece)
  br label %own
own:
  %amount = phi i64 [ %bytes, %ask ], [ %more, %grow ]
  %fresh = call ptr @map_piece(i64 %amount, i64 1)
  %missing = icmp eq ptr %fresh, null
  br i1 %missing, label %fail, label %keep
keep:
  %error = call i32 @pthread_setspecific(i32 %key, ptr %fresh)
  %kept = icmp eq i32 %error, 0
  br i1 %kept, label %hand_out, label %discard
discard:
  call void @drop_scratch(ptr %fresh)
  ret ptr null
nested:
  %temporary = call ptr @map_piece(i64 %bytes, i64 2)
  %absent = icmp eq ptr %temporary, null
  br i1 %absent, label %fail, label %hand_out
hand_out:
  %given = phi ptr [ %fresh, %keep ], [ %temporary, %nested ]
  %memory = getelementptr i8, ptr %given, i64 64
  ret ptr %memory
fail:
  ret ptr null
}

define internal void @give_back(ptr %scratch) nounwind {
  %none = icmp eq ptr %scratch, @nothing
  br i1 %none, label %return, label %check
check:
  %piece = getelementptr i8, ptr %scratch, i64 -64
  %state_at = getelementptr %slab, ptr %piece, i32 0, i32 3
  %state = load i64, ptr %state_at, align 8
  %once = icmp eq i64 %state, 2
  br i1 %once, label %drop, label %keep
drop:
  call void @drop_scratch(ptr %piece)
  br label %return
keep:
  store i64 0, ptr %state_at, align 8
  br label %return
return:
  ret void
}

; From 1 MiB on a piece starts on a boundary of 2 MiB and asks for huge pages.
define internal ptr @map_piece(i64 %bytes, i64 %state) nounwind {
entry:
  %absurd = icmp ugt i64 %bytes, 70368744177664
  br i1 %absurd, label %fail, label %size
size:
  %large = icmp uge i64 %bytes, 1048576
  %unit = select i1 %large, i64 2097152, i64 4096
  %mask = sub i64 %unit, 1
  %with_head = add i64 %bytes, 64
  %padded = add i64 %with_head, %mask
  %minus = sub i64 0, %unit
  %room = and i64 %padded, %minus
  %slack = select i1 %large, i64 2097152, i64 0
  %length = add i64 %room, %slack
  %mapping = call ptr @mmap(ptr null, i64 %length, i32 3, i32 34, i32 -1, i64 0)
  %address = ptrtoint ptr %mapping to i64
  %failed = icmp eq i64 %address, -1
  br i1 %failed, label %fail, label %align
align:
  %raised = add i64 %address, %mask
  %aligned = and i64 %raised, %minus
  %piece = inttoptr i64 %aligned to ptr
  br i1 %large, label %advise, label %fill
advise:
  %advised = call i32 @madvise(ptr %piece, i64 %room, i32 14)
  br label %fill
fill:
  %usable = sub i64 %room, 64
  %length_at = getelementptr %slab, ptr %piece, i32 0, i32 1
  %usable_at = getelementptr %slab, ptr %piece, i32 0, i32 2
  %state_at = getelementptr %slab, ptr %piece, i32 0, i32 3
  store ptr %mapping, ptr %piece, align 8
  store i64 %length, ptr %length_at, align 8
  store i64 %usable, ptr %usable_at, align 8
  store i64 %state, ptr %state_at, align 8
  ret ptr %piece
fail:
  ret ptr null
}

; Also what the C library calls for a thread that ends.
define internal void @drop_scratch(ptr %piece) nounwind {
  %mapping = load ptr, ptr %piece, align 8
  %length_at = getelementptr %slab, ptr %piece, i32 0, i32 1
  %length = load i64, ptr %length_at, align 8
  %result = call i32 @munmap(ptr %mapping, i64 %length)
  ret void
}
