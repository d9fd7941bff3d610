"""Modules for programs whose sizes are symbols (floor 4).

Every function takes the values of the variables first, and `main` finds them from the
sizes of its arguments. Rows write operations as ever; those whose attributes or result
types say a size become their dynamic forms, in which sizes are operands::

    "stablehlo.dynamic_reshape"(%x, %shape) : (tensor<?x3xf32>, tensor<1xi32>) -> ...

The attributes of an operation are text, and so are dimensions: what is no integer in
them is read back as a shape.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from verax.backend.lowering.function_writer import EquationText, Platforms
from verax.backend.lowering.mlir_text import escaped, stored_shape
from verax.backend.lowering.module_writer import Kind, Module, Writer
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import as_dtype, bool_, int32, numpy_dtype
from verax.ir.jaxpr import Eqn
from verax.ops.symbols.expression import FLOORDIV, MAX, MOD, Size, SymbolicDim, Term
from verax.ops.symbols.parse import Plan, is_symbolic, parsed_shape, solving_plan
from verax.rules.rows.emitter import Operand, Region, compared, converted, i64s
from verax.rules.rows.infer import Mask
from verax.rules.rows.row import Engine
from verax.transforms.pipeline import Body

COUNT: Final = ShapedArray((), int32)
LIST: Final = re.compile(r"array<i64(?:: (.*))?>")
DENSE: Final = re.compile(r"dense<\[?(.*?)\]?> : tensor<(\d+)x2xi64>")
LAYOUT: Final = "dense<0> : tensor<1xindex>"


class SymbolicModule(Module):
    """A module that finds the values of variables by `plan`, and hands them on."""

    def __init__(self, engine: Engine, platforms: Platforms, plan: Plan) -> None:
        super().__init__(engine, platforms)
        self.plan = plan

    def writer(self) -> "SymbolicWriter":
        return SymbolicWriter(self)

    def begin(
        self, writer: Writer, arguments: Sequence[Operand], *, public: bool
    ) -> None:
        """See `Module.begin`: `main` finds the values of the variables."""
        assert isinstance(writer, SymbolicWriter)
        if public:
            writer.find_sizes(arguments)
            writer.check_sizes(arguments)

    def parameters(self, writer: Writer, *, public: bool) -> list[tuple[Operand, str]]:
        """See `Module.parameters`: the values of the variables, but for `main`."""
        assert isinstance(writer, SymbolicWriter)
        sizes = [] if public else list(writer.values.items())
        marks = [(x, f'jax.global_constant = "{name}"') for name, x in sizes]
        return [*super().parameters(writer, public=public), *marks]

    def copy(self, text: str) -> str:
        """See `Module.copy`: refined for the sizes of each call, so copied for it."""
        self.copied.pop(text, None)
        return super().copy(text)

    def passed(self, writer: Writer, symbol: str) -> list[Operand]:
        """See `Module.passed`."""
        assert isinstance(writer, SymbolicWriter)
        return [*super().passed(writer, symbol), *writer.values.values()]

    def text_for(self, eqn: Eqn, kind: Kind, scalars: Mask) -> EquationText | None:
        """None: the sizes of a function are not in the text of an equation."""
        self.row_of(eqn)
        self.kinds[kind] = None
        return None


def symbolic_module(engine: Engine, platforms: Platforms, body: Body) -> SymbolicModule:
    """The module for a program whose arguments have symbolic sizes.

    Raises:
        ValueError: these do not say what the variables are.
    """
    plan = solving_plan([stored_shape(aval) for aval in body.in_avals])
    return SymbolicModule(engine, platforms, plan)


class SymbolicWriter(Writer):
    """Writes operations in their dynamic forms where they need sizes."""

    module: SymbolicModule

    def __init__(self, module: SymbolicModule) -> None:
        super().__init__(module)
        self.values = {n: Operand(f"%size_{n}", COUNT) for n in module.plan.names}

    def find_sizes(self, arguments: Sequence[Operand]) -> None:
        """Find the values of the variables, in the order of the plan."""
        plan, self.values = self.module.plan, {}
        for step in plan.steps:
            total = self.axis_size(arguments[step.argument], step.axis)
            less = self.count_op("subtract", total, self.size(step.rest))
            factor = self.size(step.factor)
            result = less if step.factor == 1 else self.count_op("divide", less, factor)
            self.values[step.name] = result
            if step.factor != 1:
                left = self.count_op("remainder", less, factor)
                self.assert_that(
                    compared(self, left, "EQ", self.size(0)),
                    f"Division had remainder {{0}} when computing the value of "
                    f"'{step.name}'",
                    left,
                )
            self.assert_that(
                compared(self, result, "GE", self.size(1)),
                f"Expected value >= 1 for dimension variable '{step.name}', but found "
                "{0}",
                result,
            )

    def check_sizes(self, arguments: Sequence[Operand]) -> None:
        """Writes checks of what the sizes must satisfy beyond giving the variables."""
        plan = self.module.plan
        used = {(step.argument, step.axis) for step in plan.steps}
        for one in plan.equations:
            place = one.argument, one.axis
            if isinstance(one.dim, int) or place in used:
                continue
            total, due = (
                self.axis_size(arguments[place[0]], place[1]),
                self.size(one.dim),
            )
            self.assert_that(
                compared(self, total, "EQ", due),
                f"Found inconsistency between the size {{0}} of dimension {one.axis} "
                f"of argument {one.argument} and the specification '{one.dim}' "
                "(= {1})",
                total,
                due,
            )
        for constraint in plan.constraints:
            result = self.size(constraint.less)
            relation = "equal" if constraint.equal else "greater or equal"
            self.assert_that(
                compared(
                    self, result, "EQ" if constraint.equal else "GE", self.size(0)
                ),
                f"Expected '{constraint.less}' to be {relation} to 0, but found {{0}}",
                result,
            )

    def assert_that(self, holds: Operand, message: str, *values: Operand) -> None:
        """Write that the compiler is to refuse sizes for which it does not hold."""
        self.plain(
            "stablehlo.custom_call",
            (holds, *values),
            (),
            (),
            call_target_name='"shape_assertion"',
            api_version="2 : i32",
            has_side_effect="true",
            error_message=f'"{escaped(message)}"',
        )

    def plain(
        self,
        name: str,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        regions: Sequence[tuple[Sequence[ShapedArray], Region]] = (),
        **attributes: str,
    ) -> tuple[Operand, ...]:
        """An operation as it stands."""
        return super().op(name, operands, results, regions, **attributes)

    def op(
        self,
        name: str,
        /,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        regions: Sequence[tuple[Sequence[ShapedArray], Region]] = (),
        **attributes: str,
    ) -> tuple[Operand, ...]:
        """See `Emitter.op`; in the dynamic form, if that is needed."""
        form = FORMS.get(name)
        if form is not None:
            out = form(self, operands, results, attributes)
            if out is not None:
                return out
        if name == "stablehlo.reduce_window" and has_names(attributes["padding"]):
            operands, attributes = padded(self, operands, attributes)
        return self.plain(name, operands, results, regions, **attributes)

    def used(self, x: Operand) -> Operand:
        """See `FunctionText.used`; a constant may be a size, and fill symbolic ones."""
        value, shape = x.value, stored_shape(x.aval)
        size = isinstance(value, SymbolicDim)
        if x.name or not (size or is_symbolic(shape)):
            return super().used(x)
        scalar = Operand("", x.aval.with_shape(()), x.value)
        if isinstance(value, SymbolicDim):
            scalar = converted(self, self.size(value), x.aval.dtype)
        if not shape:
            return scalar
        return self.op(
            "stablehlo.broadcast_in_dim",
            (scalar,),
            (x.aval,),
            broadcast_dimensions=i64s(()),
        )[0]

    def axis_size(self, x: Operand, axis: int) -> Operand:
        """The size of one dimension of an operand."""
        return self.plain(
            "stablehlo.get_dimension_size", (x,), (COUNT,), dimension=f"{axis} : i64"
        )[0]

    def count_op(self, name: str, x: Operand, y: Operand) -> Operand:
        """An operation on two sizes."""
        return self.plain(f"stablehlo.{name}", (x, y), (COUNT,))[0]

    def size(self, dim: Size) -> Operand:
        """The value of a dimension, computed once in a region."""
        if not isinstance(dim, SymbolicDim):
            return Operand("", COUNT, dim)
        key = ("size", dim)
        entry = self.scalars.get(key)
        if entry is None:
            entry = self.scalars[key] = self.sum_of(dim)
        return entry

    def sum_of(self, dim: SymbolicDim) -> Operand:
        """The operations that compute a dimension."""
        return self.folded("add", [self.product(term, n) for term, n in dim.terms])

    def product(self, term: Term, n: int) -> Operand:
        """The operations that compute a term, times an integer."""
        parts = [] if n == 1 and term.powers else [self.size(n)]
        for factor, exponent in term.powers:
            value = self.values.get(factor.name)
            if factor.operands or value is None:
                value = self.operation(factor.name, *factor.operands)
            parts += [value] * exponent
        return self.folded("multiply", parts)

    def folded(self, name: str, parts: Sequence[Operand]) -> Operand:
        """An operation on some sizes, from left to right."""
        total, *rest = parts
        for part in rest:
            total = self.count_op(name, total, part)
        return total

    def operation(self, name: str, x: Size, y: Size) -> Operand:
        """floordiv, mod, max or min of two sizes."""
        one, other = self.size(x), self.size(y)
        if name not in (FLOORDIV, MOD):
            return self.count_op("maximum" if name == MAX else "minimum", one, other)
        # StableHLO rounds to zero.
        rest = self.count_op("remainder", one, other)
        zero, flag = self.size(0), ShapedArray((), bool_)
        signs = self.plain(
            "stablehlo.compare",
            (compared(self, rest, "LT", zero), compared(self, other, "LT", zero)),
            (flag,),
            (),
            comparison_direction="#stablehlo<comparison_direction NE>",
        )[0]
        off = compared(self, rest, "NE", zero)
        off = self.plain("stablehlo.and", (off, signs), (flag,))[0]
        if name == MOD:
            more = self.count_op("add", rest, other)
            return self.plain("stablehlo.select", (off, more, rest), (COUNT,))[0]
        quotient = self.count_op("divide", one, other)
        less = self.count_op("subtract", quotient, self.size(1))
        return self.plain("stablehlo.select", (off, less, quotient), (COUNT,))[0]

    def list_of(self, sizes: Sequence[Size]) -> Operand:
        """Sizes as one operand."""
        aval = ShapedArray((len(sizes),), int32)
        if all([isinstance(size, int) for size in sizes]):
            return Operand("", aval, np.array(sizes, np.int32))
        return self.stacked([self.size(size) for size in sizes])

    def stacked(self, scalars: Sequence[Operand]) -> Operand:
        """Scalars as one operand."""
        one, aval = ShapedArray((1,), int32), ShapedArray((len(scalars),), int32)
        parts = [self.plain("stablehlo.reshape", (x,), (one,))[0] for x in scalars]
        if len(parts) == 1:
            return parts[0]
        return self.plain("stablehlo.concatenate", parts, (aval,), dimension="0 : i64")[
            0
        ]

    def sizes_in(self, text: str) -> tuple[Size, ...]:
        """The sizes that an attribute lists."""
        match = LIST.fullmatch(text)
        assert match is not None, text
        return parsed_shape(match[1] or "", self.scope)

    @property
    def scope(self) -> Any:
        """The scope of the program's dimensions."""
        dims = [e.dim for e in self.module.plan.equations]
        return next(dim.scope for dim in dims if isinstance(dim, SymbolicDim))


