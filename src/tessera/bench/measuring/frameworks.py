"""Frameworks that implementations use: their arrays, how to wait for their results, and their threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from tessera.bench.instruments.libraries import library

Array = np.ndarray[Any, np.dtype[Any]]


def _nothing(_: Any) -> None:
    """Results of frameworks that compute when they are called are there when the call returns."""


class Graph(Protocol):
    """Work that was recorded."""

    def replay(self) -> None: ...


@dataclass(frozen=True)
class Framework:
    """One of them. `finished` are the types a result may have: a promise of a result is none."""

    name: str
    modules: tuple[str, ...]
    adapt: Callable[[Array], Any]
    """An array as the framework's, over the same memory where it can be."""
    to_numpy: Callable[[Any], Array]
    finished: Callable[[], tuple[type, ...]]
    set_threads: Callable[[int], None]
    finish: Callable[[Any], None] = _nothing
    """Waits until a result is there; part of the time that is measured."""
    needs_gpu: bool = False
    """Then its calls only start the work, on the current stream, and are timed by the GPU's own clock."""
    graph: Callable[[Sequence[Callable[[], Any]]], Graph] | None = None
    """Records calls, to be run again without their cost on the host; None where there is no such thing."""
    peak_memory: Callable[[Callable[[], Any]], float] | None = None
    """The bytes that a piece of work takes at most on the device; None where the process's memory is all there is."""
    wake: Callable[[], None] = lambda: None
    """A little work of ours on all of its threads, so that none has to be woken while a sample is timed."""

    @property
    def ours(self) -> bool:
        """Whether our compiler is behind it."""
        return self.name.startswith("tessera")

    def missing(self) -> str | None:
        """Why it cannot be used here, or None."""
        absent = [module for module in self.modules if find_spec(module) is None]
        if absent:
            return f"{' and '.join(absent)} not installed"
        if self.needs_gpu and not has_gpu():
            return "needs an NVIDIA GPU"
        return None


@cache
def has_gpu() -> bool:
    """Whether the NVIDIA driver knows a device; asked without loading a framework."""
    import ctypes

    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def _numpy_threads(count: int) -> None:
    """The threads of NumPy's BLAS."""
    _blas().limit(limits=count)


@cache
def _matrix() -> Array:
    return np.ones((192, 192), np.float32)


def _wake_numpy() -> None:
    np.matmul(_matrix(), _matrix())


@cache
def _blas() -> Any:
    """NumPy's own; other frameworks bring theirs."""
    return library("threadpoolctl").ThreadpoolController().select(internal_api=["openblas", "blis", "flexiblas"])


def calm() -> None:
    """One thread for NumPy: our own computations must leave no spinning threads behind."""
    if FRAMEWORKS["numpy"].missing() is None:
        _numpy_threads(1)


def _as_many_as_there_are(_: int) -> None:
    """A GPU has as many threads as it has, and JAX takes all processors that a process may use."""


def _tessera_tensor(array: Array) -> Any:
    import tessera

    return tessera.asarray(array, copy=False)


@cache
def _tessera_work() -> tuple[Any, Any]:
    from tessera import stdlib
    from tessera.tile.language.schedule import Schedule

    return stdlib.softmax.with_schedule(Schedule(block=(16, 16))), _tessera_tensor(np.ones((256, 64), np.float32))


def _wake_tessera() -> None:
    kernel, numbers = _tessera_work()
    kernel(numbers)


def _tessera_types() -> tuple[type, ...]:
    from tessera.runtime.tensor.tensor import Tensor

    return (Tensor,)


def _tessera_threads(count: int) -> None:
    from tessera.runtime.native import pool
    from tessera.runtime.program.executable import start_pool

    start_pool()
    pool.set_threads(count)


def _tessera_gpu_finish(_: Any) -> None:
    from tessera.runtime.cuda.streams import synchronize

    synchronize()


def _tessera_graph(calls: Sequence[Callable[[], Any]]) -> Graph:
    from tessera.bench.instruments.gpu_timing import OurGraph

    return OurGraph(calls)


