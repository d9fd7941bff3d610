"""Floor 3: functions of elements in operations that a processor has.

An equation whose row has a kernel becomes the equations of that kernel, for a program
that runs on one CPU: XLA would call a function of the C library for each element::

    { lambda ; a. let b = sin a in (b,) }     # 46 equations, of sums and products

Where the kernel does not hold for all elements, a choice is made when the program runs.
"""

from collections.abc import Sequence

from attrs import evolve

from verax.ir.avals import Shape, ShapedArray, bit_width
from verax.ir.dtypes import DType, float32, int32, is_float, real_dtype
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Params, Var, equation
from verax.ops.control.cond import cond_p
from verax.ops.control.cond_params import CondParams
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.elementwise.convert import convert
from verax.ops.reductions.reduce import reduce_and
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.ops.structure.slicing import pad, slice as slice_
from verax.rules.rows.builder import program
from verax.rules.rows.kernels import APART, SUMMED, Kernel
from verax.rules.rows.row import Row, SomeRow, traits_of
from verax.rules.values.array import Array
from verax.rules.values.memo import asked, pure, recall
from verax.transforms.engine.engine import literal_value
from verax.transforms.engine.partial_eval import variables
from verax.transforms.passes.outline import with_eqns, with_subjaxprs
from verax.transforms.passes.transposes import Readers, readers_of


def with_kernels(jaxpr: Jaxpr, everywhere: bool = False) -> Jaxpr:
    """The program with the kernels of its equations, nested jaxprs included.

    They are written `everywhere`, or else where that pays.

    Contract: inputs, output types and effects are kept, and values but for the last
    places of the functions that have kernels.
    """
    return recall(written_out, jaxpr, jaxpr, everywhere)


@pure(1 << 10)
def written_out(jaxpr: Jaxpr, everywhere: bool) -> Jaxpr:
    """`with_kernels`, without its memo."""
    size = variables(jaxpr)
    eqns, _ = write_out(jaxpr.eqns, jaxpr.outvars, size, everywhere)
    return with_eqns(jaxpr, eqns)


def write_out(
    eqns: Sequence[Eqn], outvars: Sequence[Atom], size: int, everywhere: bool = False
) -> tuple[Sequence[Eqn], int]:
    """The equations of a program with kernels, and how many variables there are.

    There were `size`, which keep their numbers.
    """
    eqns = with_subjaxprs(eqns, lambda inner: with_kernels(inner, everywhere))
    if not any([has_kernel(eqn) for eqn in eqns]):
        return eqns, size
    readers = readers_of(eqns, outvars)
    out: list[Eqn] = []
    for eqn in eqns:
        body = kernel_of(eqn, readers, everywhere) if has_kernel(eqn) else None
        if body is None:
            out.append(eqn)
        else:
            size = write_body(body, eqn, size, out)
    return out, size


def is_summed(eqn: Eqn, readers: Readers) -> bool:
    """Whether a result goes into a sum, by way of what XLA adds to it.

    Its library for sums knows some functions of elements, but no choices among them.
    """
    while True:
        (v,) = eqn.outvars
        users = readers.get(v.index, ())
        if len(users) != 1 or users[0] is None or v.aval.dtype != float32:
            return False
        before, eqn = v.aval, users[0]
        if not traits_of(eqn.primitive).summed:
            return False
        if eqn.outvars[0].aval.size < before.size:
            join = traits_of(eqn.primitive).joined_by
            adds = join is not None and traits_of(join).summed
            return adds and before.size >= SUMMED


def has_kernel(eqn: Eqn) -> bool:
    """Whether the row has a kernel for some dtype and number of elements."""
    return isinstance(eqn.primitive, Row) and eqn.primitive.kernel is not None


def kernel_of(eqn: Eqn, readers: Readers, everywhere: bool) -> Jaxpr | None:
    """The program of a kernel, if there is one for these types and it pays."""
    row, out = eqn.primitive, eqn.outvars[0].aval
    assert isinstance(row, Row)
    assert row.kernel is not None
    kernel: Kernel = row.kernel
    dtype = dtype_of(kernel, out.dtype)
    if dtype not in kernel.functions or out.symbolic:
        return None
    dtypes = {a.aval.dtype for a in eqn.invars}
    if any([out.dtype not in (one, real_dtype(one)) for one in dtypes]):
        return None
    if kernel.simple and is_simple(eqn.invars[-1], kernel):
        return None
    least = APART if dtype in kernel.valid else kernel.least
    summed = kernel.reduced and is_summed(eqn, readers)
    if not everywhere and (out.size < least or summed):
        return None
    avals = tuple([a.aval for a in eqn.invars])
    if kernel.suits is not None and not kernel.suits(eqn.params, avals):
        return None
    return asked(kernel_program, eqn.params, row, eqn.params, avals, out)


