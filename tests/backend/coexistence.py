"""verax's backend and jax in one process: each computes as if the other were absent.

python -m tests.backend.coexistence verax jax    # the order of the imports
"""

import importlib
import sys
from typing import Any

import ml_dtypes
import numpy as np

HALF = np.dtype(ml_dtypes.bfloat16)


def jax_results() -> list[Any]:
    """What jax makes of values that touch each process-wide setting of jaxlib."""
    jax, jnp = map(importlib.import_module, ("jax", "jax.numpy"))
    doubled = jax.jit(lambda x: x + x)
    array = jnp.arange(8.0)
    return [
        np.asarray(doubled(array)),
        np.asarray(doubled(np.arange(8, dtype=np.float64))),
        str(doubled(np.arange(8, dtype=np.float64)).dtype),
        np.asarray(array.astype(jnp.bfloat16)).astype(np.float32),
        float(array[3] + 1),
        jax.tree_util.tree_map(lambda x: x + 1, {"a": [1, None]}),
        np.asarray(jax.grad(lambda x: (x * x).sum())(array)),
        repr(array),
    ]


def verax_results() -> list[Any]:
    """What verax makes of the same values."""
    programs, buffers, trees = map(
        importlib.import_module,
        ("tests.backend.programs", "verax.backend.buffers", "verax.tree_util"),
    )
    argument = programs.on_device(programs.vector())
    (doubled,) = programs.compiled().execute([argument])
    wide = programs.on_device(np.arange(8, dtype=np.float64))
    half = programs.on_device(np.arange(8).astype(HALF))
    gone = programs.on_device(np.ones(3, np.float32))
    buffers.delete(gone)
    return [
        buffers.to_numpy(doubled),
        buffers.to_numpy(wide),
        str(buffers.to_numpy(wide).dtype),
        buffers.to_numpy(half).astype(np.float32),
        str(buffers.to_numpy(half).dtype),
        error_of(lambda: buffers.to_numpy(gone)),
        trees.tree_map(lambda x: x + 1, {"a": [1, None]}),
        doubled.aval is programs.VECTOR,
    ]


def error_of(action: Any) -> str:
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


RESULTS = {"jax": jax_results, "verax": verax_results}
MODULES = {"jax": "jax", "verax": "verax.backend.client"}


def main(order: list[str]) -> None:
    """Import in this order, run all twice, alternating, and print each result."""
    for name in order:
        importlib.import_module(MODULES[name])
    rounds = [{name: repr(RESULTS[name]()) for name in order} for _ in range(2)]
    assert rounds[0] == rounds[1], rounds
    # Nothing of verax may load jax behind the user's back.
    assert ("jax" in sys.modules) == ("jax" in order)
    for name in sorted(order):
        print(f"{name}: {rounds[0][name]}")
    if len(order) == 2:
        assert registries_are_apart()


if __name__ == "__main__":
    main(sys.argv[1:])