type Attributes = Mapping[str, str]
type Form = Callable[
    [SymbolicWriter, Sequence[Operand], Sequence[ShapedArray], Attributes],
    tuple[Operand, ...] | None,
]


def has_names(text: str) -> bool:
    """Whether an attribute lists sizes that are not integers.

    >>> has_names("array<i64: 1, b>"), has_names("array<i64: 1, 2>")
    (True, False)
    """
    dense = DENSE.fullmatch(text)
    match = dense or LIST.fullmatch(text)
    return match is not None and any(c.isalpha() for c in match[1] or "")


def of_result(name: str) -> Form:
    """An operation that takes the shape of its result as its last operand."""

    def form(
        e: SymbolicWriter,
        xs: Sequence[Operand],
        outs: Sequence[ShapedArray],
        attributes: Attributes,
    ) -> tuple[Operand, ...] | None:
        shape: Shape = stored_shape(outs[0])
        if not is_symbolic(shape):
            return None
        return e.plain(name, (*xs, e.list_of(shape)), outs, (), **attributes)

    return form


def of_attributes(name: str, *listed: str) -> Form:
    """An operation that takes the sizes in some attributes as operands."""

    def form(
        e: SymbolicWriter,
        xs: Sequence[Operand],
        outs: Sequence[ShapedArray],
        attributes: Attributes,
    ) -> tuple[Operand, ...] | None:
        if not any([has_names(attributes[key]) for key in listed]):
            return None
        sizes = [e.list_of(e.sizes_in(attributes[key])) for key in listed]
        rest = {key: text for key, text in attributes.items() if key not in listed}
        return e.plain(name, (*xs, *sizes), outs, (), **rest)

    return form