def dtype_of(kernel: Kernel, dtype: DType) -> DType:
    """The dtype of the function of a kernel: float32 for 16 bits, as in XLA."""
    if kernel.suits is not None or kernel.piece or dtype in kernel.functions:
        return dtype
    return float32 if is_float(dtype) and bit_width(dtype) == 16 else dtype


def is_simple(a: Atom, kernel: Kernel) -> bool:
    """Whether a last operand is a number for which there is no kernel."""
    if type(a) is not Literal or a.aval.ndim:
        return False
    return literal_value(a).item() in kernel.simple


@pure(1 << 10)
def kernel_program(
    row: SomeRow, params: Params, avals: tuple[ShapedArray, ...], out: ShapedArray
) -> Jaxpr:
    """What a kernel is for operands of these types, with kernels for what it calls."""
    kernel = row.kernel
    assert kernel is not None
    dtype = dtype_of(kernel, out.dtype)
    function = kernel.functions[dtype]
    if kernel.lowers:
        other = evolve(row, lower_on={"cpu": function}, kernel=None)
        return program(avals, lambda *xs: other.bind(params, *xs), "a kernel")
    if kernel.piece:
        return piecewise(row, params, avals, out, kernel.piece)
    valid = kernel.valid.get(dtype)

    def result(*xs: Array) -> Sequence[object]:
        made = function(*xs) if kernel.suits is None else function(params, *xs)
        return (convert(made, out.dtype, out.weak_type),)

    def body(*xs: Array) -> Sequence[object]:
        if kernel.suits is not None:
            return result(*[convert(x, x.dtype) for x in xs])  # none of them weak
        xs = tuple([broadcast_to(convert(x, dtype), out.shape) for x in xs])
        if valid is None:
            return result(*xs)
        types = [x.aval for x in xs]
        # The row itself is for what it does not hold for: not again in its place.
        otherwise = program(types, lambda *ys: row.bind(params, *ys), "a kernel")
        inside = with_kernels(program(types, lambda *ys: [function(*ys)], "a kernel"))
        holds = reduce_and(valid(*xs), tuple(range(len(out.shape))))
        branches = CondParams((otherwise, inside))
        (made,) = cond_p.bind(branches, convert(holds, int32), *xs)
        return (convert(made, out.dtype, out.weak_type),)

    made = program(avals, body, "a kernel")
    return made if valid is not None else with_kernels(made)


def piecewise(
    row: SomeRow,
    params: Params,
    avals: tuple[ShapedArray, ...],
    out: ShapedArray,
    size: int,
) -> Jaxpr:
    """A loop over pieces of the operands, the last of which ends with ones."""
    count = -(-out.size // size)
    missing = ((0, count * size - out.size, 0),)
    types = [ShapedArray((size,), a.dtype) for a in avals]
    one = program(types, lambda *xs: row.bind(params, *xs), "a kernel")
    unmarked = (False,) * len(avals)
    loop = ScanParams(one, count, unmarked, 0, 0, False, 1)

    def body(*xs: Array) -> Sequence[object]:
        rows = []
        for x in xs:
            flat = reshape(broadcast_to(convert(x, x.dtype), out.shape), (out.size,))
            rows.append(reshape(pad(flat, 1, missing), (count, size)))
        (made,) = scan_p.bind(loop, *rows)
        made = slice_(reshape(made, (count * size,)), (0,), (out.size,))
        return (convert(reshape(made, out.shape), out.dtype, out.weak_type),)

    return program(avals, body, "a kernel")


def broadcast_to(x: Array, shape: Shape) -> Array:
    """The array in the shape of the result."""
    if x.shape == shape:
        return x
    return broadcast_in_dim(x, shape, tuple(range(x.ndim)))


def write_body(body: Jaxpr, eqn: Eqn, size: int, out: list[Eqn]) -> int:
    """Add the equations of a body in the place of one; how many variables there are."""
    names: dict[int, Atom] = {
        v.index: a for v, a in zip(body.invars, eqn.invars, strict=True)
    }
    (result,) = body.outvars
    assert type(result) is Var
    names_of_result = {result.index: eqn.outvars[0]}
    for inner in body.eqns:
        news: list[Var] = []
        for v in inner.outvars:
            new = names_of_result.get(v.index)
            if new is None:
                new = Var(size, v.aval)
                size += 1
            names[v.index] = new
            news.append(new)
        ins = tuple([names[a.index] if type(a) is Var else a for a in inner.invars])
        out.append(
            equation(inner.primitive, inner.params, ins, tuple(news), eqn.source)
        )
    return size
