"""One library behind one object: what a benchmark program sees of verax or of jax.

The idea: both libraries have the same public names, so a program that takes its
library as an argument is written once and measures the same code twice.

    ns = load("verax")
    ns.api.jit(lambda x: ns.numpy.sin(x) * 2.0)(1.5)
"""

import importlib
import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Namespace:
    """The public modules of one library and a source of fresh literals."""

    library: str
    api: Any
    numpy: Any
    lax: Any
    nn: Any
    random: Any
    _salts: "itertools.count[int]" = field(
        default_factory=itertools.count, compare=False, repr=False
    )

    def salt(self) -> float:
        """Return a float not returned before.

        A program multiplies by it once, so no two repetitions trace equal jaxprs and
        no cache keyed on structure can answer for the work that is being measured.
        """
        return 1.0 + (1 + next(self._salts)) * 2.0**-20

    def array(self, *shape: int, seed: int = 0) -> Any:
        """Return a float32 array of `shape` with entries in [0.5, 1.5)."""
        values = np.random.default_rng(seed).uniform(0.5, 1.5, shape)
        return self.numpy.asarray(values.astype(np.float32))


@dataclass(frozen=True)
class Scale:
    """How large the programs are: `full` for figures, `small` for tests."""

    scalars: int
    layers: int
    hessian_scalars: int
    fourth_scalars: int
    repeats: int
    growth: tuple[int, ...]
    elements: int
    small: bool = False


FULL = Scale(2000, 12, 500, 40, 20, (500, 2000, 8000, 16000), 1_000_000)
QUICK = Scale(2000, 12, 500, 40, 20, (500, 1000, 4000), 1_000_000)
SMALL = Scale(24, 1, 12, 4, 1, (8, 16), 1000, small=True)


def load(library: str) -> Namespace:
    """Import `library` ("verax" or "jax") and return its namespace."""
    module = importlib.import_module
    return Namespace(
        library,
        api=module(library),
        numpy=module(f"{library}.numpy"),
        lax=module(f"{library}.lax"),
        nn=module(f"{library}.nn"),
        random=module(f"{library}.random"),
    )


def block(tree: object) -> object:
    """Wait for every array in nested tuples, lists and dicts; return `tree`."""
    if isinstance(tree, tuple | list):
        for item in tree:
            block(item)
    elif isinstance(tree, dict):
        for item in tree.values():
            block(item)
    else:
        getattr(tree, "block_until_ready", lambda: None)()
    return tree
