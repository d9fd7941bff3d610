"""The libraries: what a program is given, and how a call of it is made.

of_name("jax").call(case, grad=True)
"""

import importlib
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol

from . import words
from .cases import Case, leaves
from .code import code_of

MODULES = "lax numpy nn random scipy.special scipy.stats scipy.linalg scipy.signal \
scipy.ndimage ops"


class Library(Protocol):
    """Makes calls of programs."""

    def call(self, case: Case, worded: bool, grad: bool) -> Callable[[], Any]:
        """The program, or its gradient, which waits for its result.

        With `worded` the program is given words, without the modules of jax.
        """
        ...


class Traced:
    """verax or jax, by the name."""

    def __init__(self, name: str, wide: bool) -> None:
        module = importlib.import_module
        module(name).config.update("jax_enable_x64", wide)
        modules = {
            path.rpartition(".")[2]: module(f"{name}.{path}")
            for path in MODULES.split()
        }
        self.modules = SimpleNamespace(name=name, top=module(name), **modules)
        self.words = words.of_jax(self.modules)

    def total(self, out: Any) -> Any:
        """The sum of squares of the floats in a result, or itself if it is a number.

        A plain sum has a constant cotangent, and a compiler computes the gradient of a
        linear function ahead.
        """
        numpy = self.modules.numpy
        parts = [x for x in leaves(out) if numpy.issubdtype(x.dtype, numpy.inexact)]
        if len(parts) == 1 and not parts[0].shape:
            return parts[0].real
        return sum(numpy.sum((x * numpy.conj(x)).real) for x in parts)

    def jitted(
        self, case: Case, worded: bool, grad: bool
    ) -> tuple[Any, tuple[Any, ...]]:
        """The jitted program, or its gradient, and its operands."""
        top = self.modules.top
        value = partial(case.run, self.words if worded else self.modules)
        program = value
        if grad:
            places = tuple(range(case.grads))
            program = top.grad(lambda *xs: self.total(value(*xs)), places)
        xs = top.tree.map(self.modules.numpy.asarray, case.operands())
        return top.jit(program), xs

    def call(self, case: Case, worded: bool, grad: bool) -> Callable[[], Any]:
        compiled, xs = self.jitted(case, worded, grad)
        wait = self.modules.top.block_until_ready
        return lambda: wait(compiled(*xs))

    def code(self, case: Case, worded: bool, grad: bool) -> str:
        """A digest of the compiled program."""
        compiled, xs = self.jitted(case, worded, grad)
        return code_of(compiled.lower(*xs).compile().as_text())


class Torch:
    """torch: eager, or compiled."""

    def __init__(self, compiles: bool) -> None:
        self.torch = importlib.import_module("torch")
        self.torch.set_num_threads(1)
        self.words, self.compiles = words.of_torch(), compiles

    def array(self, tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: self.array(value) for key, value in tree.items()}
        if isinstance(tree, tuple | list):
            return type(tree)(self.array(item) for item in tree)
        x = self.torch.as_tensor(tree)
        return x.long() if x.dtype == self.torch.int32 else x

    def call(self, case: Case, worded: bool, grad: bool) -> Callable[[], Any]:
        program = partial(case.run, self.words if worded else self.torch)
        if self.compiles:
            program = self.torch.compile(program)
        xs = self.array(case.operands())
        if not grad:

            def value() -> Any:
                with self.torch.no_grad():
                    return program(*xs)

            return value
        inputs = leaves(xs[: case.grads])
        for x in inputs:
            x.requires_grad_()

        def gradient() -> Any:
            out = leaves(program(*xs))
            total = out[0] if len(out) == 1 and not out[0].ndim else None
            if total is None:
                total = sum((x * x.conj()).real.sum() for x in out)
            return self.torch.autograd.grad(total, inputs)

        return gradient


def of_name(name: str, wide: bool = False) -> Library:
    """verax, jax, torch or torch.compile; with `wide`, types of 64 bits."""
    if name.startswith("torch"):
        return Torch(compiles=name == "torch.compile")
    return Traced(name, wide)
