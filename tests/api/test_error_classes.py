"""Every way to ask a tracer for its value raises the class that JAX raises there.

The table was compared with JAX 0.12 side by side; what differs is in differences.md.
"""

import cmath
import json
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import errors, lax, nn, random
from verax.errors import (
    AbstractValueError,
    ConcretizationTypeError,
    JAXIndexError,
    JaxRuntimeError,
    JAXTypeError,
    KeyReuseError,
    LeakedTracer,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

KEY = random.key(0)


def total(x: Any) -> Any:
    return x.sum()


def count(x: Any) -> Any:
    return x.sum().astype(int)


BOOL: dict[str, Callable[[Any], Any]] = {
    "bool": lambda x: bool(total(x)),
    "if": lambda x: 1 if total(x) > 0 else 2,
    "not": lambda x: not total(x),
    "and": lambda x: total(x) > 0 and total(x) < 1,
    "max": lambda x: max(total(x), 1.0),
    "sorted": lambda x: sorted([total(x), total(x)]),
    "any": lambda x: any(x > 0),
    "in": lambda x: 1.0 in x,
    "in a list": lambda x: total(x) in [1.0, 2.0],
    "array_equal": lambda x: 1 if vnp.array_equal(x, x) else 0,
    "allclose": lambda x: 1 if vnp.allclose(x, x) else 0,
}
VALUE: dict[str, Callable[[Any], Any]] = {
    "int": lambda x: int(total(x)),
    "float": lambda x: float(total(x)),
    "complex": lambda x: complex(total(x)),
    "math.sin": lambda x: math.sin(total(x)),
    "math.floor": lambda x: math.floor(total(x)),
    "math.isnan": lambda x: math.isnan(total(x)),
    "cmath.sqrt": lambda x: cmath.sqrt(total(x)),
    "item": lambda x: total(x).item(),
    "item of several": lambda x: x.item(0),
    "tolist": lambda x: x.tolist(),
    "pickle": lambda x: pickle.dumps(x),
    "arange of a float": lambda x: vnp.arange(total(x)),
    "repeat, counts": lambda x: vnp.repeat(x, x.astype(int)),
    "pad": lambda x: vnp.pad(x, count(x)),
    "pad, pair": lambda x: vnp.pad(x, (0, count(x))),
    "nonzero": lambda x: vnp.nonzero(x),
    "x.nonzero": lambda x: x.nonzero(),
    "where": lambda x: vnp.where(x > 0),
    "argwhere": lambda x: vnp.argwhere(x),
    "flatnonzero": lambda x: vnp.flatnonzero(x),
    "compress": lambda x: vnp.compress(x > 0, x),
    "extract": lambda x: vnp.extract(x > 0, x),
    "unique": lambda x: vnp.unique(x),
    "union1d": lambda x: vnp.union1d(x, x),
    "intersect1d": lambda x: vnp.intersect1d(x, x),
    "setdiff1d": lambda x: vnp.setdiff1d(x, x),
    "setxor1d": lambda x: vnp.setxor1d(x, x),
    "bincount": lambda x: vnp.bincount(x.astype(int)),
    "delete": lambda x: vnp.delete(x, x.astype(int)),
    "trim_zeros": lambda x: vnp.trim_zeros(x),
    "choose": lambda x: vnp.choose(x.astype(int), [x, x, x]),
    "roots": lambda x: vnp.roots(x),
    "polydiv": lambda x: vnp.polydiv(x, x, trim_leading_zeros=True),
    "segment_sum": lambda x: verax.ops.segment_sum(x, x.astype(int)),
    "window": lambda x: vnp.hanning(count(x)),
    "sum, axis": lambda x: vnp.sum(x, axis=count(x)),
    "mean, axis": lambda x: vnp.mean(x, axis=count(x)),
    "max, axis": lambda x: vnp.max(x, axis=count(x)),
    "expand_dims": lambda x: vnp.expand_dims(x, count(x)),
    "squeeze": lambda x: vnp.squeeze(x[None], count(x)),
    "flip": lambda x: vnp.flip(x, count(x)),
    "moveaxis": lambda x: vnp.moveaxis(x[None], count(x), 0),
    "roll, axis": lambda x: vnp.roll(x, 1, axis=count(x)),
    "softmax": lambda x: nn.softmax(x, axis=count(x)),
    "one_hot": lambda x: nn.one_hot(vnp.arange(3), count(x)),
    "repeat": lambda x: vnp.repeat(x, count(x)),
    "split": lambda x: vnp.split(x, count(x)),
    "split at": lambda x: vnp.split(x, [count(x)]),
    "nonzero, size": lambda x: vnp.nonzero(x, size=count(x)),
    "indices": lambda x: vnp.indices((count(x),)),
    "choice": lambda x: random.choice(KEY, count(x), (2,)),
    "permutation": lambda x: random.permutation(KEY, count(x)),
    "scan, length": lambda x: lax.scan(lambda c, _: (c, c), x, None, length=count(x)),
    "scan, unroll": lambda x: lax.scan(lambda c, _: (c, c), x, x, unroll=count(x)),
    "lax.cumsum": lambda x: lax.cumsum(x, count(x)),
}
INTEGER: dict[str, Callable[[Any], Any]] = {
    "index": lambda x: operator.index(count(x)),
    "a list": lambda x: [1, 2][count(x)],
    "a slice of a string": lambda x: "abc"[: count(x)],
    "range": lambda x: range(count(x)),
    "hex": lambda x: hex(count(x)),
    "chr": lambda x: chr(count(x)),
    "factorial": lambda x: math.factorial(count(x)),
    "gcd": lambda x: math.gcd(count(x), 2),
    "diag": lambda x: vnp.diag(x, count(x)),
    "identity": lambda x: vnp.identity(count(x)),
    "argmax": lambda x: vnp.argmax(x, axis=count(x)),
    "lax.argmax": lambda x: lax.argmax(x, count(x), np.int32),
    "concatenate": lambda x: vnp.concatenate([x, x], axis=count(x)),
}
ARRAY: dict[str, Callable[[Any], Any]] = {
    "asarray": lambda x: np.asarray(x),
    "array": lambda x: np.array(x, dtype=np.float64),
    "__array__": lambda x: x.__array__(),
    "sin": lambda x: np.sin(x),
    "add": lambda x: np.add(np.ones(3), x),
    "dot": lambda x: np.dot(np.ones(3), x),
    "scalar": lambda x: np.float32(total(x)),
    "concatenate": lambda x: np.concatenate([x, x]),
    "a part": lambda x: np.ones(3).__setitem__(slice(None), x),
    "a mask": lambda x: np.arange(3)[x > 0],
    "allclose": lambda x: np.allclose(x, 1.0),
}
MASK: dict[str, Callable[[Any], Any]] = {
    "x[mask]": lambda x: x[x > 0],
    "x[mask, 1]": lambda x: vnp.ones((3, 2))[x > 0, 1],
    "at[mask].set": lambda x: x.at[x > 0].set(vnp.ones(2)),
    "at[mask].get": lambda x: x.at[x > 0].get(),
}
OTHER: dict[str, tuple[type[Exception], Callable[[Any], Any]]] = {
    "hash": (TypeError, lambda x: hash(x)),
    "a key of a dict": (TypeError, lambda x: {total(x): 1}),
    "json": (TypeError, lambda x: json.dumps(total(x))),
    "format": (TypeError, lambda x: f"{total(x):.2f}"),
    "setitem": (TypeError, lambda x: operator.setitem(x, 0, 1.0)),
    "iteration": (TypeError, lambda x: list(total(x))),
    "len": (TypeError, lambda x: len(total(x))),
    "index of a float": (TypeError, lambda x: operator.index(total(x))),
    "truth of several": (ValueError, lambda x: bool(x)),
    "int of several": (TypeError, lambda x: int(x)),
    "np.zeros": (TypeError, lambda x: np.zeros(count(x))),
    "a shape": (TypeError, lambda x: x.reshape((count(x), 1))),
    "zeros": (TypeError, lambda x: vnp.zeros((count(x),))),
    "broadcast_to": (TypeError, lambda x: vnp.broadcast_to(x, (count(x), 3))),
    "normal": (TypeError, lambda x: random.normal(KEY, (count(x),))),
    "x[:n]": (IndexError, lambda x: x[: count(x)]),
    "x[::n]": (IndexError, lambda x: x[:: count(x)]),
    "x[1.0]": (TypeError, lambda x: x[total(x)]),
}
ASKED: list[tuple[str, type[Exception], Callable[[Any], Any]]] = [
    *(("bool: " + name, TracerBoolConversionError, f) for name, f in BOOL.items()),
    *(("value: " + name, ConcretizationTypeError, f) for name, f in VALUE.items()),
    *(("int: " + name, TracerIntegerConversionError, f) for name, f in INTEGER.items()),
    *(("NumPy: " + name, TracerArrayConversionError, f) for name, f in ARRAY.items()),
    *(("mask: " + name, NonConcreteBooleanIndexError, f) for name, f in MASK.items()),
    *((name, *row) for name, row in OTHER.items()),
]
POINT = np.array([1, 2, 0], np.float32)
UNDER: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jit": lambda f: verax.jit(f)(POINT),
    "vmap": lambda f: verax.vmap(f)(POINT[None]),
    "jit of grad": lambda f: verax.jit(verax.grad(f))(POINT),
    "grad of jit": lambda f: verax.grad(verax.jit(f))(POINT),
    "scan": lambda f: lax.scan(lambda c, x: (c, f(x)), 0.0, POINT[None]),
    "cond": lambda f: lax.cond(True, f, f, POINT),
    "while": lambda f: lax.while_loop(lambda x: x[0] > 9, f, POINT),
    "make_jaxpr": lambda f: verax.make_jaxpr(f)(POINT),
}


