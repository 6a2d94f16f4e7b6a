// expected: nv.griddepcontrol_wait stands in an nv.func itself: all blocks wait, whatever they do then
nv.griddepcontrol_wait
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 32 {
  nv.griddepcontrol_wait
  // expected: a kernel waits once for those in front of it
  nv.griddepcontrol_wait
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 32 {
  // expected: cannot read IR
  nv.griddepcontrol_wait 1
  nv.return
}
