nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  // expected: whole warps meet at a barrier, at most 1024 threads, not 100
  nv.barrier_arrive %i, 100
  nv.return
}
