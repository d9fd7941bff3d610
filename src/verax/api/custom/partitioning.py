"""Floor 5: functions that the user partitions over the devices of a mesh.

A call is one equation. On one device it means the function; over a mesh, XLA is told
which dimensions go together, and then asks the rule what each device computes::

    f = custom_partitioning(lambda x: x * x)
    f.def_partition(partition, sharding_rule="i -> i")
"""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import field, frozen

from verax.api.custom.arguments import (
    SortedArguments,
    held_positions,
    matching_leaves,
    sort_arguments,
    trace_body,
)
from verax.api.custom.base import CallRules, called, inner_rule, rules_of_call
from verax.api.custom.sharding_rules import (
    KINDS,
    SdyShardingRule,
    rule_text,
    str_to_sdy_sharding_rule,
)
from verax.api.custom.snapshots import Home, Snapshot, snapshot, snapshots_at
from verax.api.tracing.structs import ShapeDtypeStruct
from verax.api.tracing.trace import Traced, trace
from verax.api.tracing.wrapping import describe_arguments, function_name, look_like
from verax.api.vmap import axis_scope
from verax.backend import pytrees
from verax.backend.placement.mesh import Mesh, PartitionSpec
from verax.backend.placement.mesh_context import manual_axes
from verax.backend.placement.sharding import NamedSharding
from verax.backend.pytrees import PyTreeDef, result_tree
from verax.ir.avals import ShapedArray
from verax.ir.meshes import BaseMesh, TypeSharding
from verax.ops.custom.partitioned import PartitioningParams, custom_partitioning_p
from verax.rules.rows.emitter import Part
from verax.rules.rows.leaks import UnexpectedTracerError, leaked
from verax.rules.values.conversions import check_callable, shown
from verax.rules.values.state import STATE, entered, interpreting

type Factors = str | SdyShardingRule | Callable[..., object]


@frozen(cache_hash=True, repr=False)
class UserPartition(CallRules):
    """The rule of a call; `statics` are the arguments that it is called with first."""

    rule: Snapshot = field(repr=False)
    sharding_rule: Snapshot = field(repr=False)
    statics: tuple[Snapshot, ...] = field(repr=False)

    @property
    def functions(self) -> tuple[Snapshot, ...]:
        """See `CallRules.functions`."""
        return (self.rule, self.sharding_rule, *self.statics)

    @property
    def purpose(self) -> str:
        """The name of the rule in messages."""
        return f"the partition rule of {self.name}"

    @property
    def static_values(self) -> list[object]:
        """The arguments that may be anything."""
        return [x.value for x in self.statics]

    def factors(self, mesh: BaseMesh) -> str | None:
        """See `Partitioner.factors`.

        Raises:
            ValueError: a function returned something else than a rule.
        """
        rule: object = self.sharding_rule.value
        options: dict[str, Any] = {}
        if callable(rule):
            with entered(self.context), interpreting(STATE.eager):
                rule = rule(
                    *self.static_values,
                    mesh,
                    [ShapeDtypeStruct(a.shape, a.dtype) for a in self.avals],
                    [ShapeDtypeStruct(a.shape, a.dtype) for a in self.out_avals],
                )
            if isinstance(rule, tuple | list) and len(rule) == 2:
                rule, options = rule
            if isinstance(rule, str):
                rule = str_to_sdy_sharding_rule(rule, **options)
        if rule is None:
            return None
        if not isinstance(rule, SdyShardingRule):
            raise ValueError(
                "sharding_rule callable must produce either an SdyShardingRule object "
                f"or an Einsum-like notation string, but that of {self.name} produced "
                f"{shown(rule)}"
            )
        ins, outs = self.avals, self.out_avals
        return rule_text(rule, [a.shape for a in ins], [a.shape for a in outs])

    def part(
        self,
        mesh: BaseMesh,
        ins: Sequence[TypeSharding],
        outs: Sequence[TypeSharding],
    ) -> Part:
        """See `Partitioner.part`.

        Raises:
            TypeError: the rule does not return a mesh, a function and two trees.
            ValueError: a sharding is not one, or the function of the parts returns
                results of other types.
        """
        with entered(self.context), interpreting(STATE.eager):
            result = called(
                self.rule.value,
                self.purpose,
                "the static arguments, the mesh, the arguments and the result",
                (
                    *self.static_values,
                    mesh,
                    structs(self.tree, self.avals, ins),
                    structs(self.out_tree, self.out_avals, outs),
                ),
            )
            if not isinstance(result, tuple | list) or len(result) != 4:
                raise TypeError(
                    f"{self.purpose} must return the mesh, the function of the parts, "
                    f"the shardings of results and those of arguments, not "
                    f"{shown(result)}"
                )
            own, function, results, arguments = result
            if not isinstance(own, Mesh):
                raise TypeError(
                    f"{self.purpose} must return a Mesh first, not {shown(own)}"
                )
            check_callable(self.purpose, function)
            out_places = self.places("the result", self.out_tree, results, mesh)
            in_places = self.places("the arguments", self.tree, arguments, mesh)
            tiles = map(tile, self.avals, in_places)
            traced = trace_part(function, self.tree, list(tiles), own, self.purpose)
        due = list(map(tile, self.out_avals, out_places))
        self.check_results(traced.jaxpr.out_avals, due)
        return Part(traced.jaxpr, own, tuple(in_places), tuple(out_places))

    def places(
        self, what: str, tree: PyTreeDef, result: object, mesh: BaseMesh
    ) -> list[NamedSharding]:
        """The shardings that the rule has returned, one for each leaf.

        Raises:
            ValueError: one is not a sharding over the devices of `mesh`.
        """
        leaves = matching_leaves(
            self.purpose, f"shardings of {what}", tree, f"{what} of {self.name}", result
        )
        assert isinstance(mesh, Mesh)
        devices, out = set(mesh.devices.flat), []
        for leaf in leaves:
            if not isinstance(leaf, NamedSharding):
                raise ValueError(
                    "Custom Partitioning rules must return Sharding. "
                    f"{self.purpose} returned {shown(leaf)} for {what}"
                )
            if set(leaf.concrete.devices.flat) != devices:
                raise ValueError(
                    f"{self.purpose} returned {leaf} for {what}, whose devices are not "
                    f"those of the program, {mesh}"
                )
            out.append(leaf)
        return out

    def check_results(
        self, result: Sequence[ShapedArray], due: Sequence[ShapedArray]
    ) -> None:
        """Raise ValueError unless the parts are those of the results."""
        types = [[(a.shape, a.dtype) for a in avals] for avals in (result, due)]
        if types[0] != types[1]:
            texts = [", ".join(map(str, avals)) for avals in (result, due)]
            raise ValueError(
                f"Mismatch in result shapes. {self.purpose} returned a function whose "
                f"results are {texts[0]}, but the shardings of results that it "
                f"returned make parts of {texts[1]}"
            )


