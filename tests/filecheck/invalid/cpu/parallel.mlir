cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: `once` takes the outer index
  cpu.parallel %n, %n once {
    cpu.yield
  } do {
  ^bb0(%o: index, %i: index):
    cpu.yield
  }
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: `once` takes the outer index
  cpu.parallel %n, %n once {
  ^bb0(%o: i32):
    cpu.yield
  } do {
  ^bb0(%o: index, %i: index):
    cpu.yield
  }
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: both regions end with cpu.yield
  cpu.parallel %n, %n once {
  ^bb0(%o: index):
  } do {
  ^bb0(%o: index, %i: index):
    cpu.yield
  }
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: both regions end with cpu.yield
  cpu.parallel %n, %n once {
  ^bb0(%o: index):
    cpu.yield
  } do {
  ^bb0(%o: index, %i: index):
  }
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: `body` yields nothing
  cpu.parallel %n, %n once {
  ^bb0(%o: index):
    cpu.yield
  } do {
  ^bb0(%o: index, %i: index):
    cpu.yield %i : index
  }
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: `body` takes the outer and inner index, and what `once` yields
  cpu.parallel %n, %n once {
  ^bb0(%o: index):
    cpu.yield
  } do {
  ^bb0(%o: index):
    cpu.yield
  }
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: `body` takes the outer and inner index, and what `once` yields
  cpu.parallel %n, %n once {
  ^bb0(%o: index):
    cpu.yield %o : index
  } do {
  ^bb0(%o: index, %i: index):
    cpu.yield
  }
  cpu.return
}
// -----
cpu.func @f(%n: index, %flag: i1) shapes [[], []] grid [1] {
  scf.if %flag {
    // expected: 'cpu.parallel' expects parent op 'cpu.func'
    cpu.parallel %n, %n once {
    ^bb0(%o: index):
      cpu.yield
    } do {
    ^bb0(%o: index, %i: index):
      cpu.yield
    }
  }
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: Expected ','
  cpu.parallel %n once {
  ^bb0(%o: index):
    cpu.yield
  } do {
  ^bb0(%o: index, %i: index):
    cpu.yield
  }
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  cpu.parallel %n, %n once {
  ^bb0(%o: index):
    cpu.yield
  // expected: Expected 'do'
  } else {
  ^bb0(%o: index, %i: index):
    cpu.yield
  }
  cpu.return
}
