"""Bad input: one clear error each: what was wrong, where, and what to do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.sharding import PartitionSpec as P


class Thing:
    """No array, no pytree."""

    def __repr__(self) -> str:
        return "<a thing>"


def model(x: Any, y: Any = 1.0) -> Any:
    return x * y


# Without their types, so that mypy lets wrong calls pass.
JIT: Any = verax.jit
JVP: Any = verax.jvp
SIN: Any = vnp.sin

BOTH = (TypeError, ValueError)


def untyped(x: Any) -> Any:
    return x


class Convertible:
    def __jax_array__(self) -> Any:
        return vnp.ones(2)


class Unsigned:
    @property
    def __signature__(self) -> Any:
        raise TypeError

    def __call__(self, x: Any) -> Any:
        return x


def swapped(x1: Any, x2: Any) -> Any:
    x1[...], x2[...] = x2[...], x1[...]


def same_reference_twice() -> Any:
    ref = verax.new_ref(0.0)
    return ref, ref


def literal_nan() -> Any:
    with verax.debug_nans(True):
        return verax.jit(lambda x: (vnp.nan, x + 2))(3)


def with_rules(f: Any) -> Any:
    out = verax.custom_vjp(f)
    out.defvjp(lambda *args: (None, None), lambda _, g: (None,))
    return out


def batched_by(rule: Any) -> Any:
    f = verax.custom_batching.custom_vmap(untyped)
    f.def_vmap(rule)
    return f


type Errors = type[Exception] | tuple[type[Exception], ...]
type Case = tuple[Callable[[], Any], Errors, list[str]]

CASES: dict[str, Case] = {
    "jit: no array": (
        lambda: verax.jit(model)(1.0, {"a": [Thing()]}),
        TypeError,
        [
            "argument to model as",
            "path y['a'][0]:",
            "<a thing>",
            "static_argnums",
            "register_pytree",
        ],
    ),
    "jit: a string": (
        lambda: verax.jit(model)("text"),
        TypeError,
        ["argument to model as", "at path x: 'text'"],
    ),
    "jit: no array by name": (
        lambda: verax.jit(model)(1.0, y=Thing()),
        TypeError,
        ["argument to model as", "at path y:"],
    ),
    "jit: no array as output": (
        lambda: verax.jit(lambda x: {"a": x, "b": Thing()})(1.0),
        TypeError,
        ["function <lambda> at", "of type Thing", "component ['b']", "<a thing>"],
    ),
    "jit: no function": (
        lambda: JIT(3),
        TypeError,
        ["jit takes a function", "3"],
    ),
    "jit: static and not hashable": (
        lambda: verax.jit(model, static_argnums=1)(1.0, [1]),
        ValueError,
        ["static argument 1", "list", "not hashable", "tuple"],
    ),
    "jit: static number out of range": (
        lambda: verax.jit(model, static_argnums=5),
        ValueError,
        ["static_argnums", "argument 5", "2 positional"],
    ),
    "jit: static name unknown": (
        lambda: verax.jit(model, static_argnames="z"),
        ValueError,
        ["static_argnames", "['z']", "['x', 'y']"],
    ),
    "jit: static and donated": (
        lambda: verax.jit(model, static_argnums=0, donate_argnums=0),
        ValueError,
        ["static_argnames and donate_argnames", "'x'"],
    ),
    "grad: no scalar": (
        lambda: verax.grad(model)(vnp.ones(3)),
        TypeError,
        ["model", "Output had shape: (3,)", "output.sum()", "jacobian"],
    ),
    "grad: one element": (
        lambda: verax.grad(lambda x: vnp.array([x]))(1.0),
        TypeError,
        ["Output had shape: (1,)", "output.reshape(()) or output[0]", "output.sum()"],
    ),
    "grad: several outputs": (
        lambda: verax.grad(lambda x: (x, x))(1.0),
        TypeError,
        ["one scalar", "has_aux"],
    ),
    "grad: integer output": (
        lambda: verax.grad(lambda x: (x > 0).sum())(1.0),
        TypeError,
        ["real-valued outputs", "int32"],
    ),
    "grad: complex output": (
        lambda: verax.grad(lambda x: x * 1j)(1.0),
        TypeError,
        ["real-valued outputs", "complex64", "holomorphic"],
    ),
    "grad: integer input": (
        lambda: verax.grad(model)(3),
        TypeError,
        ["model", "np.inexact", "int32", "allow_int"],
    ),
    "jacfwd: complex input": (
        lambda: verax.jacfwd(model)(1j),
        TypeError,
        ["jacfwd requires real-valued inputs", "complex64", "holomorphic", "jacrev"],
    ),
    "grad: argnums out of range": (
        lambda: verax.grad(model, argnums=3)(1.0),
        TypeError,
        ["argnums=3", "model", "1 positional"],
    ),
    "grad: no array": (
        lambda: verax.grad(model)(Thing()),
        TypeError,
        ["<a thing>"],
    ),
    "grad: no array inside": (
        lambda: verax.grad(model, argnums=-1)(1.0, {"b": [Thing()]}),
        TypeError,
        ["argument y['b'][0] of model", "<a thing>"],
    ),
    "grad: argnums twice": (
        lambda: verax.grad(model, argnums=(1, -1))(1.0, 2.0),
        ValueError,
        ["argnums", "twice"],
    ),
    "grad: argnums by name": (
        lambda: verax.grad(model, argnums=untyped("y")),
        TypeError,
        ["argnums", "integer", "'y'"],
    ),
    "jit: no array beside a static argument": (
        lambda: JIT(lambda n, x: x, static_argnums=0)(1, Thing()),
        TypeError,
        ["argument to <lambda> as", "at path x:"],
    ),
    "jit: statics by what is no number": (
        lambda: JIT(model, static_argnums=1.5),
        TypeError,
        ["static_argnums", "integer", "1.5"],
    ),
    "jit: statics by what is no name": (
        lambda: JIT(model, static_argnames=[0]),
        TypeError,
        ["static_argnames", "name", "[0]"],
    ),
    "jit: static by number and donated by name": (
        lambda: JIT(model, static_argnums=0, donate_argnames="x"),
        ValueError,
        ["static_argnames and donate_argnames", "'x'"],
    ),
    "eval_shape: no array": (
        lambda: verax.eval_shape(model, 1.0, {"b": Thing()}),
        TypeError,
        ["path y['b']:"],
    ),
    "lower: no array": (
        lambda: JIT(model).lower(1.0, y=Thing()),
        TypeError,
        ["argument to model as", "at path y:"],
    ),
    "device_put: no array": (
        lambda: verax.device_put({"a": [1.0, Thing()]}),
        TypeError,
        ["device_put, leaf ['a'][1]"],
    ),
    "device_put_sharded: one tree": (
        lambda: verax.device_put_sharded(untyped(3.0), verax.devices()),
        TypeError,
        ["a sequence", "3.0"],
    ),
    "device_put_replicated: one device": (
        lambda: verax.device_put_replicated(3.0, untyped(verax.devices()[0])),
        ValueError,
        ["sequence of devices"],
    ),
    "vjp: several cotangents": (
        lambda: untyped(verax.vjp(model, 1.0)[1])(1.0, 2.0),
        TypeError,
        ["one cotangent", "tuple"],
    ),
    "jvp: a tangent of an integer": (
        lambda: verax.jvp(model, (3,), (1,)),
        TypeError,
        ["float0[]", "int32[]"],
    ),
    "jvp: an integer for the tangent of a float": (
        lambda: verax.jvp(model, (3.0,), (vnp.asarray(1),)),
        TypeError,
        ["float32[]", "int32[]"],
    ),
    "vmap: axes of one argument that is a dict": (
        lambda: verax.vmap(model, in_axes=untyped({"a": 0})),
        TypeError,
        ["in_axes", "{'a': 0}", "(axes,)"],
    ),
    "grad: aux is no pair": (
        lambda: verax.grad(model, has_aux=True)(1.0),
        TypeError,
        ["has_aux", "two-element tuple"],
    ),
    "jvp: no sequence": (
        lambda: JVP(model, 1.0, 1.0),
        TypeError,
        ["jvp", "primal and tangent", "float"],
    ),
    "jvp: another structure": (
        lambda: verax.jvp(model, (1.0, 2.0), (1.0,)),
        TypeError,
        ["structure"],
    ),
    "jvp: another shape": (
        lambda: verax.jvp(model, (vnp.ones(3),), (vnp.ones(2),)),
        TypeError,
        ["argument x of model", "float32[3]", "float32[2]"],
    ),
    "jvp: another dtype": (
        lambda: verax.jvp(model, (vnp.ones(3),), (vnp.ones(3, vnp.int32),)),
        TypeError,
        ["float32[3]", "int32[3]"],
    ),
    "vjp: another structure": (
        lambda: verax.vjp(model, 1.0)[1]((1.0, 1.0)),
        ValueError,
        ["cotangent", "structure"],
    ),
    "vjp: another shape": (
        lambda: verax.vjp(model, vnp.ones(3))[1](vnp.ones(2)),
        TypeError,
        ["output 0", "float32[3]", "float32[2]"],
    ),
    "vmap: a scalar": (
        lambda: verax.vmap(model)(1.0),
        ValueError,
        ["argument x of model", "is only 0 (its shape is ())"],
    ),
    "numpy: shapes do not broadcast": (
        lambda: vnp.ones(3) + vnp.ones(4),
        BOTH,
        ["3", "4"],
    ),
    "numpy: a list": (
        lambda: SIN([1.0, 2.0]),
        TypeError,
        ["sin", "list"],
    ),
    "numpy: None": (lambda: vnp.ones(3) + None, TypeError, ["NoneType"]),
    "numpy: a string": (lambda: vnp.ones(3) + "a", TypeError, ["str"]),
    "numpy: axis out of range": (
        lambda: vnp.sum(vnp.ones((2, 3)), axis=2),
        ValueError,
        ["2"],
    ),
    "numpy: reshape to another size": (
        lambda: vnp.ones(6).reshape(4, 2),
        BOTH,
        ["6"],
    ),
    "numpy: inner dimensions": (
        lambda: vnp.ones((2, 3)) @ vnp.ones((4, 5)),
        BOTH,
        ["3", "4"],
    ),
    "numpy: assignment": (
        lambda: vnp.ones(3).__setitem__(0, 1.0),
        TypeError,
        ["immutable", ".at[index].set"],
    ),
    "numpy: an unknown dtype": (
        lambda: vnp.zeros(3, "float31"),
        TypeError,
        ["float31"],
    ),
    "numpy: an integer that does not fit": (
        lambda: vnp.ones(3, vnp.int8) + 1000,
        OverflowError,
        ["1000", "int8"],
    ),
    "numpy: a float of a complex number": (
        lambda: float(vnp.array(1 + 2j)),
        TypeError,
        ["float(x)", "c64[]", "x.real"],
    ),
    "jit: an array of objects": (
        lambda: verax.grad(SIN)(np.array([1, 2], object)),
        TypeError,
        ["argument x of sin", "is not a valid JAX type", "dtype('O')"],
    ),
    "jit: a type for an array": (
        lambda: verax.jit(model)(verax.ShapeDtypeStruct((4, 2), "int32")),
        TypeError,
        [
            "Argument 'x' of shape int32[4,2] of type",
            "is not a valid JAX type",
            "lower",
        ],
    ),
    "jit: a type among outputs": (
        lambda: verax.jit(lambda: verax.ShapeDtypeStruct((4, 2), "int32"))(),
        TypeError,
        ["A ShapeDtypeStruct does not have a value, and only arrays"],
    ),
    "jit: what is yet to be made an array": (
        lambda: JIT(model)(Convertible()),
        BOTH,
        ["Triggering __jax_array__() during abstractification is no longer", "path x:"],
    ),
    "jit: in_shardings of another length": (
        lambda: verax.jit(model, in_shardings=(None,) * 3)(1.0, 2.0),
        ValueError,
        ["pjit in_shardings is the wrong length", "of length 3", "of length 2."],
    ),
    "jit: in_shardings that are no tuple": (
        lambda: verax.jit(model, in_shardings={"x": None})(1.0),
        ValueError,
        ["pjit in_shardings is not a tuple", "might need to be wrapped"],
    ),
    "jit: out_shardings of another length": (
        lambda: verax.jit(untyped, out_shardings=[None, None])([1.0]),
        ValueError,
        ["different lengths of list at key path\n    pjit out_shardings\n"],
    ),
    "jit: out_shardings that leave a dimension open": (
        lambda: verax.jit(model, out_shardings=P(P.UNCONSTRAINED)),
        ValueError,
        ["Unconstrained dims are not allowed in out_shardings"],
    ),
    "jit: a static method": (
        lambda: JIT(staticmethod(model)),
        TypeError,
        ["staticmethod arguments are not supported", "above @verax.jit"],
    ),
    "jit: donated names without a signature": (
        lambda: verax.jit(Unsigned(), donate_argnames="x"),
        ValueError,
        ["Getting the signature of function", "failed. Pass donate_argnums"],
    ),
    "cond: a reference twice": (
        lambda: lax.cond(True, swapped, swapped, *[verax.new_ref(0.0)] * 2),
        ValueError,
        ["for cond the mutable array", "at both x1 and x2"],
    ),
    "scan: a reference twice": (
        lambda: lax.scan(lambda c, x: swapped(*c), same_reference_twice(), length=1),
        ValueError,
        ["for scan the mutable array", "at both c[0] and c[1]"],
    ),
    "custom_vmap: another structure": (
        lambda: verax.vmap(batched_by(lambda n, b, x: ([x], [True])))(vnp.ones(2)),
        BOTH,
        ["returned by custom vmap rule (<lambda>)", "original custom-vmapped function"],
    ),
    "custom_vmap: marks of another structure": (
        lambda: verax.vmap(batched_by(lambda n, b, x: ([x], True)))(vnp.ones(2)),
        BOTH,
        ["structure of output value and output batching specification"],
    ),
    "jit: compiler options inside of another": (
        lambda: verax.jit(
            lambda x: verax.jit(untyped, compiler_options={"xla_a": 1})(x)
        )(1.0),
        ValueError,
        ["`compiler_options` can only be passed to top-level `verax.jit`", "untyped"],
    ),
    "debug_nans: a literal": (
        literal_nan,
        FloatingPointError,
        ["the de-optimized function did not produce one", "literal"],
    ),
    "custom_vjp: a reference twice": (
        lambda: with_rules(swapped)(*same_reference_twice()),
        ValueError,
        ["for swapped the mutable array", "at both x1 and x2"],
    ),
    "custom_vjp: a reference returned": (
        lambda: with_rules(untyped)(verax.new_ref(0.0)),
        ValueError,
        ["function untyped", "returned a mutable array reference"],
    ),
    "linear_transpose: from integers to floats": (
        lambda: verax.linear_transpose(lambda x: 2.0 * x, 1),
        TypeError,
        ["linear_transpose only supports [float", "int32[] -> float32[]"],
    ),
    "linear_transpose: another structure": (
        lambda: verax.linear_transpose(lambda x: [x, x], 1.0)(1.0),
        TypeError,
        ["cotangent tree does not match function output"],
    ),
    "linear_transpose: another shape": (
        lambda: verax.linear_transpose(lambda x: vnp.stack([x, x]), 1.0)(1.0),
        TypeError,
        ["cotangent type does not match function output", "float32[2]"],
    ),
    "linear_transpose: a real number for a complex one": (
        lambda: verax.linear_transpose(lambda x: 1j * x, 1.0)(1.0),
        TypeError,
        ["cotangent type does not match function output", "complex64[]"],
    ),
    "zeros: a traced size": (
        lambda: verax.jit(vnp.zeros)(2),
        TypeError,
        [".\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller"],
    ),
    "config: devices after the first array": (
        lambda: verax.config.update("num_cpu_devices", 2048),
        RuntimeError,
        ["num_cpu_devices config should be updated before backends are initialized"],
    ),
    "jvp: a list for a tuple": (
        lambda: verax.jvp(SIN, (1.0,), [1.0]),
        TypeError,
        ["must have the same tree structure", "PyTreeDef((*,))", "PyTreeDef([*])"],
    ),
    "jvp: a tangent of another shape": (
        lambda: verax.jvp(SIN, (vnp.ones(3),), (vnp.ones(4),)),
        BOTH,
        ["jvp called with different primal and tangent shapes", "argument x of sin"],
    ),
    "linearize: a tangent of another type": (
        lambda: verax.linearize(SIN, 1.0)[1](1),
        BOTH,
        ["tangent values inconsistent with the original primal values", "int32[]"],
    ),
    "vmap: a keyword of another size": (
        lambda: verax.vmap(model)(vnp.ones(1), y={"a": vnp.ones(2)}),
        ValueError,
        ["axis 0 of argument x of", "axis 0 of kwargs['y']['a'] of type float32[2]"],
    ),
    "vmap: nothing at all": (
        lambda: verax.vmap(model)({}),
        ValueError,
        ["got empty *args=({},) and **kwargs={}"],
    ),
    "vmap: no array as output": (
        lambda: verax.vmap(lambda x: "text")(vnp.ones(2)),
        TypeError,
        ["Output from batched function <lambda> at", "is not a valid JAX type"],
    ),
    "pmap: nothing mapped": (
        lambda: verax.pmap(model)({}),
        ValueError,
        ["pmap requires at least one argument with a mapped axis.", "model"],
    ),
    "pmap: a static argument by keyword": (
        lambda: verax.pmap(model, static_broadcasted_argnums=(1,))(vnp.ones(1), y=2),
        ValueError,
        ["static_broadcasted_argnums=(1,)", "only 1 positional argument. All"],
    ),
    "pmap: axes that do not fit": (
        lambda: verax.pmap(model, in_axes=((0, 0), 0))((vnp.ones(1),), vnp.ones(1)),
        ValueError,
        ["different lengths of tuple at key path\n    pmap in_axes[0][0]\n"],
    ),
    "with_refs: no entry": (
        lambda: verax.vjp(model, 1.0, 2.0)[1].with_refs(verax.new_ref(0.0), None),
        ValueError,
        ["tree structures differ", "NoneType"],
    ),
    "config: no such option": (
        lambda: verax.config.update("verax_enable_x65", True),
        AttributeError,
        ["enable_x65", "enable_x64"],
    ),
    "config: a wrong value": (
        lambda: verax.config.update("enable_x64", "yes"),
        TypeError,
        ["enable_x64", "bool", "'yes'"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_clear_error(name: str) -> None:
    action, kind, words = CASES[name]
    with pytest.raises(kind) as error:
        action()
    text = str(error.value)
    assert [word for word in words if word not in text] == [], text
    assert len(text) < 900
    # Nothing is half changed: the next operation works.
    assert (vnp.ones(2) * 2).tolist() == [2, 2]


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("numpy")])
def test_the_same_under_jit(name: str) -> None:
    action, kind, words = CASES[name]
    with pytest.raises(kind) as error:
        verax.jit(lambda: (action(), None)[1])()
    assert [word for word in words if word not in str(error.value)] == []
    assert (vnp.ones(2) * 2).tolist() == [2, 2]


def test_user_errors_pass_through_unchanged() -> None:
    class Own(Exception):
        """An exception of the user's."""

    def fail(x: Any) -> Any:
        raise Own("mine")

    for transform in (verax.jit, verax.grad, verax.vmap):
        with pytest.raises(Own, match=r"^mine$"):
            transform(fail)(vnp.ones(2) if transform is verax.vmap else 1.0)


def test_the_process_survives_what_xla_refuses() -> None:
    with pytest.raises(Exception, match=r"."):
        verax.jit(lambda x: x, compiler_options={"xla_no": "x"})(np.ones(2))
    assert float(verax.jit(lambda x: x + 1)(1.0)) == 2