@pytest.mark.parametrize("under", UNDER)
@pytest.mark.parametrize(
    ("error", "ask"), [row[1:] for row in ASKED], ids=[row[0] for row in ASKED]
)
def test_asking_a_tracer_raises_what_jax_raises(
    error: type[Exception], ask: Callable[[Any], Any], under: str
) -> None:
    def program(x: Any) -> Any:
        ask(x)
        return x.sum() if "grad" in under else x

    with pytest.raises(error) as caught:
        UNDER[under](program)
    assert isinstance(caught.value, TracerBoolConversionError) == (
        error is TracerBoolConversionError
    )


def test_each_kind_is_told_from_the_others() -> None:
    kinds = {
        TracerBoolConversionError: BOOL["if"],
        ConcretizationTypeError: VALUE["float"],
        TracerIntegerConversionError: INTEGER["a list"],
        TracerArrayConversionError: ARRAY["sin"],
        NonConcreteBooleanIndexError: MASK["x[mask]"],
    }
    for kind, ask in kinds.items():
        with pytest.raises(kind) as caught:
            verax.jit(ask)(POINT)
        assert caught.type is kind


def test_a_value_from_an_outer_trace_refuses_by_the_class_of_what_asks() -> None:
    def inner(x: Any) -> Any:
        return verax.grad(lambda y: y * 2 if total(x) > y else y)(1.0)

    with pytest.raises(
        TracerBoolConversionError, match="depends on argument x of inner"
    ):
        verax.jit(inner)(POINT)


