"""Runs generated programs under transformations: `python running.py jax < texts`.

One idea: the module that is called jax may be verax; what comes out is one line of JSON
for each line of JSON, with the numbers of each way to run a program, or the error::

    results(space_of("verax"), source(7, late=False).text)

It imports neither library until it knows which, so each has a process of its own.
"""

import functools
import importlib
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

X: Final = np.array([0.3, -0.7, 1.1], np.float32)
XS: Final = np.stack([X, X[::-1] * np.float32(0.5)])
V: Final = np.array([1.0, 0.5, -0.25], np.float32)

type Numbers = list[float]


def space_of(library: str) -> Mapping[str, Any]:
    """The names that programs read."""
    jax = importlib.import_module(library)
    named = importlib.import_module(f"{library}.ad_checkpoint").checkpoint_name
    return {
        **{"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "np": np},
        **{"checkpoint_name": named, "partial": functools.partial},
    }


def ways(jax: Any, f: Callable[[Any], Any], by: float) -> dict[str, Callable[[], Any]]:
    """The ways to run a function of a vector, at a point moved `by` a part of it."""
    jnp, slope = jax.numpy, jax.grad(f)
    x, xs = X * np.float32(1 + by), XS * np.float32(1 + by)
    return {
        "eager": lambda: f(x),
        "jit": lambda: jax.jit(f)(x),
        "vmap": lambda: jax.vmap(f)(xs),
        "value": lambda: jax.value_and_grad(f)(x)[0],
        "grad": lambda: slope(x),
        "jit_grad": lambda: jax.jit(jax.grad(f))(x),
        "grad_jit": lambda: jax.grad(jax.jit(f))(x),
        "vmap_grad": lambda: jax.vmap(slope)(xs),
        "grad_vmap": lambda: jax.grad(lambda rows: jnp.sum(jax.vmap(f)(rows)))(xs),
        "hvp": lambda: jax.grad(lambda z: jnp.vdot(jax.grad(f)(z), V))(x),
    }


def results(
    names: Mapping[str, Any], text: str, by: float = 0.0
) -> dict[str, Numbers | str]:
    """What each way gives; the name of the error where it gives none.

    The point is moved `by` a part of it.
    """
    space = dict(names)
    exec(compile(text, "<program>", "exec"), space)
    actual: dict[str, Numbers | str] = {}
    for name, run in ways(space["jax"], space["f"], by).items():
        try:
            actual[name] = np.asarray(run(), np.float64).ravel().tolist()
        except Exception as error:
            actual[name] = f"{type(error).__name__}: {error}"[:300]
    return actual


def main(library: str) -> None:
    """Print the results of the programs of the input."""
    names = space_of(library)
    for line in sys.stdin:
        print(json.dumps(results(names, json.loads(line))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
