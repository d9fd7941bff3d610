"""Floor 2: what rows on typed keys share: generators, stored words, batching.

One idea: a row on keys is a raw function of a generator on uint32 words, between two
bitcasts, so a generator is a record of four functions::

    THREEFRY.bits(words, 32, (3,))       # words:u32[2]  ->  u32[3]
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from random import Random
from types import MappingProxyType
from typing import Any, ClassVar

from attrs import evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    complex128,
    float64,
    is_extended,
    stored_dtype,
    uint32,
    uint64,
)
from verax.ir.extended import KEY_WORDS, STORED, Impl, KeyDType
from verax.ir.jaxpr import NO_PARAMS, Jaxpr, Params
from verax.ir.meshes import Splits
from verax.ir.records import ReprMixin
from verax.ops.elementwise.complex import complex_p, imag_p, real_p
from verax.ops.elementwise.convert import BitcastParams, bitcast_convert_type_p
from verax.ops.random import rng_bit_generator, threefry
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast_in_dim, move_axis, reshape
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.families.linear import zero_jvp
from verax.rules.rows.builder import program
from verax.rules.rows.eager_costs import large
from verax.rules.rows.emitter import Emitter, Operand, apart
from verax.rules.rows.row import Axis, NDArray, Row, Sample, TypeRule
from verax.rules.rows.traits import NO_TRAITS, Traits
from verax.rules.rows.type_shardings import connected, stacked_along
from verax.rules.values.array import Array
from verax.rules.values.memo import pure
from verax.rules.values.sizes import without

# Shapes of the words of a key that are dimensions of their own already.
WHOLE = ((2,), (4,))
type Batched = tuple[Sequence[Array], Sequence[Axis]]


@frozen(repr=False)
class Generator(ReprMixin):
    """A generator of random bits, as functions of raw keys of shape (*s, *key_shape).

    `random_bits(key, width, shape)` and `split(key, shape)` put `shape` after s. The
    `tag` is its short name.
    """

    __module__ = "verax.extend.random"
    transient: ClassVar[bool] = False

    key_shape: Shape
    seed: Callable[[Any], Any]
    split: Callable[[Any, Shape], Any]
    random_bits: Callable[[Any, int, Shape], Any]
    fold_in: Callable[[Any, Any], Any]
    name: str = "<unnamed>"
    tag: str = "?"


THREEFRY = Generator(
    KEY_WORDS["fry"],
    threefry.seed,
    threefry.split,
    threefry.random_bits,
    threefry.fold_in,
    "threefry2x32",
    "fry",
)
RBG = Generator(
    KEY_WORDS["rbg"],
    rng_bit_generator.seed,
    rng_bit_generator.split,
    rng_bit_generator.random_bits,
    rng_bit_generator.fold_in,
    "rbg",
    "rbg",
)
UNSAFE_RBG = Generator(
    KEY_WORDS["urbg"],
    rng_bit_generator.seed,
    rng_bit_generator.unsafe_split,
    rng_bit_generator.random_bits,
    rng_bit_generator.unsafe_fold_in,
    "unsafe_rbg",
    "urbg",
)
GENERATORS: Mapping[str, Generator] = MappingProxyType(
    {found.tag: found for found in (THREEFRY, RBG, UNSAFE_RBG)}
)


def generator(impl: Impl) -> Generator:
    """The generator of that short name; a generator itself.

    Raises:
        ValueError: there is none.
    """
    if isinstance(impl, Generator):
        return impl
    assert isinstance(impl, str)
    found = GENERATORS.get(impl)
    if found is None:
        raise ValueError(
            f"unrecognized PRNG implementation {impl!r}; use one of "
            f"{', '.join(GENERATORS)}"
        )
    return found


@frozen(eq=False, repr=False)
class KeyParams(Params):
    """The generator."""

    impl: Impl


@frozen(eq=False, repr=False)
class SplitParams(Params):
    """The generator, and the shape of the new keys that each key makes."""

    impl: Impl
    shape: Shape


@frozen(eq=False, repr=False)
class BitsParams(Params):
    """The generator, the width of integers, the shape of those that each key makes."""

    impl: Impl
    bit_width: int
    shape: Shape


type Named = KeyParams | SplitParams | BitsParams


def dtype_of(impl: Impl) -> KeyDType:
    """The dtype of the keys of a generator."""
    return KeyDType(impl, generator(impl).key_shape)


def keys_aval(name: str, p: Named, aval: ShapedArray) -> ShapedArray:
    """`aval`, or an error that says how to get keys of the generator."""
    if aval.dtype != dtype_of(p.impl):
        raise TypeError(
            f"{name} takes keys of dtype {dtype_of(p.impl)}, not {aval}; make them "
            "with verax.random.key or verax.random.wrap_key_data"
        )
    return aval


def stored(aval: ShapedArray) -> ShapedArray:
    """The type of the array that stands for a key array; other types stay."""
    if not isinstance(aval.dtype, KeyDType):
        return aval
    return ShapedArray(
        (*aval.shape, *aval.dtype.element_shape), stored_dtype(aval.dtype)
    )


def to_words(x: Array, impl: Impl) -> Array:
    """The uint32 words of stored keys, in the last dimensions."""
    shape = generator(impl).key_shape
    if prod(shape) not in STORED:
        return x
    if x.dtype == uint64:
        words = bitcast_convert_type_p.call(BitcastParams(uint32), x)
    elif x.dtype == complex128:
        halves = [
            bitcast_convert_type_p.call(
                BitcastParams(uint32), part_p.call(NO_PARAMS, x)
            )
            for part_p in (real_p, imag_p)
        ]
        words = concatenate(halves, x.ndim)
    else:
        words = x
    return reshape(words, (*x.shape, *shape)) if shape not in WHOLE else words


def from_words(words: Array, impl: Impl) -> Array:
    """Keys as they are stored, from their words."""
    shape = generator(impl).key_shape
    front, count = words.shape[: words.ndim - len(shape)], prod(shape)
    if count == 1:
        return reshape(words, front)
    if count not in STORED:
        return words
    if shape not in WHOLE:
        words = reshape(words, (*front, count))
    if count == 2:
        return bitcast_convert_type_p.call(BitcastParams(uint64), words)
    last = words.ndim - 1
    halves = [
        bitcast_convert_type_p.call(
            BitcastParams(float64), slice_in_dim(words, i, i + 2, axis=last)
        )
        for i in (0, 2)
    ]
    return complex_p.call(NO_PARAMS, *halves)


def on_words[P: Named](
    name: str,
    params: type[P],
    typing: TypeRule[P],
    compute: Callable[[P, Sequence[Array]], Array],
    batch: Callable[[Row[P], P, int, Sequence[Array], Sequence[Axis]], Batched],
    draw: Callable[[Random], Sample[P]],
    on_host: Callable[[P, Sequence[NDArray]], NDArray] | None = None,
    traits: Traits = NO_TRAITS,
) -> Row[P]:
    """A row that means `compute(params, stored operands)`.

    `on_host` computes the same in NumPy, for threefry, where that is quicker than to
    evaluate a program of many small equations. A row that has it hashes, so its result
    is kept apart from what uses it: see `HashParams`.
    """

    @pure(512)
    def written(p: P, *avals: ShapedArray) -> Jaxpr:
        return program(avals, lambda *xs: (compute(p, xs),))

    def lower(
        e: Emitter, p: P, xs: Sequence[Operand], outs: Sequence[ShapedArray]
    ) -> Sequence[Operand]:
        plain = [evolve(x, aval=stored(x.aval)) for x in xs]
        found = e.inline(written(p, *[x.aval for x in plain]), plain)
        if on_host is not None:
            found = apart(e, found)
        return (evolve(found[0], aval=outs[0]),)

    row: Row[P] = Row(
        name,
        params,
        typing=typing,
        evaluate=lambda engine, p, xs: (
            (on_host(p, xs),)
            if on_host is not None and p.impl == "fry"
            else engine.evaluate(
                written(p, *[ShapedArray(x.shape, x.dtype) for x in xs]), xs
            )
        ),
        jvp=zero_jvp(lambda: row),
        traits=traits,
        batch=lambda engine, p, size, xs, axes: batch(row, p, size, xs, axes),
        lower=lower,
        draw=draw,
        costly=large,
        sharding=keys_in_front,
    )
    return row


def keys_in_front(
    p: object, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> Sequence[Splits]:
    """The dimensions of keys come first; those of words or samples are whole."""
    kept = max([x.ndim for x in (*avals, *outs) if is_extended(x.dtype)])
    return connected(
        avals,
        [stacked_along(aval.ndim, kept) for aval in avals],
        [stacked_along(out.ndim, kept) for out in outs],
    )


def batch_first[P: Named](
    row: Row[P], p: P, size: int, args: Sequence[Array], axes: Sequence[Axis]
) -> Batched:
    """The batch dimension of the one operand goes first, and that of the result is."""
    (x,), (axis,) = args, axes
    assert axis is not None
    return row.bind(p, move_axis(x, axis, 0)), (0,)


def batch_in_place[P: Named](
    row: Row[P], p: P, size: int, args: Sequence[Array], axes: Sequence[Axis]
) -> Batched:
    """The batch dimension of the one operand is that of the result."""
    return row.bind(p, *args), axes


def batch_fold_in(
    row: Row[KeyParams],
    p: KeyParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> Batched:
    """Both operands in the shape of the result, except for unbatched scalars."""
    shapes = [
        without(x.shape, () if axis is None else (axis,))
        for x, axis in zip(args, axes, strict=True)
    ]
    full = (size, *max(shapes, key=len))
    moved = []
    for x, axis, shape in zip(args, axes, shapes, strict=True):
        if axis is None and not shape:
            moved.append(x)
        elif axis is None:
            moved.append(broadcast_in_dim(x, full, tuple(range(1, len(full)))))
        else:
            front = move_axis(x, axis, 0)
            dims = tuple(range(front.ndim))
            moved.append(
                front if front.shape == full else broadcast_in_dim(front, full, dims)
            )
    return row.bind(p, *moved), (0,)