def structs(
    tree: PyTreeDef, avals: Sequence[ShapedArray], places: Sequence[TypeSharding]
) -> Any:
    """The types and shardings by which a rule knows arrays."""
    out: list[ShapeDtypeStruct] = []
    for aval, place in zip(avals, places, strict=True):
        assert isinstance(place, NamedSharding)
        spec = (*place.spec, *[None] * (aval.ndim - len(place.spec)))
        sharding = NamedSharding(place.mesh, PartitionSpec(*spec))
        out.append(ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding))
    return tree.unflatten(out)


def tile(aval: ShapedArray, place: NamedSharding) -> ShapedArray:
    """The type of a part; the last one is filled up where they are not even."""
    counts = place.counts(aval.ndim)
    shape = [-(-n // count) for n, count in zip(aval.shape, counts, strict=True)]
    return aval.with_shape(tuple(shape)).strong()


def trace_part(
    function: Callable[..., object],
    tree: PyTreeDef,
    tiles: Sequence[ShapedArray],
    mesh: Mesh,
    purpose: str,
) -> Traced:
    """The function of the parts, within which the axes of the mesh have names.

    Raises:
        LeakedTracer: it closes over a tracer.
    """
    _, full = pytrees.flatten((tree.unflatten([0] * len(tiles)), {}))
    describe = describe_arguments(function, full)
    with axis_scope(mesh.shape_tuple), manual_axes(mesh, mesh.axis_names):
        traced = trace(function, full, tiles, purpose, describe=describe)
    if traced.captured:
        raise leaked(traced.captured[0])
    return traced


class custom_partitioning(Home):
    """A function with a rule for what each device of a mesh computes of it.

    Args:
        fun: the function, which is what programs for one device run.
        static_argnums: the positions of arguments that are no arrays: the rules are
            called with them first.

    >>> import numpy as np, verax, verax.numpy as vnp
    >>> from verax.sharding import NamedSharding, PartitionSpec as P
    >>> f = custom_partitioning(lambda x: vnp.flip(x, 0))
    >>> def partition(mesh, args, result):
    ...     whole = NamedSharding(mesh, P(None, *args[0].sharding.spec[1:]))
    ...     return mesh, lambda x: vnp.flip(x, 0), whole, (whole,)
    >>> rule = f.def_partition(
    ...     partition, sharding_rule="i j -> i j", need_replication_factors=("i",)
    ... )
    >>> verax.jit(f)(np.arange(3).reshape(3, 1)).tolist()
    [[2], [1], [0]]
    """

    __module__ = "verax.experimental.custom_partitioning"
    parts = ("fun", "partition", "sharding_rule")

    def __init__(
        self, fun: Callable[..., object], static_argnums: int | Sequence[int] = ()
    ) -> None:
        look_like(self, fun)  # copies what the function within has
        super().__init__(fun)
        self.held = held_positions(fun, static_argnums, (), "static_argnums")
        given = static_argnums
        self.static_argnums = (given,) if isinstance(given, int) else tuple(given)
        self.partition: Callable[..., Any] | None = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.propagate_user_sharding: Callable[..., Any] | None = None
        self.sharding_rule: SdyShardingRule | Callable[..., object] | None = None

    def __getattr__(self, name: str) -> Any:
        """Gives rules to the function within: `custom_partitioning(f)`."""
        return inner_rule(self, name)

    def def_partition(
        self,
        partition: Callable[..., object],
        infer_sharding_from_operands: Callable[..., object] | None = None,
        propagate_user_sharding: Callable[..., object] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Factors | None = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> Callable[..., Any]:
        """Give the rules.

        Args:
            partition: `partition(*static, mesh, arguments, result)`, where the last
                two are trees of `ShapeDtypeStruct`s with the shardings that the
                compiler would choose, returns the mesh, a function of the parts of the
                arguments, and the trees of shardings that it gives and takes.
            infer_sharding_from_operands, propagate_user_sharding: what an older
                partitioner of XLA asked; `sharding_rule` says that now.
            decode_shardings: shardings are always over a mesh, whatever this says.
            sharding_rule: which dimensions go together: a string such as
                "i j, j k -> i k", an `SdyShardingRule`, or a function
                `rule(*static, mesh, arguments, results)` that returns one of these,
                alone or with a dict of the further arguments of this method.
            reduction_factors, need_replication_factors, permutation_factors,
                factor_sizes: see `SdyShardingRule`, for a string.

        Returns:
            `partition`.

        Raises:
            ValueError: the string is not a rule, or there are further arguments
                without one.
        """
        special = (reduction_factors, need_replication_factors, permutation_factors)
        options: dict[str, Any] = dict(factor_sizes)
        for kind, factors in zip(KINDS, special, strict=True):
            if factors != ():
                options[f"{kind}_factors"] = factors
        if isinstance(sharding_rule, str):
            self.sharding_rule = str_to_sdy_sharding_rule(sharding_rule, **options)
        elif options:
            raise ValueError(
                f"Unknown keyword arguments: {options}; they belong to a sharding_rule "
                "that is a string"
            )
        else:
            self.sharding_rule = sharding_rule
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        return partition

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The value of the function; in a program over a mesh, by the rule."""
        name = function_name(self.fun)
        if self.partition is None:
            raise AttributeError(
                f"No partition rule defined for custom_partitioning function {name}: "
                f"give it one with {name}.def_partition"
            )
        older = (self.infer_sharding_from_operands, self.propagate_user_sharding)
        if self.sharding_rule is None and older != (None, None):
            raise NotImplementedError(
                f"{name} has callbacks for how shardings spread, which XLA no longer "
                "asks: provide sharding_rule to migrate to Shardy"
            )
        given = sort_arguments(
            self.fun,
            self.signature,
            self.held,
            args,
            kwargs,
            "custom_partitioning",
            "static_argnums",
        )
        if given.held_tracers:
            raise UnexpectedTracerError(
                f"Found a JAX Tracer object passed as an argument to the "
                f"custom_partitioning function {name} in a position indicated as "
                "static by static_argnums"
            )
        return self.bind(given)

    def bind(self, given: SortedArguments) -> Any:
        """The call as an equation of the current trace, or its value."""
        assert self.partition is not None
        body, avals = trace_body(self.fun, given)
        values = dict(zip(self.held, given.held, strict=True))
        rule, sharding = snapshots_at(self, (self.partition, self.sharding_rule))
        statics = tuple([snapshot(values[i].value)[0] for i in self.static_argnums])
        own = rule, sharding, statics
        user = rules_of_call(UserPartition, self, given, body, avals, *own)
        params = PartitioningParams(user.name, len(body.captured), body.jaxpr, user)
        outs = custom_partitioning_p.bind(params, *body.captured, *given.leaves)
        return result_tree(body.out_tree, outs)
