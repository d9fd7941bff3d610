"""Functions in other languages as operations: `verax.ffi` (floor 5).

A library that was compiled with XLA's headers hands over a pointer; from then on its
name is a target that programs call::

    register_ffi_target("rms_norm", pycapsule(library.RmsNorm))
    f = ffi_call("rms_norm", ShapeDtypeStruct(x.shape, x.dtype))
    y = f(x, eps=np.float32(1e-5))

Nothing is registered in verax: the table of targets is XLA's, one for the process.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from verax.backend.arrays.concrete import Layout
from verax.backend.lowering.mlir_text import dense, element_type, scalar_text
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import KeyDType, as_dtype
from verax.ir.records import ReprMixin
from verax.ops.calls.callbacks import METHODS
from verax.ops.custom.partitioned import (
    TYPED,
    ForeignParams,
    MinorToMajor,
    ffi_call_p,
    quoted,
)
from verax.ops.random.keys import random_unwrap, random_wrap
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import shown
from verax.rules.values.sizes import ShapeError

type FfiLayout = Sequence[int] | Layout | None
type Side = tuple[Sequence[ShapedArray], Sequence[MinorToMajor]]


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[FfiLayout] | None = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = TYPED,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function that calls a target of XLA, see `register_ffi_target`.

    It takes arrays by position and attributes by keyword: booleans, numbers (an int has
    64 bits, a float is a double; scalars of NumPy have their own type), strings,
    arrays, sequences and dictionaries of these. The target gets and gives the words of
    random keys: uint32 with one more dimension, which is the fastest one in memory.

    Args:
        target_name: the name under which the target is registered.
        result_shape_dtypes: an object with `shape` and `dtype`, such as a
            `ShapeDtypeStruct`, or a sequence of them, of which the function returns as
            many results.
        has_side_effect: whether to call it where nothing reads its results.
        vmap_method: what a batch is, see `pure_callback`; "legacy_vectorized" leaves
            operands as they are that are the same for all elements.
        input_layouts: for each operand the order of its dimensions in memory, from the
            slowest to the fastest (row-major: (0, 1, ...)), a `Layout`, or None for
            row-major.
        output_layouts: the same for results.
        input_output_aliases: which operand may be overwritten by which result, from
            numbers to numbers; types and layouts must be equal.
        custom_call_api_version: 4, or less for targets of older interfaces.
        legacy_backend_config: what those take in place of attributes.

    Raises:
        TypeError, ValueError: an argument is wrong; the message says which.
        JaxRuntimeError: no target has the name, or the target refuses the call.
    """
    check_options(vmap_method, custom_call_api_version, legacy_backend_config)
    several = isinstance(result_shape_dtypes, Sequence)
    given = result_shape_dtypes if several else [result_shape_dtypes]
    results = tuple([result_type(i, x) for i, x in enumerate(given)])
    expected = output_layouts if several or output_layouts is None else [output_layouts]
    outputs = orders("output", results, expected)
    params = ForeignParams(
        target_name,
        tuple([words(a) for a in results]),
        (),
        tuple(map(words_order, results, outputs)),
        (),
        legacy_backend_config or "",
        custom_call_api_version,
        bool(has_side_effect),
        vmap_method,
    )
    kind = type(result_shape_dtypes) if several else None
    aliases = input_output_aliases or {}
    return ForeignFunction(params, (results, outputs), kind, input_layouts, aliases)


def check_options(vmap_method: str | None, version: int, legacy: str | None) -> None:
    """Raise ValueError for options that mean nothing, or not together."""
    if vmap_method is not None and vmap_method not in METHODS:
        raise ValueError(
            "vmap_method must be one of the allowed methods "
            f"{', '.join(map(repr, METHODS))} or None, but got: {vmap_method!r}"
        )
    if version >= TYPED and legacy is not None:
        raise ValueError(
            "The use of the legacy_backend_config parameter requires "
            f"custom_call_api_version < {TYPED}; got {version}"
        )