def dynamic_slice(
    e: SymbolicWriter,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
    attributes: Attributes,
) -> tuple[Operand, ...] | None:
    """A slice at starts that are clamped so that all of it lies inside."""
    text = attributes["slice_sizes"]
    if not has_names(text):
        return None
    sizes, shape = e.sizes_in(text), stored_shape(xs[0].aval)
    aval = ShapedArray((len(sizes),), int32)
    room = e.list_of([whole - size for whole, size in zip(shape, sizes, strict=True)])
    given = e.stacked([converted(e, start, int32) for start in xs[1:]])
    zero, steps = e.list_of((0,) * len(sizes)), e.list_of((1,) * len(sizes))
    (low,) = e.plain("stablehlo.maximum", (given, zero), (aval,))
    (starts,) = e.plain("stablehlo.minimum", (low, room), (aval,))
    # A sum of the starts and the sizes is what refining looks for.
    (limits,) = e.plain("stablehlo.add", (starts, e.list_of(sizes)), (aval,))
    return e.plain("stablehlo.real_dynamic_slice", (xs[0], starts, limits, steps), outs)


def custom_call(
    e: SymbolicWriter,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
    attributes: Attributes,
) -> tuple[Operand, ...] | None:
    """A call whose results have symbolic sizes takes their shapes as operands."""
    if not any([is_symbolic(out.shape) for out in outs]):
        return None
    shapes = [e.list_of(stored_shape(out)) for out in outs]
    first = len(xs)
    places = ", ".join([str(first + i) for i in range(len(outs))])
    more = {"indices_of_shape_operands": f"dense<[{places}]> : tensor<{len(outs)}xi64>"}
    layouts = attributes.get("operand_layouts")
    if layouts is not None:
        own = [layouts[1:-1]] if layouts != "[]" else []
        more["operand_layouts"] = f"[{', '.join([*own, *[LAYOUT] * len(outs)])}]"
    return e.plain(
        "stablehlo.custom_call", (*xs, *shapes), outs, (), **{**attributes, **more}
    )


