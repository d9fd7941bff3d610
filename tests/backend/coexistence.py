"""verax and jax in one process: each computes as if the other were absent.

python -m tests.backend.coexistence verax jax    # the order of the imports
"""

import importlib
import sys
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

HALF = np.dtype(ml_dtypes.bfloat16)


def shared_results(library: Any, array_module: Any) -> list[Any]:
    """What either library makes of one program in the names that both have."""
    x = array_module.arange(8.0)
    wide = np.arange(8, dtype=np.float64)
    jitted = library.jit(lambda x: array_module.sin(x) * 2)
    energy = library.jit(lambda x: (array_module.sin(x) ** 2).sum())
    return [
        np.asarray(jitted(x)),
        np.asarray(jitted(wide)),
        str(jitted(wide).dtype),
        np.asarray(library.grad(energy)(x)),
        np.asarray(library.jit(library.vmap(library.grad(array_module.sin)))(x)),
        np.asarray(library.hessian(energy)(x)),
        np.asarray(x.astype(HALF)).astype(np.float32),
        float(x[3] + 1),
        library.tree_util.tree_map(lambda x: x + 1, {"a": [1, None]}),
        np.asarray(library.random.uniform(library.random.key(0), (3,))),
        donated(library, array_module),
        type_of_bad_input(library),
    ]


def donated(library: Any, array_module: Any) -> tuple[list[float], bool]:
    """The result of a call that takes its argument's memory, and whether it did."""
    x = library.block_until_ready(library.jit(lambda: array_module.ones(4))())
    y = library.jit(lambda x: x + 1, donate_argnums=0)(x)
    return y.tolist(), x.is_deleted()


def type_of_bad_input(library: Any) -> str:
    """The class of the error for what is no array."""
    try:
        library.jit(lambda x: x)(object())
    except TypeError:
        return "TypeError"
    return "no error"


def jax_results() -> list[Any]:
    """What jax makes of values that touch each process-wide setting of jaxlib."""
    jax, jnp = map(importlib.import_module, ("jax", "jax.numpy"))
    return [*shared_results(jax, jnp), repr(jnp.arange(8.0))]


def verax_results() -> list[Any]:
    """What verax makes of the same values, and of buffers of its own."""
    verax, vnp = map(importlib.import_module, ("verax", "verax.numpy"))
    return [
        *shared_results(verax, vnp),
        repr(vnp.arange(8.0)),
        isinstance(vnp.arange(8.0), verax.Array),
        *buffer_results(),
    ]


def buffer_results() -> list[Any]:
    """What the backend alone does, below the arrays of users."""
    programs, buffers = map(
        importlib.import_module,
        ("tests.backend.programs", "verax.backend.runtime.buffers"),
    )
    (doubled,) = programs.compiled().execute([programs.on_device(programs.vector())])
    wide = programs.on_device(np.arange(8, dtype=np.float64))
    half = programs.on_device(np.arange(8).astype(HALF))
    gone = programs.on_device(np.ones(3, np.float32))
    buffers.delete(gone)
    return [
        buffers.to_numpy(doubled),
        str(buffers.to_numpy(wide).dtype),
        str(buffers.to_numpy(half).dtype),
        error_of(lambda: buffers.to_numpy(gone)),
        doubled.aval is programs.VECTOR,
    ]


def error_of(action: Callable[[], object]) -> str:
    """The class and text of the exception that the action raises."""
    try:
        action()
    except RuntimeError as error:
        return f"RuntimeError: {error}"
    return "no error"


def registries_are_apart() -> bool:
    """A class registered in one library is a leaf in the other, both ways."""
    ours, theirs = map(importlib.import_module, ("verax.tree_util", "jax.tree_util"))

    class Ours(list[int]):
        """A node of verax alone."""

    class Theirs(list[int]):
        """A node of jax alone."""

    ours.register_pytree_node(Ours, lambda x: (tuple(x), None), lambda _, c: Ours(c))
    theirs.register_pytree_node(
        Theirs, lambda x: (tuple(x), None), lambda _, c: Theirs(c)
    )
    trees = ([Ours([1, 2])], [Theirs([1, 2])])
    counts = [len(library.tree_leaves(t)) for library in (ours, theirs) for t in trees]
    return counts == [2, 1, 1, 2]