def _tessera_peak(work: Callable[[], Any]) -> float:
    from tessera.runtime.cuda.context import Context
    from tessera.runtime.cuda.pool import Pool

    pool = Pool.of(Context.of(0))
    pool.trim()
    before = pool.statistics().used
    pool.reset_peak()
    work()
    return max(0, pool.statistics().peak - before)


def _torch_tensor(array: Array) -> Any:
    torch = library("torch")
    if array.dtype.name not in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return torch.from_numpy(array)
    raw = array.view(np.int16 if array.dtype.itemsize == 2 else np.int8)
    return torch.from_numpy(raw).view(getattr(torch, array.dtype.name))


def _torch_on_gpu(array: Array) -> Any:
    return _torch_tensor(array).cuda()


def _torch_gpu_finish(_: Any) -> None:
    library("torch").cuda.synchronize()


def _torch_graph(calls: Sequence[Callable[[], Any]]) -> Graph:
    from tessera.bench.instruments.gpu_timing import TorchGraph

    return TorchGraph(calls)


def _torch_peak(work: Callable[[], Any]) -> float:
    cuda = library("torch").cuda
    before = cuda.memory_allocated()
    cuda.reset_peak_memory_stats()
    work()
    return max(0, cuda.max_memory_allocated() - before)


@cache
def _torch_numbers() -> Any:
    return library("torch").ones(1 << 17)


def _jax_array(array: Array) -> Any:
    return library("jax").numpy.asarray(array)


def _torch(name: str, modules: tuple[str, ...] = ("torch",), **more: Any) -> Framework:
    """A framework whose results are torch's tensors."""
    return Framework(
        name,
        modules,
        to_numpy=lambda tensor: tensor.detach().cpu().double().numpy(),
        finished=lambda: (library("torch").Tensor,),
        set_threads=lambda count: library("torch").set_num_threads(count),
        **more,
    )


FRAMEWORKS = {
    framework.name: framework
    for framework in (
        Framework(
            "numpy",
            ("numpy", "threadpoolctl"),
            adapt=lambda array: array,
            to_numpy=np.asarray,
            finished=lambda: (np.ndarray,),
            set_threads=_numpy_threads,
            wake=_wake_numpy,
        ),
        Framework(
            "tessera",
            (),
            adapt=_tessera_tensor,
            to_numpy=lambda tensor: tensor.numpy(),
            finished=_tessera_types,
            set_threads=_tessera_threads,
            wake=_wake_tessera,
        ),
        _torch("torch", adapt=_torch_tensor, wake=lambda: _torch_numbers().mul_(1.0)),
        Framework(
            "tessera_cuda",
            ("cuda",),
            adapt=lambda array: _tessera_tensor(array).to("cuda:0"),
            to_numpy=lambda tensor: tensor.cpu().numpy(),
            finished=_tessera_types,
            set_threads=_as_many_as_there_are,
            finish=_tessera_gpu_finish,
            needs_gpu=True,
            graph=_tessera_graph,
            peak_memory=_tessera_peak,
        ),
        *(
            _torch(
                name,
                modules,
                adapt=_torch_on_gpu,
                finish=_torch_gpu_finish,
                needs_gpu=True,
                graph=_torch_graph,
                peak_memory=_torch_peak,
            )
            for name, modules in (("torch_cuda", ("torch",)), ("triton", ("torch", "triton")))
        ),
        Framework(
            "jax",
            ("jax", "jaxlib"),
            adapt=_jax_array,
            to_numpy=np.asarray,
            finished=lambda: (library("jax").numpy.zeros(1).__class__,),  # jax.Array itself is abstract
            set_threads=_as_many_as_there_are,
            finish=lambda result: result.block_until_ready(),
        ),
    )
}


def adapted(framework: Framework, arrays: Sequence[Array]) -> tuple[Any, ...]:
    return tuple(framework.adapt(array) for array in arrays)