def test_classes_have_the_bases_of_jax() -> None:
    bases: dict[type, tuple[type, ...]] = {
        ConcretizationTypeError: (JAXTypeError, TypeError),
        TracerBoolConversionError: (ConcretizationTypeError, TypeError),
        TracerIntegerConversionError: (JAXTypeError, TypeError),
        TracerArrayConversionError: (JAXTypeError, TypeError),
        NonConcreteBooleanIndexError: (JAXIndexError, IndexError),
        UnexpectedTracerError: (JAXTypeError, TypeError),
        KeyReuseError: (JAXTypeError, TypeError),
        JaxRuntimeError: (RuntimeError,),
        errors.JaxprTypeError: (TypeError,),
        # Those of ours, with what they have always been caught by.
        LeakedTracer: (UnexpectedTracerError, RuntimeError),
        AbstractValueError: (JAXTypeError,),
        errors.CompileError: (JaxRuntimeError,),
        errors.ExecutionError: (JaxRuntimeError,),
        errors.CallbackError: (JaxRuntimeError,),
    }
    for cls, expected in bases.items():
        assert all(issubclass(cls, base) for base in expected), cls
        assert cls.__module__ == "verax.errors"
    assert not issubclass(TracerArrayConversionError, ConcretizationTypeError)
    assert errors.XlaError is JaxRuntimeError


def test_a_leaked_tracer_is_an_unexpected_one() -> None:
    kept = []
    verax.jit(lambda x: kept.append(x))(1.0)
    with pytest.raises(UnexpectedTracerError, match="has left the function"):
        kept[0] + 1
    with pytest.raises(UnexpectedTracerError):
        verax.jit(lambda y: kept[0] + y)(1.0)


def test_failures_of_programs_are_runtime_errors_of_jax() -> None:
    def host(x: Any) -> Any:
        raise KeyError("no such value")

    def program(x: Any) -> Any:
        return verax.pure_callback(host, verax.ShapeDtypeStruct((), np.float32), x)

    for call in (program, verax.jit(program)):
        with pytest.raises(JaxRuntimeError, match="no such value"):
            verax.block_until_ready(call(1.0))
    with pytest.raises(JaxRuntimeError, match="no_such_option"):
        verax.jit(vnp.sin, compiler_options={"no_such_option": 1})(1.0)