def top_k(
    e: SymbolicWriter,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
    attributes: Attributes,
) -> tuple[Operand, ...] | None:
    """The largest elements, as many as a size says: a call that refining replaces."""
    text = attributes["k"].removesuffix(" : i64")
    if not any([c.isalpha() for c in text]):
        return None
    (count,) = parsed_shape(text, e.scope)
    return e.plain(
        "stablehlo.custom_call",
        (*xs, e.size(count)),
        outs,
        (),
        call_target_name='"stablehlo.dynamic_top_k"',
    )


def random_bits(
    e: SymbolicWriter,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
    attributes: Attributes,
) -> tuple[Operand, ...] | None:
    """Random bits of a symbolic shape: a call that refining replaces."""
    if not is_symbolic(outs[1].shape):
        return None
    return e.plain(
        "stablehlo.custom_call",
        (*xs, e.list_of(outs[1].shape)),
        outs,
        (),
        call_target_name='"stablehlo.dynamic_rng_bit_generator"',
        **attributes,
    )


def window_pads(e: SymbolicWriter, attributes: Attributes) -> list[tuple[Size, ...]]:
    """The padding of each dimension, low and high."""
    dense = DENSE.fullmatch(attributes["padding"])
    assert dense is not None, attributes["padding"]
    flat = parsed_shape(re.sub(r"[\[\]]", "", dense[1]), e.scope)
    return [flat[i : i + 2] for i in range(0, len(flat), 2)]


def padded(
    e: SymbolicWriter, xs: Sequence[Operand], attributes: Attributes
) -> tuple[Sequence[Operand], dict[str, str]]:
    """The operands of a reduction over windows, padded by sizes with the identities."""
    pairs, count = window_pads(e, attributes), len(xs) // 2
    lows, highs = (e.list_of([pair[i] for pair in pairs]) for i in (0, 1))
    out: list[Operand] = []
    for x, start in zip(xs[:count], xs[count:], strict=True):
        sizes = zip(x.aval.shape, pairs, strict=True)
        aval = x.aval.with_shape([n + low + high for n, (low, high) in sizes])
        gaps = e.list_of((0,) * len(pairs))
        out += e.plain("stablehlo.dynamic_pad", (x, start, lows, highs, gaps), (aval,))
    rest = {key: text for key, text in attributes.items() if key != "padding"}
    return (*out, *xs[count:]), rest


