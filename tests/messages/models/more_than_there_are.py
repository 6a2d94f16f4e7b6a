import tessera as ts

ts.random.choice(ts.random.key(0), 10, (12,), replace=False)
