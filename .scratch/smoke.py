import sys, time, traceback; sys.path.insert(0,'tests/kernels')
import numpy as np, library as L, tessera as ts
from tessera import knobs
r=np.random.default_rng(0)
def run(name,k,*args,tol=2e-2,inplace=None,**kw):
    try:
        h=[a for a in args]
        with knobs.interpret.using(True):
            hargs=[ts.asarray(np.array(a.numpy(),copy=True),a.dtype) if isinstance(a,ts.Tensor) else a for a in args]
            e=k(*hargs,**kw); e=hargs[inplace] if inplace is not None else e
        t=time.time()
        d=[a.cuda() if isinstance(a,ts.Tensor) else a for a in args]
        o=k(*d,**kw); o=d[inplace] if inplace is not None else o
        o=o.cpu(); t=time.time()-t
        a,b=o.numpy().astype('f8'),e.numpy().astype('f8')
        print(name,'maxdiff',float(np.abs(a-b).max()),'nan',int(np.isnan(a).sum()),f'{t:.2f}s',flush=True)
    except Exception as ex:
        print(name,'FAILED',type(ex).__name__,str(ex)[:600],flush=True); 
for dt in (ts.f32,ts.bf16):
    T=lambda *s: ts.asarray(r.standard_normal(s).astype('f4')).to(dt)
    F=lambda *s: ts.asarray(r.standard_normal(s).astype('f4'))
    run('saxpy',L.saxpy,T(100,30),T(100,30),2.0)
    run('softmax',L.softmax,T(100,96)); run('softmax700',L.softmax,T(9,700)); run('layernorm',L.layernorm,T(70,100),F(100),F(100))
    run('rmsnorm',L.rmsnorm,T(70,100),F(100)); run('logsumexp',L.logsumexp,T(100,300))
    run('transpose',L.transpose[2,2],T(70,100),T(100,70),inplace=1); run('rope',L.rope,T(2,70,64),T(2,70,64),inplace=1)
    run('gemm',L.gemm[4,3],T(100,96),T(96,70),F(70),T(100,70),inplace=3)
    run('attention',L.attention,T(2,100,64),T(2,90,64),T(2,90,64),mask=L.causal)
    run('sigmoid',L.sigmoid_attention,T(2,100,64),T(2,90,64),T(2,90,64),0.5); run('mlp',L.mlp,T(100,48),T(48,70),T(70,48))
    run('window',L.window_attention,T(2,100,64),T(2,90,64),T(2,90,64),16)
run('histogram',L.histogram,ts.asarray(r.integers(0,10,100).astype('i4')),ts.zeros((10,),dtype=ts.i32),inplace=1,bins=10)