def precisions_are_apart() -> bool:
    """64 bits in one library leave the other at 32, globally and in a block."""
    verax, vnp, jax, jnp = map(
        importlib.import_module, ("verax", "verax.numpy", "jax", "jax.numpy")
    )
    wide = np.arange(3, dtype=np.float64)

    def widths() -> tuple[int, ...]:
        ours = verax.jit(lambda x: vnp.sin(x) + vnp.zeros(3))(wide)
        theirs = jax.jit(lambda x: jnp.sin(x) + jnp.zeros(3))(wide)
        return (
            vnp.ones(1).itemsize,
            ours.itemsize,
            jnp.ones(1).itemsize,
            theirs.itemsize,
        )

    actual = [widths()]
    for library in (verax, jax):
        library.config.update("jax_enable_x64", True)
        actual.append(widths())
        library.config.update("jax_enable_x64", False)
    with verax.enable_x64():
        actual.append(widths())
    actual.append(widths())
    return actual == [
        (4, 4, 4, 4),
        (8, 8, 4, 4),
        (4, 4, 8, 8),
        (8, 8, 4, 4),
        (4, 4, 4, 4),
    ]


def values_cross_by_numpy() -> bool:
    """Arrays of one library are NumPy arrays to the other, and keep their values."""
    vnp, jnp = map(importlib.import_module, ("verax.numpy", "jax.numpy"))
    there = jnp.asarray(np.asarray(vnp.arange(4.0)))
    back = vnp.asarray(np.asarray(there * 2))
    return bool(back.tolist() == [0, 2, 4, 6])


def values_cross_by_dlpack() -> bool:
    """Arrays go both ways without a copy, and outlive the library that made them."""
    verax, vnp, jnp = map(
        importlib.import_module, ("verax", "verax.numpy", "jax.numpy")
    )
    here = verax.jit(lambda: vnp.arange(64.0))()
    there = jnp.from_dlpack(here)
    back = vnp.from_dlpack(there * 2)
    address = here.unsafe_buffer_pointer()
    shared = bool(there.unsafe_buffer_pointer() == address)
    here.delete()
    half = vnp.from_dlpack(jnp.ones(3, HALF))
    return (
        shared
        and float(there.sum()) == 2016
        and float(back.sum()) == 4032
        and str(half.dtype) == "bfloat16"
        and half.tolist() == [1, 1, 1]
    )


def threads_use_both() -> bool:
    """Threads that call either library, with other precisions, get right results."""
    verax, vnp, jax, jnp = map(
        importlib.import_module, ("verax", "verax.numpy", "jax", "jax.numpy")
    )
    ours, theirs = verax.jit(vnp.cumsum), jax.jit(jnp.cumsum)
    wrong: list[int] = []

    def run(i: int) -> None:
        x = np.full(i + 1, i, np.float64)
        with verax.enable_x64(i % 2 == 0):
            mine, other = ours(x), theirs(x)
        width = (8 if i % 2 == 0 else 4, 4)
        right = np.array_equal(np.asarray(mine), np.cumsum(x))
        same = np.array_equal(np.asarray(mine), np.asarray(other))
        if not (right and same and (mine.itemsize, other.itemsize) == width):
            wrong.append(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return not wrong


RESULTS = {"jax": jax_results, "verax": verax_results}
TOGETHER = (
    registries_are_apart,
    precisions_are_apart,
    values_cross_by_numpy,
    values_cross_by_dlpack,
    threads_use_both,
)


def main(order: list[str]) -> None:
    """Import in this order, run all twice, alternating, and print each result."""
    for name in order:
        importlib.import_module(name)
    rounds = [{name: repr(RESULTS[name]()) for name in order} for _ in range(2)]
    # Nothing of verax may load jax behind the user's back.
    assert ("jax" in sys.modules) == ("jax" in order)
    if len(order) == 2:
        for check in TOGETHER:
            assert check(), check.__name__
        rounds.append({name: repr(RESULTS[name]()) for name in order})
    assert all(found == rounds[0] for found in rounds), rounds
    for name in sorted(order):
        print(f"{name}: {' '.join(rounds[0][name].split())}")


if __name__ == "__main__":
    main(sys.argv[1:])
