"""A table of what each primitive does to sparse arrays.

A rule takes a function that evaluates programs on sparse values (for primitives that
hold some), the params of the equation, and its operands; it returns the results::

    def mul_rule(evaluate, params, x, y):
        return [bcoo_multiply_sparse(x, y)]

Elementwise functions that map zero to zero apply to the stored elements, which must be
unique unless the function is additive.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from attrs import evolve, field, frozen
from pyrsistent import PMap, pmap

from verax import lax, numpy as vnp
from verax.api.inspect.make_jaxpr import eval_shape
from verax.api.trees.pytrees import tree_structure
from verax.experimental.sparse.base import JAXSparse
from verax.experimental.sparse.bcoo import BCOO, bcoo_transpose
from verax.experimental.sparse.bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
)
from verax.experimental.sparse.layouts import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_reshape,
    bcoo_squeeze,
    relaid,
)
from verax.experimental.sparse.products import (
    bcoo_dot_general,
    bcoo_multiply_sparse,
    met_elements,
)
from verax.experimental.sparse.structure import (
    bcoo_conv_general_dilated,
    bcoo_dynamic_slice,
    bcoo_gather,
    bcoo_reduce_sum,
    bcoo_rev,
    bcoo_slice,
)
from verax.ir.jaxpr import NO_PARAMS, NoParams, Params, Primitive
from verax.ir.records import ReprMixin
from verax.ops.calls.call import CallParams, jit_p
from verax.ops.calls.checkpoint import CheckpointParams, checkpoint_p
from verax.ops.contraction.dot import DotParams
from verax.ops.control.cond import cond_p
from verax.ops.control.cond_params import CondParams
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_ import while_p
from verax.ops.control.while_params import WhileParams
from verax.ops.conv.params import ConvParams
from verax.ops.custom.jvp import CustomJvpParams, custom_jvp_call_p
from verax.ops.custom.vjp import CustomVjpParams, custom_vjp_call_p
from verax.ops.elementwise.arith import IntegerPowParams
from verax.ops.indexing.dynamic_slice import DynamicSliceParams
from verax.ops.indexing.gather_impl import GatherParams
from verax.ops.structure.joining import ConcatenateParams
from verax.ops.structure.shape import BroadcastInDimParams
from verax.ops.structure.slicing import SliceParams
from verax.ops.table import PRIMITIVES
from verax.rules.families.reducer import ReduceParams
from verax.rules.programs.derived import composite
from verax.rules.rows.row import Row, SomeRow, traits_of
from verax.rules.values.array import Array

type Sparse = BCOO | BCSR
type Operand = Sparse | Array
type Inside = CallParams | CheckpointParams | CustomJvpParams | CustomVjpParams
type Evaluate = Callable[..., list[object]]
type Rule = Callable[..., Sequence[object]]


def as_map(rules: Mapping[Primitive, Rule]) -> PMap[Primitive, Rule]:
    """The rules as a value."""
    return pmap(dict(rules))


@frozen(eq=False, repr=False)
class Rules(ReprMixin):
    """Rules of primitives for sparse arrays; `|` joins more.

    A rule is called as `rule(evaluate, params, *operands)`, where an operand is an
    array or a sparse one and `evaluate(jaxpr, operands)` runs a program on such.
    """

    __module__ = "verax.experimental.sparse"

    rules: PMap[Primitive, Rule] = field(converter=as_map)

    def __or__(self, rules: "Mapping[Primitive, Rule] | Rules") -> "Rules":
        """The table with these rules in front."""
        more = rules.rules if isinstance(rules, Rules) else rules
        return evolve(self, rules=self.rules.update(more))

    def rule(self, primitive: Primitive) -> Rule:
        """The rule of a primitive; that of an elementwise one may follow from its row.

        Raises:
            NotImplementedError: there is none.
        """
        rule = self.rules.get(primitive)
        if rule is not None:
            return rule
        name, traits = primitive.name, traits_of(primitive)
        if isinstance(primitive, Row) and (traits.additive or traits.keeps_zero):
            return on_data(primitive, linear=traits.additive)
        if traits.keeps_zero is False:
            raise NotImplementedError(
                f"sparse rule for {name} is not implemented because it would result in "
                "dense output. If this is your intent, use sparse.todense() to convert "
                "your argument to a dense array."
            )
        raise NotImplementedError(f"sparse rule for {name} is not implemented.")


def as_bcoo(x: object) -> Any:
    """A `BCSR` array as the same `BCOO` array; anything else as it is."""
    return x.to_bcoo() if isinstance(x, BCSR) else x


def unique(x: Sparse) -> Sparse:
    """The array with unique indices, and as many elements."""
    return x if x.unique_indices else x.sum_duplicates(nse=x.nse, remove_zeros=False)


def on_data(primitive: SomeRow, linear: bool) -> Rule:
    """The rule of an elementwise function of one operand that maps zero to zero."""

    def rule(evaluate: Evaluate, params: Params, x: Sparse) -> list[object]:
        mat = x if linear else unique(x)
        return [mat.with_data(out) for out in primitive.bind(params, mat.data)]

    return rule


def through_bcoo(function: Callable[..., object], *names: str) -> Rule:
    """The rule that calls a function of `BCOO` arrays with some params by keyword."""

    def rule(evaluate: Evaluate, params: object, x: Sparse) -> list[object]:
        return [function(as_bcoo(x), **{name: getattr(params, name) for name in names})]

    return rule


def add_rule(
    evaluate: Evaluate, params: Params, x: Operand, y: Operand
) -> list[object]:
    """Sums: of stored elements at the same places, or all those of both arrays."""
    one, other = as_bcoo(x), as_bcoo(y)
    if isinstance(one, BCOO) and isinstance(other, BCOO):
        return [joined(one, other)]
    if x.shape != y.shape:
        raise NotImplementedError(
            "Addition between a sparse array X and a dense array Y is not implemented "
            "unless X.shape == Y.shape: the result would be dense"
        )
    return [one.todense() + other if isinstance(one, BCOO) else one + other.todense()]


def joined(x: BCOO, y: BCOO) -> BCOO:
    """The sum of two sparse arrays."""
    if x.shape != y.shape:
        raise NotImplementedError(
            f"Addition of sparse arrays of different shapes, {x.shape} and {y.shape}"
        )
    if x.indices is y.indices:
        return x.with_data(x.data + y.data)
    n_batch, n_dense = min(x.n_batch, y.n_batch), min(x.n_dense, y.n_dense)
    x, y = relaid(x, n_batch, n_dense), relaid(y, n_batch, n_dense)
    n = n_batch
    kinds = (x.data, y.data), (x.indices, y.indices)
    out = []
    for a, b in kinds:
        batch = vnp.broadcast_shapes(a.shape[:n], b.shape[:n])
        full = [vnp.broadcast_to(p, (*batch, *p.shape[n:])) for p in (a, b)]
        out.append(vnp.concatenate(full, n))
    return BCOO((out[0], out[1]), shape=x.shape)


def sub_rule(
    evaluate: Evaluate, params: Params, x: Operand, y: Operand
) -> list[object]:
    """Differences, as sums of what is negated."""
    return add_rule(evaluate, params, as_bcoo(x), -as_bcoo(y))


def mul_rule(
    evaluate: Evaluate, params: Params, x: Operand, y: Operand
) -> list[object]:
    """Products, which are stored where the sparse operand is."""
    if isinstance(x, JAXSparse) and isinstance(y, JAXSparse):
        return [bcoo_multiply_sparse(as_bcoo(x), as_bcoo(y))]
    if isinstance(y, JAXSparse):
        return mul_rule(evaluate, params, y, x)
    if isinstance(x, BCSR) and not y.ndim:
        return [x.with_data(x.data * y)]
    mat = as_bcoo(x)
    return [mat.with_data(mat.data * met_elements(mat, y))]


def div_rule(
    evaluate: Evaluate, params: Params, x: Operand, y: Operand
) -> list[object]:
    """Quotients, which are stored where the numerator is."""
    if isinstance(y, JAXSparse):
        raise NotImplementedError(
            "Division by a sparse array is not implemented: the result would be dense"
        )
    mat = as_bcoo(x)
    return [mat.with_data(mat.data / met_elements(mat, y, fill=1))]


def integer_pow_rule(
    evaluate: Evaluate, params: IntegerPowParams, x: Sparse
) -> list[object]:
    """Powers that map zero to zero."""
    if params.y <= 0:
        raise NotImplementedError(
            "sparse rule for integer_pow with non-positive exponent "
            f"{params.y}: the result would be dense"
        )
    return list(on_data(PRIMITIVES["integer_pow"], linear=False)(evaluate, params, x))


def dot_rule(
    evaluate: Evaluate, params: DotParams, x: Operand, y: Operand
) -> list[object]:
    """Products of matrices."""
    function = bcoo_dot_general
    if isinstance(x, BCSR) and not isinstance(y, JAXSparse):
        function = bcsr_dot_general
    else:
        x, y = as_bcoo(x), as_bcoo(y)
    out = function(
        x,
        y,
        dimension_numbers=params.dimension_numbers,
        preferred_element_type=params.preferred_element_type,
    )
    return [out]


def reduce_sum_rule(
    evaluate: Evaluate, params: ReduceParams, x: Sparse
) -> list[object]:
    """Sums over axes; the sum over all of them is dense."""
    out = bcoo_reduce_sum(as_bcoo(x), axes=params.axes)
    return [out if out.shape else out.todense()]


def slice_rule(evaluate: Evaluate, params: SliceParams, x: Sparse) -> list[object]:
    out = bcoo_slice(
        as_bcoo(x),
        start_indices=params.start_indices,
        limit_indices=params.limit_indices,
        strides=params.strides,
    )
    return [out]


def dynamic_slice_rule(
    evaluate: Evaluate, params: DynamicSliceParams, x: Sparse, *starts: object
) -> list[object]:
    return [bcoo_dynamic_slice(as_bcoo(x), starts, params.slice_sizes)]


def gather_rule(
    evaluate: Evaluate, params: GatherParams, x: Sparse, starts: object
) -> list[object]:
    if isinstance(starts, JAXSparse):
        raise NotImplementedError("sparse rule for gather with sparse indices")
    out = bcoo_gather(
        as_bcoo(x),
        starts,
        params.dimension_numbers,
        params.slice_sizes,
        mode=params.mode,
        fill_value=params.fill_value,
    )
    return [out]


def broadcast_rule(
    evaluate: Evaluate, params: BroadcastInDimParams, x: JAXSparse
) -> list[object]:
    shape, dims = params.shape, params.broadcast_dimensions
    if isinstance(x, BCSR):
        return [bcsr_broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims)]
    mat = as_bcoo(x)
    return [bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=dims)]


def concatenate_rule(
    evaluate: Evaluate, params: ConcatenateParams, *operands: Operand
) -> list[object]:
    rows = [x for x in operands if isinstance(x, BCSR)]
    if len(rows) == len(operands):
        return [bcsr_concatenate(rows, dimension=params.dimension)]
    if not all([isinstance(x, JAXSparse) for x in operands]):
        raise NotImplementedError(
            "sparse rule for concatenate of sparse and dense arrays is not implemented."
        )
    out = [as_bcoo(x) for x in operands]
    return [bcoo_concatenate(out, dimension=params.dimension)]


def conv_rule(
    evaluate: Evaluate, params: ConvParams, x: Operand, y: Operand
) -> list[object]:
    out = bcoo_conv_general_dilated(
        as_bcoo(x),
        as_bcoo(y),
        window_strides=params.window_strides,
        padding=params.padding,
        lhs_dilation=params.lhs_dilation,
        rhs_dilation=params.rhs_dilation,
        dimension_numbers=params.dimension_numbers,
        feature_group_count=params.feature_group_count,
        batch_group_count=params.batch_group_count,
        preferred_element_type=params.preferred_element_type,
    )
    return [out]


def inside_rule(evaluate: Evaluate, params: Inside, *operands: Operand) -> list[object]:
    """An equation that means its program."""
    return evaluate(params.jaxpr, operands)


def plain(x: object) -> Any:
    """A value as it goes around a loop: nothing is promised of its indices."""
    if isinstance(x, BCOO):
        return BCOO((x.data, x.indices), shape=x.shape)
    if isinstance(x, BCSR):
        return BCSR((x.data, x.indices, x.indptr), shape=x.shape)
    return x


def plain_outputs(
    evaluate: Evaluate, jaxpr: object, values: Sequence[object]
) -> list[object]:
    return [plain(x) for x in evaluate(jaxpr, values)]


def while_rule(
    evaluate: Evaluate, params: WhileParams, *operands: Operand
) -> list[object]:
    """A loop on sparse values, which store as much after each step as before."""
    cond_consts, body_consts, carry = params.parts(operands)

    def again(carry: list[object]) -> Array:
        [out] = evaluate(params.cond_jaxpr, [*cond_consts, *carry])
        assert isinstance(out, Array), "the predicate is dense"
        return out

    def step(carry: list[object]) -> list[object]:
        return plain_outputs(evaluate, params.body_jaxpr, [*body_consts, *carry])

    result: list[object] = lax.while_loop(again, step, [plain(x) for x in carry])
    return result


def scan_rule(
    evaluate: Evaluate, params: ScanParams, *operands: Operand
) -> list[object]:
    """A loop on sparse values; rows of a sparse array are those of its buffers."""
    consts, carry, xs = params.parts(operands)
    mats = [as_rows(x) for x in xs]

    def step(
        carry: list[object], rows: list[object]
    ) -> tuple[list[object], list[object]]:
        outs = plain_outputs(evaluate, params.jaxpr, [*consts, *carry, *rows])
        return outs[: len(carry)], outs[len(carry) :]

    end, ys = lax.scan(
        step,
        [plain(x) for x in carry],
        mats,
        length=params.length,
        reverse=params.reverse,
        unroll=params.unroll,
    )
    return [*end, *ys]


def as_rows(x: object) -> object:
    """An array whose rows are batch elements."""
    if not isinstance(x, JAXSparse):
        return x
    mat = plain(as_bcoo(x))
    return mat if mat.n_batch else plain(relaid(mat, 1, mat.n_dense))


def cond_rule(
    evaluate: Evaluate, params: CondParams, index: object, *operands: object
) -> list[object]:
    """A choice between programs, whose results are stored alike.

    Raises:
        TypeError: they are not.
    """
    if isinstance(index, JAXSparse):
        raise NotImplementedError("sparse rule for cond with a sparse predicate")

    def run(jaxpr: object, *values: object) -> list[object]:
        return plain_outputs(evaluate, jaxpr, values)

    branches = [partial(run, jaxpr) for jaxpr in params.branches]
    trees = [tree_structure(eval_shape(branch, *operands)) for branch in branches]
    if any([tree != trees[0] for tree in trees]):
        raise TypeError(
            "sparsified true_fun output must have same type structure as sparsified "
            f"false_fun output, but these are {trees[-1]} and {trees[0]}"
        )
    out: list[object] = lax.switch(index, branches, *operands)
    return out


todense_p = composite("todense", NoParams, lambda p, x: lax.copy_p.call(NO_PARAMS, x))
"""The dense array of a value: itself, unless `sparsify` makes it sparse."""


def todense_rule(evaluate: Evaluate, params: Params, x: Sparse) -> list[object]:
    return [x.todense()]


RULES: Final = Rules(
    {
        PRIMITIVES["add"]: add_rule,
        PRIMITIVES["sub"]: sub_rule,
        PRIMITIVES["mul"]: mul_rule,
        PRIMITIVES["div"]: div_rule,
        PRIMITIVES["integer_pow"]: integer_pow_rule,
        PRIMITIVES["dot_general"]: dot_rule,
        PRIMITIVES["reduce_sum"]: reduce_sum_rule,
        PRIMITIVES["slice"]: slice_rule,
        PRIMITIVES["dynamic_slice"]: dynamic_slice_rule,
        PRIMITIVES["gather"]: gather_rule,
        PRIMITIVES["broadcast_in_dim"]: broadcast_rule,
        PRIMITIVES["concatenate"]: concatenate_rule,
        PRIMITIVES["conv_general_dilated"]: conv_rule,
        PRIMITIVES["reshape"]: through_bcoo(bcoo_reshape, "new_sizes"),
        PRIMITIVES["squeeze"]: through_bcoo(bcoo_squeeze, "dimensions"),
        PRIMITIVES["rev"]: through_bcoo(bcoo_rev, "dimensions"),
        PRIMITIVES["transpose"]: through_bcoo(bcoo_transpose, "permutation"),
        jit_p: inside_rule,
        checkpoint_p: inside_rule,
        custom_jvp_call_p: inside_rule,
        custom_vjp_call_p: inside_rule,
        scan_p: scan_rule,
        while_p: while_rule,
        cond_p: cond_rule,
        todense_p: todense_rule,
    }
)
