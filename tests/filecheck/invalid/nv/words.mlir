nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: expected at least one word, got 0
  %w = nv.words : !nv.words<0>
  nv.return
}
