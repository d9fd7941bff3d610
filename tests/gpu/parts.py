"""The parts of the run that need only verax, on whatever the default device is.

A part is a function of its time in seconds, and gives rows; each runs in a process of
its own, so that one that dies takes no other with it::

    python -m tests.gpu.parts laws --seconds 60
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

import numpy as np

import verax
import verax.numpy as vnp
from tests.gpu.models import MODELS, load
from tests.gpu.result import Row, checked, failed, figure, not_run
from tests.soak.harness import soak
from verax import lax
from verax.backend.runtime.metrics import TALLY
from verax.lax import linalg
from verax.memory import Offload
from verax.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

type Part = Callable[[float], Iterator[Row]]
PACKAGES = (
    *("jaxlib", "jax", "numpy", "jax-cuda13-plugin", "jax-cuda13-pjrt"),
    *("jax-cuda12-plugin", "jax-cuda12-pjrt"),
)
# Allowed distance of factors that are multiplied again, and of gradients, relative to
# the largest element: per dtype with full precision, and with TF32 in products.
FACTORS: Mapping[str, float] = {
    "float32": 1e-4,
    "float64": 1e-11,
    "complex64": 1e-4,
    "complex128": 1e-11,
}
FACTORISATIONS = (
    *("cholesky", "eigh", "eig", "svd", "qr", "qr with pivoting", "lu"),
    *("tridiagonal_solve", "solve"),
)
FULL, TF32 = 1e-3, 3e-2


def environment(seconds: float) -> Iterator[Row]:
    """Versions and devices."""
    yield figure("Python", sys.version.split()[0])
    for name in PACKAGES:
        try:
            yield figure(name, metadata.version(name))
        except metadata.PackageNotFoundError:
            continue
    for device in verax.devices():
        kinds = [memory.kind for memory in device.addressable_memories()]
        yield figure(str(device), f"{device.device_kind}; memories {', '.join(kinds)}")
    stats = verax.devices()[0].memory_stats() or {}
    for name in ("bytes_limit", "bytes_in_use", "pool_bytes"):
        if name in stats:
            yield figure(name, f"{stats[name] / 2**20:.0f} MiB")


def transfers(seconds: float) -> Iterator[Row]:
    """Values to the device and back, donation, memories, another default device."""
    device = verax.devices()[0]
    for name in (
        "bool",
        "int8",
        "int32",
        "float16",
        "bfloat16",
        "float32",
        "complex64",
    ):
        x = vnp.arange(7).astype(name)
        values = np.asarray(x)
        back = np.asarray(verax.device_put(values, device))
        yield checked(f"round trip of {name}", (back == values).all())
    x = verax.device_put(np.arange(1 << 20, dtype=np.float32), device)
    y = verax.jit(lambda x: x + 1, donate_argnums=0)(x)
    yield checked("donation", x.is_deleted() and float(y[-1]) == 1 << 20)
    kinds = {memory.kind for memory in device.addressable_memories()}
    if "pinned_host" in kinds:
        place = SingleDeviceSharding(device, memory_kind="pinned_host")
        far = verax.device_put(y, place)
        near = verax.device_put(far, SingleDeviceSharding(device))
        same = bool((near == y).all())
        kept = far.sharding.memory_kind == "pinned_host"
        yield checked("to pinned host memory and back", same and kept)
        yield offloading()
    else:
        yield not_run("pinned host memory", f"the device has {sorted(kinds)}")
    cpu = verax.devices("cpu")[0]
    with verax.default_device(cpu):
        z = vnp.ones(3) * 2
    yield checked("default_device(cpu)", z.devices() == {cpu})
    there = verax.device_put(verax.device_put(y, cpu), device)
    there_too = there.devices() == {device} and bool((there == y).all())
    yield checked("to the CPU and back", there_too)
    yield asynchrony()


def offloading() -> Row:
    """A gradient in less memory: where the device has a host, values wait there."""

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = vnp.tanh(x @ w)
        return vnp.sum(x)

    args = [vnp.eye(64)] * 16, vnp.ones((1 << 14, 64))
    plain: Any = verax.jit(verax.grad(loss))
    less: Any = verax.grad(loss, memory=Offload(0.6, price=0))
    whole, part = (
        f.lower(*args).compile().memory_analysis().temporaries for f in (plain, less)
    )
    pairs = zip(plain(*args), less(*args), strict=True)
    same = all([np.allclose(one, other, rtol=1e-4) for one, other in pairs])
    return checked(
        "a gradient within a budget, whose values may wait on the host",
        same and part < whole,
    )


def asynchrony() -> Row:
    """How soon a call returns, and when its result is there."""
    x = vnp.ones((1024, 1024)) / 1024
    f = verax.jit(lambda x: verax.lax.fori_loop(0, 100, lambda i, y: y @ x, x))
    f(x).block_until_ready()
    begin = time.perf_counter()
    y = f(x)
    returned = time.perf_counter() - begin
    y.block_until_ready()
    ready = time.perf_counter() - begin
    words = (
        f"the call returned after {returned * 1e3:.2f} ms, done in {ready * 1e3:.1f}"
    )
    return figure("asynchrony", words)


def several(seconds: float) -> Iterator[Row]:
    """Copies, programs and collectives over all devices, where there are several."""
    devices = verax.devices()
    if len(devices) < 2:
        yield not_run("several devices", "there is one")
        return
    n = len(devices)
    x = np.arange(4.0 * n, dtype=np.float32).reshape(2 * n, 2)
    near = verax.device_put(x, devices[0])
    far = verax.device_put(near, devices[-1])
    right = far.devices() == {devices[-1]} and bool((np.asarray(far) == x).all())
    yield checked("a copy to another device", right)
    mesh = verax.make_mesh((n,), ("d",), axis_types=(AxisType.Auto,))
    rows = PartitionSpec("d")
    split = verax.device_put(near, NamedSharding(mesh, rows))
    parts = len(split.addressable_shards) == n
    yield checked("an array in parts", parts and bool((np.asarray(split) == x).all()))
    product = verax.jit(lambda a: (a @ a.T).sum())(split)
    yield checked("a program over the devices", float(product) == (x @ x.T).sum())

    def ring(a: Any) -> Any:
        moved = lax.ppermute(a, "d", [(i, (i + 1) % n) for i in range(n)])
        return moved + lax.psum(a, "d") + lax.all_gather(a, "d").sum(0)

    mapped = verax.shard_map(ring, mesh=mesh, in_specs=rows, out_specs=rows)
    total = np.tile(x.reshape(n, 2, 2).sum(0), (n, 1))
    due = np.roll(x, 2, 0) + 2 * total
    yield checked("collectives", (np.asarray(verax.jit(mapped)(split)) == due).all())


def relative(result: Any, expected: Any) -> float:
    """The largest distance, by the largest element."""
    a, b = np.asarray(result), np.asarray(expected)
    return float(np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-30))


def factored(name: str, a: Any) -> tuple[Any, Any]:
    """What a factorisation gives back, and what it should."""
    at = a + vnp.conj(a.mT)
    if name == "cholesky":
        spd = a @ vnp.conj(a.mT) + 9 * vnp.eye(a.shape[-1], dtype=a.dtype)
        lower = linalg.cholesky(spd)
        return lower @ vnp.conj(lower.mT), spd
    if name == "eigh":
        v, w = linalg.eigh(at)
        return (v * w[..., None, :].astype(a.dtype)) @ vnp.conj(v.mT), at
    if name == "eig":
        w, v = linalg.eig(a, compute_left_eigenvectors=False)
        return v * w[..., None, :], a.astype(v.dtype) @ v
    if name == "svd":
        u, s, vh = linalg.svd(a, full_matrices=False)
        return (u * s[..., None, :].astype(a.dtype)) @ vh, a
    if name == "qr":
        q, r = linalg.qr(a, full_matrices=False)
        return q @ r, a
    if name == "qr with pivoting":
        q, r, order = linalg.qr(a, full_matrices=False, pivoting=True)
        return q @ r, vnp.take_along_axis(a, order[..., None, :], axis=-1)
    if name == "lu":
        p, lower, upper = verax.scipy.linalg.lu(a)
        return p @ lower @ upper, a
    if name == "tridiagonal_solve":
        d = a[..., 0] + 9
        x = linalg.tridiagonal_solve(a[..., 1], d, a[..., 2], a)
        dense = vnp.vectorize(
            lambda x, y, z: vnp.diag(x[1:], -1) + vnp.diag(y) + vnp.diag(z[:-1], 1),
            signature="(n),(n),(n)->(n,n)",
        )
        return dense(a[..., 1], d, a[..., 2]) @ x, a
    well = a + 9 * vnp.eye(a.shape[-1], dtype=a.dtype)
    return well @ vnp.linalg.solve(well, a), a


def factors(seconds: float) -> Iterator[Row]:
    """Factors of matrices multiply to the matrices, for all dtypes and in stacks."""
    random = np.random.default_rng(0)
    with verax.enable_x64(), verax.default_matmul_precision("highest"):
        for name in FACTORISATIONS:
            for dtype, allowed in FACTORS.items():
                for shape in ((5, 5), (3, 33, 33)):
                    values: Any = random.normal(size=shape)
                    if dtype.startswith("complex"):
                        values = values + 1j * random.normal(size=shape)
                    a = vnp.asarray(values.astype(dtype))
                    what = f"{name}, {dtype}{list(shape)}"
                    try:
                        actual, expected = verax.jit(factored, static_argnums=0)(
                            name, a
                        )
                        error = relative(actual, expected)
                        yield checked(what, error <= allowed, f"{error:.1e}")
                    except Exception as problem:
                        yield failed(what, problem)


def training(seconds: float) -> Iterator[Row]:
    """Gradients against those of the CPU; steps that copy nothing to the host."""
    ns = load("verax")
    cpu = verax.devices("cpu")[0]
    for name, model in MODELS.items():
        loss, params, batch = model(ns, True)
        for precision, allowed in (("highest", FULL), (None, TF32)):
            what = f"{name}: gradient, precision {precision or 'default'}"
            try:
                with verax.default_matmul_precision(precision):
                    grad = verax.jit(verax.grad(loss))
                    here = verax.tree.leaves(grad(params, batch))
                    there = verax.tree.leaves(
                        grad(*verax.device_put((params, batch), cpu))
                    )
                error = max(map(relative, here, there))
                yield checked(what, error <= allowed, f"{error:.1e}")
            except Exception as problem:
                yield failed(what, problem)
        yield steps(name, loss, params, batch)


def steps(name: str, loss: Any, params: Any, batch: Any) -> Row:
    """Ten steps with an eager update: the loss falls, the host reads nothing."""
    step = verax.jit(verax.value_and_grad(loss))
    params, batch = verax.device_put((params, batch), verax.devices()[0])
    first, before = step(params, batch)[0], TALLY.bytes_to_host
    value = first
    for _ in range(10):
        value, grads = step(params, batch)
        params = verax.tree.map(lambda p, g: p - 1e-3 * g, params, grads)
    copied = TALLY.bytes_to_host - before
    lower = float(value) <= float(first)
    on_host = verax.default_backend() == "cpu"  # where reading is no copy
    words = f"loss {float(first):.4g} to {float(value):.4g}, {copied} bytes to the host"
    return checked(f"{name}: ten steps", lower and (on_host or not copied), words)


def laws(seconds: float) -> Iterator[Row]:
    """Rows of the table against NumPy; the kit that draws them needs hypothesis."""
    if find_spec("hypothesis") is None:
        yield not_run("laws", "hypothesis is not installed")
    else:
        yield from import_module("tests.gpu.laws").laws(seconds)


def soaked(seconds: float) -> Iterator[Row]:
    """Mixed work, every result checked; memory of host and device stays flat."""
    device = verax.devices()[0]
    stats = device.memory_stats() or {}
    with verax.default_matmul_precision("highest"):
        report = soak(seconds, 0)
    yield checked("soak", report.flat, str(report))
    after = device.memory_stats() or {}
    if "bytes_in_use" in after:
        grown = (after["bytes_in_use"] - stats["bytes_in_use"]) / 2**20
        yield checked("memory of the device", grown < 64, f"{grown:+.1f} MiB")


PARTS: Mapping[str, Part] = {
    "environment": environment,
    "transfers": transfers,
    "several": several,
    "factors": factors,
    "training": training,
    "laws": laws,
    "soak": soaked,
}


def main() -> None:
    """Print the rows of a part as they come, one JSON list a line."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.parts")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--seconds", type=float, default=60.0)
    chosen = parser.parse_args()
    try:
        for row in PARTS[chosen.part](chosen.seconds):
            print(json.dumps(row), flush=True)
    except Exception as error:
        print(json.dumps(failed(chosen.part, error)), flush=True)


if __name__ == "__main__":
    main()