@frozen(eq=False, repr=False)
class ForeignFunction(ReprMixin):
    """A foreign function, as `ffi_call` returns it: `params` lack what operands decide.

    `outputs` are the types and layouts of the results as the caller sees them.
    """

    params: ForeignParams
    outputs: Side
    container: type[Sequence[object]] | None
    input_layouts: Sequence[FfiLayout] | None
    aliases: Mapping[int, int]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the target with operands and attributes."""
        p = self.params
        avals = [aval_of(x) for x in args]
        inputs = orders("input", avals, self.input_layouts)
        pairs = shared(self.aliases, (avals, inputs), self.outputs)
        config = configuration(kwargs, p.api_version, p.config)
        layouts = tuple(map(words_order, avals, inputs))
        params = evolve(p, input_layouts=layouts, aliases=pairs, config=config)
        operands = [
            random_unwrap(x) if isinstance(a.dtype, KeyDType) else x
            for x, a in zip(args, avals, strict=True)
        ]
        result = ffi_call_p.bind(params, *operands)
        outs = [
            random_wrap(x, a.dtype.impl) if isinstance(a.dtype, KeyDType) else x
            for x, a in zip(result, self.outputs[0], strict=True)
        ]
        if self.container is None:
            return outs[0]
        return tuple(outs) if issubclass(self.container, tuple) else outs


def result_type(place: int, x: object) -> ShapedArray:
    """The declared type of a result.

    Raises:
        ValueError: it has no shape and dtype.
    """
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise ValueError(
            "All elements of result_shape_dtypes must have 'shape' and 'dtype' "
            f"attributes. Got {shown(x)} at position {place}; pass "
            "verax.ShapeDtypeStruct(shape, dtype)"
        )
    return ShapedArray(tuple([int(n) for n in x.shape]), as_dtype(x.dtype))


def words(aval: ShapedArray) -> ShapedArray:
    """The type as a target sees it: keys are their words, uint32 of shape (..., 2)."""
    dtype = aval.dtype
    if not isinstance(dtype, KeyDType):
        return aval
    return ShapedArray((*aval.shape, *dtype.word_shape), np.uint32)


def words_order(aval: ShapedArray, order: MinorToMajor) -> MinorToMajor:
    """The layout as a target sees it: the words of a key are neighbours."""
    return (*range(words(aval).ndim - 1, aval.ndim - 1, -1), *order)


def orders(
    side: str, avals: Sequence[ShapedArray], layouts: Sequence[FfiLayout] | None
) -> tuple[MinorToMajor, ...]:
    """The layouts of one side, from minor to major.

    Raises:
        ValueError: their number, or one of them, does not fit.
    """
    if layouts is None:
        layouts = [None] * len(avals)
    if len(layouts) != len(avals):
        raise ValueError(
            f"The number of {side}s ({len(avals)}) must equal the number of {side} "
            f"layouts ({len(layouts)})"
        )
    pairs = zip(avals, layouts, strict=True)
    return tuple([order_of(f"{side} {i}", a, x) for i, (a, x) in enumerate(pairs)])


def order_of(name: str, aval: ShapedArray, layout: FfiLayout) -> MinorToMajor:
    """The layout of one array, from minor to major.

    Raises:
        ValueError: it is not an order of the dimensions, or has tiles.
    """
    if layout is None:
        return tuple(reversed(range(aval.ndim)))
    if isinstance(layout, Layout):
        if layout.tiling is not None:
            raise ValueError("The FFI does not support layouts with tiling")
        layout = layout.major_to_minor
    out = tuple(reversed([int(axis) for axis in layout]))
    if sorted(out) != list(range(aval.ndim)):
        raise ShapeError(
            f"the layout of {name} must name each dimension of {aval} once, from major "
            f"to minor, not {tuple(reversed(out))}"
        )
    return out


def shared(
    aliases: Mapping[int, int], inputs: Side, outputs: Side
) -> tuple[tuple[int, int], ...]:
    """Pairs of an operand and the result that may overwrite it.

    Raises:
        ValueError: a number is too large, or the two differ in type or layout.
    """
    out = []
    for i, o in sorted((int(i), int(o)) for i, o in aliases.items()):
        head = f"input_output_aliases contains the mapping '{i}:{o}' "
        for side, k, size in (
            ("input", i, len(inputs[0])),
            ("output", o, len(outputs[0])),
        ):
            if not 0 <= k < size:
                raise ValueError(
                    f"{head}with {side} index {k} outside the range [0, {size})"
                )
        ins, outs = (inputs[0][i], inputs[1][i]), (outputs[0][o], outputs[1][o])
        if (ins[0].shape, ins[0].dtype) != (outs[0].shape, outs[0].dtype):
            raise ValueError(
                f"{head}referring to an input with abstract value {ins[0]} and an "
                f"output with a different abstract value {outs[0]}"
            )
        if ins[1] != outs[1]:
            raise ValueError(
                f"{head}referring to an input with layout {ins[1]} and an output with "
                f"a different layout {outs[1]}"
            )
        out.append((i, o))
    return tuple(out)


def configuration(kwargs: Mapping[str, object], version: int, legacy: str) -> str:
    """The configuration for the target: attributes as text, or the old string.

    Raises:
        ValueError: a target of an old interface takes no attributes.
        TypeError: an attribute is not of a type that XLA passes on.
    """
    if version < TYPED:
        if kwargs:
            raise ValueError(
                "The use of ffi_call attributes requires a custom call API version of "
                f"at least {TYPED}; got api_version={version}"
            )
        return legacy
    return fields(kwargs, "")


def fields(values: Mapping[str, object], path: str) -> str:
    """Named attributes, in the order of their names."""
    for name in values:
        if not isinstance(name, str):
            raise TypeError(
                f"attributes of ffi_call have strings as names, not {shown(name)}"
            )
    return ", ".join(
        [f"{quoted(k)} = {attribute(v, path + k)}" for k, v in sorted(values.items())]
    )


def attribute(value: object, path: str) -> str:
    """The text of one attribute.

    Raises:
        TypeError: XLA passes no such value on.

    >>> attribute(3, "n"), attribute(np.float32(0.5), "eps"), attribute([1, True], "x")
    ('3 : i64', '0.5 : f32', '[1 : i64, true]')
    """
    match value:
        case str():
            return quoted(value)
        case bool() | np.bool_():
            return "true" if value else "false"
        case int():
            return number(np.int64(value))
        case float():
            return number(np.float64(value))
        case np.generic() if value.dtype.kind in "iufV":
            return number(value)
        case np.ndarray() if value.dtype.kind in "biufcV":
            return dense(value, ShapedArray(value.shape, value.dtype))
        case Mapping():
            return f"{{{fields(value, f'{path}.')}}}"
        case list() | tuple():
            out = [attribute(x, f"{path}[{i}]") for i, x in enumerate(value)]
            return f"[{', '.join(out)}]"
    raise TypeError(
        f"the attribute {path} of ffi_call is {shown(value)}; booleans, numbers, "
        "strings, arrays of NumPy, sequences and dictionaries of them can be passed on"
    )


def number(value: np.generic) -> str:
    """The text of a number with its type."""
    return f"{scalar_text(value, value.dtype)} : {element_type(value.dtype)}"
