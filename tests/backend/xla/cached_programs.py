"""Programs of many kinds, compiled or read from disk, in a process of their own.

Prints, as JSON, where each program was from and a hash of what it computed. Some run
on several devices::

    VERAX_NUM_CPU_DEVICES=4 VERAX_COMPILATION_CACHE_DIR=/tmp/programs \\
        python cached_programs.py
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np

import verax
import verax.numpy as vnp
from verax import lax, nn, random
from verax.sharding import AxisType, NamedSharding, PartitionSpec

GENERATOR = np.random.default_rng(7)
DEEP = 16


def draw(*shape: int) -> Any:
    return GENERATOR.standard_normal(shape).astype(np.float32)


def network(weights: list[Any], x: Any) -> Any:
    """A residual network, whose blocks become functions."""
    for w in weights:
        h = vnp.tanh(x @ w)
        x = x + h * vnp.exp(-(h**2)) / (1 + vnp.sum(h**2))
    return (x**2).mean()


def convolved(kernel: Any, x: Any) -> Any:
    return vnp.maximum(lax.conv(x, kernel, (1, 1), "SAME"), 0).sum()


def softened(x: Any) -> Any:
    return nn.softmax(x)[:, 0].sum()


def looped(x: Any) -> Any:
    y, _ = lax.scan(lambda c, r: (vnp.sin(c) + r, c), x, vnp.arange(5.0))
    z = lax.while_loop(lambda v: v.sum() < 50, lambda v: v * 1.5 + 1, y)
    return lax.cond(z[0] > 3, vnp.exp, vnp.cos, z / 10)


def drawn(key: Any) -> Any:
    left, right = random.split(key)
    return random.normal(left, (33,)), random.key_data(right), left


def counted(x: Any) -> Any:
    ref = verax.new_ref(x)
    ref[0] = x[1] * 2
    return ref[...]


def programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """By name: a function, jitted where that says more, and its arguments."""
    square = draw(6, 6)
    actual: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "elementwise": (lambda x: vnp.sin(x) * vnp.exp(x), (draw(1000),)),
        "reductions": (lambda x: (x.sum(0), x.max(1), x.var()), (draw(300, 200),)),
        "softmax": (verax.grad(softened), (draw(16, 9),)),
        "blocks": (verax.value_and_grad(network), ([draw(8, 8)] * DEEP, draw(4, 8))),
        "convolution": (verax.grad(convolved), (draw(4, 3, 3, 3), draw(2, 3, 9, 9))),
        "control": (looped, (draw(4),)),
        "keys": (drawn, (random.key(3),)),
        "sort": (lambda x: (vnp.sort(x), vnp.argsort(-x)), (draw(97),)),
        "cumulative": (vnp.cumsum, (draw(1000),)),
        "cholesky": (vnp.linalg.cholesky, (square @ square.T + np.eye(6, dtype="f"),)),
        "svd": (lambda a: vnp.linalg.svd(a), (square,)),
        "fft": (lambda x: vnp.fft.rfft(x), (draw(24),)),
        "complex": (lambda z: vnp.exp(z) / z, (draw(5) + 1j * draw(5),)),
        "integers": (lambda n: (n // 3, n % 3, n << 1), (np.arange(-9, 9, dtype="b"),)),
        "bfloat16": (lambda x: (x @ x).sum(), (draw(8, 8).astype(vnp.bfloat16),)),
        "references": (counted, (draw(4),)),
        "scatter": (lambda x: x.at[np.array([1, 1, 3])].add(2.5), (draw(5),)),
        "captured": (lambda x, table=square: x @ table, (draw(3, 6),)),
        "scalar": (lambda x: x * 2 + 1, (1.5,)),
        "empty": (lambda x: (x * 2, x.sum()), (draw(0, 3),)),
        "batched": (verax.vmap(vnp.matmul), (draw(5, 3, 4), draw(5, 4, 2))),
    }
    donating = verax.jit(lambda x, y: x * y + 1, donate_argnums=0)
    actual["donated"] = donating, (vnp.asarray(draw(2000)), draw(2000))
    for calls in ("keep", "inline"):
        jitted = verax.jit(network, calls=calls)
        actual[calls] = jitted, ([draw(8, 8)] * DEEP, draw(4, 8))
    return actual | placed_programs()


def placed_programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Programs of other devices than the first."""
    devices = verax.devices()
    mesh = verax.make_mesh((len(devices),), ("x",), (AxisType.Auto,))
    split = NamedSharding(mesh, PartitionSpec("x"))
    there = verax.device_put(draw(2 * len(devices), 3), split)
    summed = verax.shard_map(
        lambda x: lax.psum(x, "x") + x,
        mesh=mesh,
        in_specs=PartitionSpec("x"),
        out_specs=PartitionSpec("x"),
    )
    return {
        "second device": (vnp.tanh, (verax.device_put(draw(9), devices[1]),)),
        "last device": (vnp.tanh, (verax.device_put(draw(9), devices[-1]),)),
        "partitioned": (lambda x: x @ x.T, (there,)),
        "collective": (summed, (there,)),
    }


def told(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, str]:
    """Where the program of a function was from, and a hash of its results."""
    jitted: Any = function if hasattr(function, "lower") else verax.jit(function)
    compiled = jitted.lower(*args).compile()
    results = verax.tree_util.tree_leaves(compiled(*args))
    digest = hashlib.sha256()
    for result in results:
        plain = random.key_data(result) if is_key(result) else result
        digest.update(np.asarray(plain).tobytes())
    gone = [getattr(arg, "is_deleted", bool)() for arg in args]
    digest.update(repr(gone).encode())
    return compiled.program.executable.origin, digest.hexdigest()


def is_key(value: Any) -> bool:
    return vnp.issubdtype(value.dtype, verax.dtypes.prng_key)


if __name__ == "__main__":
    print(json.dumps({name: told(*what) for name, what in programs().items()}))
