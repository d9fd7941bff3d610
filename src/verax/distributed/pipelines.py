"""Floor 6: pipelines: stages of one model on the devices of one axis of a mesh.

One idea: a loop over equal blocks is cut into stages, one for each device of an axis,
and the batch into microbatches; at each tick every stage does its microbatch and hands
it to the next one, so that all stages work at the same time on different ones::

    model = pipeline(block, mesh=mesh, axis="stage", microbatches=8)
    model(blocks, x)   # scan(lambda h, p: (block(p, h), None), x, blocks)[0]

Y. Huang et al., "GPipe: efficient training of giant neural networks using pipeline
parallelism", 2019; D. Narayanan et al., "PipeDream: generalized pipeline parallelism
for DNN training", 2019, for the order of one forward and one backward. That a stage
runs the same program at every tick is as in Y. Xu et al., "GSPMD: general and scalable
parallelization for ML computation graphs", 2021, section 3.3.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, SupportsIndex

from attrs import frozen

from verax import lax, numpy as vnp
from verax.api.autodiff.grad import value_and_grad
from verax.api.inspect.make_jaxpr import eval_shape
from verax.api.jit import PjitFunction, jit
from verax.api.parallel.shard_map import shard_map
from verax.api.tracing.structs import ShapeDtypeStruct
from verax.api.tracing.wrapping import function_name
from verax.api.trees.pytrees import (
    keystr,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_structure,
)
from verax.backend.placement.mesh import Mesh, PartitionSpec as P, current_mesh
from verax.distributed.schedules import Block, OneForwardOneBackward, Stages
from verax.ir.dtypes import is_float
from verax.ir.records import ReprMixin
from verax.rules.values.array import Array
from verax.rules.values.conversions import check_callable, shown

__all__ = ["pipeline", "pipeline_value_and_grad"]

SCHEDULES: Final = ("1f1b", "gpipe")


def pipeline(
    block: Block,
    *,
    mesh: Mesh | None = None,
    axis: str = "stage",
    microbatches: int,
) -> PjitFunction[[Any, Any], Any]:
    """`block` for each entry of stacked parameters, on stages along an axis of a mesh.

    The function that it returns computes what
    `lax.scan(lambda h, p: (block(p, h), None), x, params)[0]` does, if a block treats
    the rows of a batch alike and apart from each other. Stage s has blocks s L / S to
    (s + 1) L / S of L, in the order of the stack. A batch goes through in microbatches:
    with M of them and S stages, S - 1 of M + S - 1 ticks of a stage are spent waiting.

    Derivatives of every kind work; the backward pass is the loop run backwards (GPipe),
    for which all microbatches are remembered: `verax.checkpoint(block)` keeps only what
    comes into each block, and `pipeline_value_and_grad` less. Along other axes of the
    mesh, arrays are split as their shardings say.

    Args:
        block: takes the parameters of one block and rows (b, ...), or a tree of such
            arrays, and returns what has the same structure, shapes and dtypes.
        mesh: has the axis; by default the mesh in force (`verax.set_mesh`).
        axis: the axis along which stages lie.
        microbatches: how many parts the batch is cut into.

    Returns:
        A function of `params`, a tree of arrays (L, ...), and `x`, a tree of arrays
        (B, ...), that gives what has the types of `x`, the same on all stages.

    Raises:
        TypeError: `block` changes the type of what it gets, or is no function.
        ValueError: there is no mesh, or none with this axis; the stages do not divide L
            or the microbatches B; arrays have different numbers of blocks or rows.

    >>> import numpy as np, verax, verax.numpy as vnp
    >>> mesh = verax.make_mesh((1,), ("stage",))
    >>> model = verax.distributed.pipeline(
    ...     lambda w, h: vnp.tanh(h @ w), mesh=mesh, microbatches=2
    ... )
    >>> weights = np.stack([np.eye(2, dtype=np.float32)] * 3)
    >>> model(weights, np.ones((4, 2), np.float32)).shape
    (4, 2)
    """
    check_callable("pipeline", block)
    options = Options("pipeline", mesh, axis, count_of("pipeline", microbatches))

    @jit
    def model(params: object, x: object) -> object:
        stages = options.stages(block, params)
        rows = options.cut("x", x)
        check_block(block, params, tree_map(first_of, rows))
        return tree_map(together, mapped(options, stages)(params, rows))

    return model


def pipeline_value_and_grad(
    block: Block,
    loss: Callable[..., object],
    *,
    first: Block | None = None,
    last: Block | None = None,
    mesh: Mesh | None = None,
    axis: str = "stage",
    microbatches: int,
    schedule: str = "1f1b",
) -> PjitFunction[..., Any]:
    """The mean loss of the microbatches of a pipeline, and its gradient.

    With the schedule "1f1b" a microbatch goes back as soon as it has come out, so that
    a stage holds at most 2 S - 1 inputs, however many microbatches there are, and
    computes its blocks again on the way back. "gpipe" goes forward with all of them
    first, and remembers what derivatives need, unless `block` is
    `verax.checkpoint(block)`. Both spend S - 1 of M + S - 1 ticks waiting, and give the
    same numbers but for rounding; gradients are added in float32 at least with "1f1b".

    Args:
        block: as for `pipeline`.
        loss: a function of what comes out for one microbatch, and of the parts of the
            targets that belong to it; it returns a scalar: a mean over rows, for the
            whole to be the mean over the batch.
        first: makes what goes into the first block, from its parameters and a part of
            `x`: an embedding.
        last: makes what `loss` takes, from its parameters and what comes out of the
            last block. All stages compute `first` and `last`, and keep their
            parameters whole.
        mesh, axis, microbatches: as for `pipeline`.
        schedule: "1f1b" or "gpipe".

    Returns:
        A function of `params`, `x` and any number of targets, trees of arrays (B, ...).
        It returns the loss and a tree like `params`: the stacked parameters of the
        blocks, or, with `first` or `last`, a dict of them, "blocks", and of "first" and
        "last", where these are given.

    Raises:
        TypeError: parameters are no floats, the loss is no float scalar, or as for
            `pipeline`.
        ValueError: the schedule is unknown, `params` is no such dict, or as for
            `pipeline`.

    >>> import numpy as np, verax, verax.numpy as vnp
    >>> mesh = verax.make_mesh((1,), ("stage",))
    >>> step = verax.distributed.pipeline_value_and_grad(
    ...     lambda w, h: h * w,
    ...     lambda h, y: vnp.mean((h - y) ** 2),
    ...     mesh=mesh,
    ...     microbatches=2,
    ... )
    >>> step(np.float32([1, 2]), np.ones((2, 1), np.float32), np.zeros((2, 1)))
    (Array(4., dtype=float32), Array([8., 4.], dtype=float32))
    """
    name = "pipeline_value_and_grad"
    check_callable(name, block)
    check_callable(name, loss)
    if schedule not in SCHEDULES:
        raise ValueError(
            f'{name}: schedule must be "1f1b" or "gpipe", not {schedule!r}'
        )
    options = Options(name, mesh, axis, count_of(name, microbatches))
    ends = Ends(first, last)

    @jit
    def step(params: object, x: object, *targets: object) -> Any:
        triple = ends.triple(params)
        check_floats(triple)
        stages = options.stages(block, triple[1])
        rows = options.cut("x", x)
        aims = [options.cut(f"target {i}", t) for i, t in enumerate(targets)]
        check_rows(x, targets)
        check_ends(block, loss, ends, triple, rows, aims)
        program = OneForwardOneBackward(stages, ends.enter, ends.leave, loss)
        if schedule == "gpipe":
            value, grads = all_forward_first(options, program, triple, rows, aims)
        else:
            places = (P(), P(axis), P())
            value, grads = shard_map(
                program,
                mesh=options.chosen,
                axis_names={axis},
                in_specs=(places, P(), P()),
                out_specs=(P(), places),
            )(triple, rows, tuple(aims))
        return value, ends.like(params, grads)

    return step


@frozen(repr=False)
class Options(ReprMixin):
    """What a pipeline was asked for; `name` is for errors."""

    name: str
    mesh: Mesh | None
    axis: str
    microbatches: int

    @property
    def chosen(self) -> Mesh:
        """The mesh.

        Raises:
            ValueError: there is none, or it does not have the axis.
        """
        mesh = self.mesh or current_mesh()
        if mesh is None or mesh.empty:
            raise ValueError(
                f"{self.name} needs a mesh: pass mesh=, or call it within "
                "`with verax.set_mesh(mesh):`"
            )
        if self.axis not in mesh.axis_names:
            raise ValueError(
                f"{self.name}: the mesh has no axis {self.axis!r}, only "
                f"{', '.join(map(repr, mesh.axis_names))}: pass one of them as axis="
            )
        return mesh

    def stages(self, block: Block, params: object) -> Stages:
        """The stages that these blocks are cut into.

        Raises:
            ValueError: they cannot be cut evenly.
        """
        count = length(self.name, "the parameters", "blocks", params)
        size = self.chosen.shape[self.axis]
        if count % size:
            raise ValueError(
                f"{self.name}: {count} blocks cannot be divided over the {size} stages "
                f"along {self.axis!r}: stack a multiple of {size}"
            )
        return Stages(block, self.axis, size, self.microbatches)

    def cut(self, what: str, tree: object) -> Any:
        """The microbatches of a batch, along a new first dimension.

        Row i goes into microbatch i modulo their number: so each device of another axis
        that splits the rows has its part of every microbatch already.

        Raises:
            ValueError: it cannot be cut evenly.
        """
        count = length(self.name, what, "rows", tree)
        if count % self.microbatches:
            raise ValueError(
                f"{self.name}: the {count} rows of {what} cannot be cut into "
                f"{self.microbatches} microbatches of one size"
            )
        shape = (count // self.microbatches, self.microbatches)
        return tree_map(
            lambda x: vnp.swapaxes(vnp.reshape(x, (*shape, *x.shape[1:])), 0, 1), tree
        )


@frozen(eq=False, repr=False)
class Ends(ReprMixin):
    """What stands before and after the blocks."""

    first: Block | None
    last: Block | None

    @property
    def names(self) -> list[str]:
        """The keys of the parameters; none where these are the blocks alone."""
        if self.first is None and self.last is None:
            return []
        given = {"first": self.first, "last": self.last}
        return ["blocks", *[name for name, f in given.items() if f is not None]]

    def triple(self, params: object) -> tuple[object, object, object]:
        """The parameters of the first, the blocks, and the last.

        Raises:
            ValueError: they are not a dict of these.
        """
        if not self.names:
            return (), params, ()
        if not isinstance(params, dict) or params.keys() != set(self.names):
            got = sorted(params) if isinstance(params, dict) else shown(params)
            raise ValueError(
                "pipeline_value_and_grad: params must be a dict with the keys "
                f"{', '.join(map(repr, self.names))}, as first= and last= were given, "
                f"not {got}"
            )
        return params.get("first", ()), params["blocks"], params.get("last", ())

    def like(self, params: object, grads: tuple[object, object, object]) -> Any:
        """The gradients as the parameters were passed."""
        if not self.names:
            return grads[1]
        named = dict(zip(("first", "blocks", "last"), grads, strict=True))
        assert isinstance(params, Mapping)
        return {name: named[name] for name in params}

    def enter(self, params: object, x: object) -> object:
        """What goes into the first block."""
        return x if self.first is None else self.first(params, x)

    def leave(self, params: object, h: object) -> object:
        """What the loss takes."""
        return h if self.last is None else self.last(params, h)


def mapped(options: Options, stages: Stages) -> Callable[[Any, Any], Any]:
    """The way forward over the mesh."""
    return shard_map(
        stages.forward,
        mesh=options.chosen,
        axis_names={options.axis},
        in_specs=(P(options.axis), P()),
        out_specs=P(),
    )


def all_forward_first(
    options: Options,
    program: OneForwardOneBackward,
    params: tuple[object, object, object],
    rows: object,
    targets: list[Any],
) -> Any:
    """The loss and its gradient by the loop run backwards."""

    def total(params: tuple[object, object, object]) -> Any:
        first, blocks, last = params
        entered = lax.map(lambda x: program.first(first, x), rows)
        outs = mapped(options, program.stages)(blocks, entered)
        values = lax.map(
            lambda row: program.loss(program.last(last, row[0]), *row[1]),
            (outs, targets),
        )
        return vnp.mean(values)

    return value_and_grad(total)(params)


def first_of(x: Array) -> object:
    """The type of an entry along the first dimension."""
    return ShapeDtypeStruct(x.shape[1:], x.dtype)


def together(x: Array) -> Array:
    """The rows of a batch from its microbatches."""
    return vnp.reshape(vnp.swapaxes(x, 0, 1), (-1, *x.shape[2:]))


def count_of(name: str, microbatches: SupportsIndex) -> int:
    """The number of microbatches.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is not positive.
    """
    try:
        count = operator.index(microbatches)
    except TypeError:
        raise TypeError(
            f"{name} takes an integer as microbatches, not {shown(microbatches)}"
        ) from None
    if count < 1:
        raise ValueError(f"{name}: there must be at least 1 microbatch, not {count}")
    return count


def length(name: str, what: str, of: str, tree: object) -> int:
    """The size of the first dimension, which all leaves share.

    Raises:
        ValueError: they do not, or there are none.
    """
    sizes = {keystr(path): vnp.shape(x)[:1] for path, x in leaves_of(tree)}
    if not sizes:
        raise ValueError(f"{name}: {what} has no arrays")
    (path, size), *others = sizes.items()
    for other, its in [(path, size), *others]:
        if not its:
            raise ValueError(
                f"{name}: {what}{other} is a scalar: arrays must have {of} along their "
                "first dimension"
            )
        if its != size:
            raise ValueError(
                f"{name}: {what}{path} has {size[0]} {of} and {what}{other} has "
                f"{its[0]}: first dimensions must be equal"
            )
    return int(size[0])


def check_rows(x: object, targets: Sequence[object]) -> None:
    """Raise ValueError unless each target has as many rows as the batch."""
    count = tree_leaves(x)[0].shape[0]
    for i, target in enumerate(targets):
        its = tree_leaves(target)[0].shape[0]
        if its != count:
            raise ValueError(
                f"pipeline_value_and_grad: x has {count} rows and target {i} has "
                f"{its}: each row has its targets"
            )


def leaves_of(tree: object) -> list[Any]:
    """The leaves with their paths."""
    return list(tree_flatten_with_path(tree)[0])


def check_block(block: Block, params: object, x: object) -> None:
    """Raise TypeError unless what goes out of a block has the types of what goes in."""
    out = eval_shape(block, tree_map(first_of, params), x)
    name = function_name(block)
    if tree_structure(out) != tree_structure(x):
        raise TypeError(
            f"pipeline: the block {name} takes {tree_structure(x)} and "
            f"returns {tree_structure(out)}: blocks hand the same structure on to "
            "each other"
        )
    for (path, a), b in zip(leaves_of(x), tree_leaves(out), strict=True):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            where = f" at {keystr(path)}" if path else ""
            raise TypeError(
                f"pipeline: the block {name} takes {a.dtype}{list(a.shape)} and "
                f"returns {b.dtype}{list(b.shape)}{where}: blocks hand the same types "
                "on to each other; what changes them belongs before the first block or "
                "after the last"
            )


def check_floats(params: tuple[object, object, object]) -> None:
    """Raise TypeError unless all parameters have gradients."""
    for path, leaf in leaves_of(params[1]) + leaves_of((params[0], params[2])):
        if not is_float(leaf.dtype):
            raise TypeError(
                "pipeline_value_and_grad takes parameters that are floats, but "
                f"{keystr(path) or 'that of the blocks'} is {leaf.dtype}: it has no "
                "gradient"
            )


def check_ends(
    block: Block,
    loss: Callable[..., object],
    ends: Ends,
    params: tuple[object, object, object],
    rows: object,
    targets: list[object],
) -> None:
    """Check the types from `first` to the loss.

    Raises:
        TypeError: a block changes them, or the loss is no scalar.
    """
    first, blocks, last = params
    h = eval_shape(ends.enter, first, tree_map(first_of, rows))
    check_block(block, blocks, h)
    aims = tree_map(first_of, targets)
    out = eval_shape(lambda last, h, *a: loss(ends.leave(last, h), *a), last, h, *aims)
    leaves = tree_leaves(out)
    if len(leaves) != 1 or leaves[0].shape != () or not is_float(leaves[0].dtype):
        raise TypeError(
            f"pipeline_value_and_grad: the loss {function_name(loss)} must return a "
            f"float scalar for a microbatch, not {shown(out)}"
        )