def convolution(
    e: SymbolicWriter,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
    attributes: Attributes,
) -> tuple[Operand, ...] | None:
    """A convolution whose padding is an operand."""
    if not has_names(attributes["padding"]):
        return None
    rows = [e.list_of(pair) for pair in window_pads(e, attributes)]
    aval = ShapedArray((len(rows), 2), int32)
    flat = ShapedArray((1, 2), int32)
    named = [e.plain("stablehlo.reshape", (x,), (flat,))[0] for x in rows]
    (pads,) = e.plain("stablehlo.concatenate", named, (aval,), dimension="0 : i64")
    rest = {key: text for key, text in attributes.items() if key != "padding"}
    return e.plain("stablehlo.dynamic_conv", (*xs, pads), outs, (), **rest)


def bitcast(
    e: SymbolicWriter,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
    attributes: Attributes,
) -> tuple[Operand, ...] | None:
    """Words joined to wider ones, or split: refining knows only bitcasts of a width."""
    (x,), (out,) = xs, outs
    if not is_symbolic(out.shape) or x.aval.ndim == out.ndim:
        return None
    if x.aval.ndim > out.ndim:
        return (joined_words(e, x, out),)
    return (split_words(e, x, out),)


def joined_words(e: SymbolicWriter, x: Operand, out: ShapedArray) -> Operand:
    """Elements whose bits are those of the last dimension, the lowest first."""
    wide = unsigned(out)
    narrow = x.aval.with_dtype(unsigned(x.aval).dtype)
    (words,) = e.plain("stablehlo.bitcast_convert", (x,), (narrow,))
    count, last, bits = x.aval.shape[-1], x.aval.ndim - 1, bits_of(narrow)
    total: Operand | None = None
    for i in range(count):
        (word,) = e.op(
            "stablehlo.slice",
            (words,),
            (narrow.with_shape((*out.shape, 1)),),
            (),
            start_indices=i64s((*(0,) * last, i)),
            limit_indices=i64s((*out.shape, i + 1)),
            strides=i64s((1,) * (last + 1)),
        )
        (word,) = e.op("stablehlo.reshape", (word,), (narrow.with_shape(out.shape),))
        word = converted(e, word, wide.dtype)
        if i:
            by = e.constant(i * bits, wide)
            (word,) = e.op("stablehlo.shift_left", (word, by), (wide,))
        if total is not None:
            (word,) = e.op("stablehlo.or", (total, word), (wide,))
        total = word
    assert total is not None
    return e.plain("stablehlo.bitcast_convert", (total,), (out,))[0]


def split_words(e: SymbolicWriter, x: Operand, out: ShapedArray) -> Operand:
    """The bits of each element along a new last dimension, the lowest first."""
    wide, narrow = unsigned(x.aval), unsigned(out)
    (whole,) = e.plain("stablehlo.bitcast_convert", (x,), (wide,))
    one, bits = narrow.with_shape((*wide.shape, 1)), bits_of(narrow)
    parts: list[Operand] = []
    for i in range(out.shape[-1]):
        by = e.constant(i * bits, wide)
        (word,) = e.op("stablehlo.shift_right_logical", (whole, by), (wide,))
        word = converted(e, word, narrow.dtype)
        parts += e.op("stablehlo.reshape", (word,), (one,))
    (full,) = e.op(
        "stablehlo.concatenate", parts, (narrow,), dimension=f"{wide.ndim} : i64"
    )
    return e.plain("stablehlo.bitcast_convert", (full,), (out,))[0]


def bits_of(aval: ShapedArray) -> int:
    """The number of bits an element has."""
    return 8 * numpy_dtype(aval.dtype).itemsize


def unsigned(aval: ShapedArray) -> ShapedArray:
    """The type with unsigned integers of the same width."""
    return aval.with_dtype(as_dtype(f"uint{bits_of(aval)}"))


FORMS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        "stablehlo.broadcast_in_dim": of_result("stablehlo.dynamic_broadcast_in_dim"),
        "stablehlo.reshape": of_result("stablehlo.dynamic_reshape"),
        "stablehlo.iota": of_result("stablehlo.dynamic_iota"),
        "stablehlo.slice": of_attributes(
            "stablehlo.real_dynamic_slice", "start_indices", "limit_indices", "strides"
        ),
        "stablehlo.pad": of_attributes(
            "stablehlo.dynamic_pad",
            "edge_padding_low",
            "edge_padding_high",
            "interior_padding",
        ),
        "stablehlo.gather": of_attributes("stablehlo.dynamic_gather", "slice_sizes"),
        "stablehlo.dynamic_slice": dynamic_slice,
        "stablehlo.bitcast_convert": bitcast,
        "stablehlo.convolution": convolution,
        "stablehlo.custom_call": custom_call,
        "chlo.top_k": top_k,
        "stablehlo.rng_bit_generator": random_bits,
    }
)