def test_arguments_are_called_by_their_names() -> None:
    def model(x: Any, *rest: Any, scale: Any = 1.0, **more: Any) -> Any:
        return bool(x + sum(rest) + scale + sum(more.values()))

    def message(*args: Any, **kwargs: Any) -> str:
        with pytest.raises(TracerBoolConversionError) as caught:
            verax.jit(model)(*args, **kwargs)
        return str(caught.value)

    text = message(1.0, 2.0, 3.0, scale=4.0, bias=5.0)
    for name in ("x", "rest[0]", "rest[1]", "scale"):
        assert f" argument {name} of model" in text
    assert "keyword argument bias of model" in text


def test_a_signature_that_cannot_be_read_makes_no_second_error() -> None:
    class Odd:
        @property
        def __signature__(self) -> Any:
            raise RuntimeError("no signature")

        def __call__(self, x: Any) -> Any:
            return bool(x)

    with pytest.raises(TracerBoolConversionError, match="on argument 0 of Odd"):
        verax.make_jaxpr(Odd())(1.0)


NUMPY_CALLS: dict[str, Callable[[Any], Any]] = {
    "verax.numpy.sin,": lambda x: np.sin(x),
    "verax.numpy.linalg.norm,": lambda x: np.linalg.norm(x),
    "the functions of verax.numpy,": lambda x: np.ones(3)[x],
    "verax.numpy.cos,": lambda x: math.cos(x),
}


@pytest.mark.parametrize("name", NUMPY_CALLS)
def test_numpy_on_tracers_is_pointed_to_ours(name: str) -> None:
    with pytest.raises(TypeError, match=f"Use {name}"):
        verax.jit(NUMPY_CALLS[name])(2)


@pytest.mark.parametrize(
    "ask",
    [
        lambda n: vnp.zeros(n),
        lambda n: vnp.ones(6).reshape(n, -1),
        lambda n: vnp.arange(n),
        lambda n: vnp.sum(vnp.ones((2, 2)), axis=n),
        lambda n: lax.iota("int32", n),
    ],
)
def test_shapes_are_said_to_be_static(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(ConcretizationTypeError, match=r"cannot depend on its inputs"):
        verax.jit(ask)(2)
    with pytest.raises(ConcretizationTypeError, match=r"in_axes=None"):
        verax.vmap(ask)(vnp.arange(2))


def kept(x: Any) -> Any:
    return {"a": x, "b": x}


def converted(x: Any) -> Any:
    return {"a": x.astype(int), "b": x}


def wrapped(x: Any) -> Any:
    return {"a": (x, x), "b": x}


def line_of(fun: Callable[..., Any]) -> str:
    return f"{fun.__name__} ({__file__}:{fun.__code__.co_firstlineno})"


def test_branches_that_differ_are_shown_with_their_lines() -> None:
    x = vnp.ones(3)
    with pytest.raises(TypeError, match=r"true_fun at path \['a'\]") as caught:
        lax.cond(True, kept, converted, x)
    text = str(caught.value)
    assert "has type float32[3] but the corresponding output of false_fun" in text
    assert f"true_fun, {line_of(kept)}; false_fun, {line_of(converted)}." in text
    assert "['b']" not in text
    with pytest.raises(
        TypeError, match=r"branch2 output at path \['a'\] is a <.*'tuple'>, so their"
    ) as caught:
        lax.switch(0, [kept, kept, wrapped], x)
    assert f"branch2, {line_of(wrapped)}." in str(caught.value)


def test_bodies_that_change_the_carry_are_shown_with_their_lines() -> None:
    def changed(carry: Any, _: Any) -> Any:
        return converted(carry["a"]), None

    carry = kept(vnp.ones(2))
    with pytest.raises(TypeError, match=r"carry\['a'\] has type float32") as caught:
        lax.scan(changed, carry, length=2)
    assert f"Revise {line_of(changed)} so that" in str(caught.value)
    with pytest.raises(TypeError, match=r"\['a'\] has type float32\[2\]") as caught:
        lax.fori_loop(0, 2, lambda i, c: converted(c["a"]), carry)
    assert f"<lambda> ({__file__}:" in str(caught.value)


def test_concatenate_shows_all_shapes() -> None:
    parts = [vnp.ones((2, 3)), vnp.ones((4, 3)), vnp.ones((2, 4))]
    with pytest.raises(ValueError, match=r"not \(2, 3\), \(4, 3\), \(2, 4\)"):
        vnp.concatenate(parts, 1)


class Speechless:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: verax.jit(lambda y: y)(x),
        lambda x: verax.grad(lambda y: y)(x),
        lambda x: verax.jit(lambda y: x)(1.0),
        lambda x: vnp.add(x, 1),
        lambda x: vnp.zeros((x,)),
        lambda x: random.normal(x),
        lambda x: lax.cond(True, lambda: x, lambda: 1),
    ],
)
def test_messages_survive_a_repr_that_fails(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="whose repr fails, of type Speechless"):
        call(Speechless())
