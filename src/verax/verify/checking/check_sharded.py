"""Floor 6: check_sharded: a program over a mesh held to what one device computes.

One idea: a mesh changes where numbers are, not what they are; so the function of whole
arrays is compiled for arrays that lie in parts, its per-device form is mapped over the
mesh, and values and derivatives of both are those of one device::

    check_sharded(loss, w, x, mesh=mesh, in_specs=(P(), P("m")))
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import combinations
from math import prod
from typing import Any, ClassVar, Final

import numpy as np
from attrs import evolve, frozen

from verax.api.autodiff.jvp_vjp import vjp
from verax.api.jit import jit
from verax.api.parallel.device_put import device_put
from verax.api.parallel.shard_map import shard_map
from verax.api.sharding_args import place_entries
from verax.api.tracing.apply import as_typed_array
from verax.api.tracing.wrapping import describe_arguments, function_name
from verax.backend import pytrees
from verax.backend.placement.mesh import Mesh, PartitionSpec
from verax.backend.placement.sharding import NamedSharding
from verax.ir.dtypes import is_inexact
from verax.ir.meshes import AxisType
from verax.ir.records import ReprMixin
from verax.lax.parallel import psum
from verax.rules.rows.row import NDArray
from verax.rules.values.array import Array
from verax.rules.values.conversions import check_callable, shown
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case, Skipped, array_text, broken, import_lines
from verax.verify.cases.tolerance import difference
from verax.verify.checking.functions import (
    ENGINE,
    Function,
    Text,
    as_leaf,
    function_cases,
    function_of,
)
from verax.verify.checking.report import Finding, Report, search
from verax.verify.laws import Law
from verax.verify.laws.agreement import SLACK, Run, measured
from verax.verify.laws.derivatives import directions, filled, tangent_types

CASES: Final = 4
"""Values are a matter of the other laws; one that shows a wrong factor is enough."""
ULPS: Final = 256.0
EXACT: Final = 1e-3
"""A factor that all elements have in common, up to this, is named."""

type Values = Sequence[NDArray]
type Leaves = Sequence[Any]


@frozen(eq=False, repr=False)
class Sharded(ReprMixin):
    """A function of whole arrays, how its arguments are split, and its parts' form.

    `places` has one sharding for each leaf of the arguments; `ends` one spec for each
    leaf of the result, if there is a `local` function.
    """

    function: Function
    mesh: Mesh
    specs: tuple[object, object]
    local: Callable[..., object] | None
    check_vma: bool

    transient: ClassVar[bool] = True

    @cached_property
    def places(self) -> list[NamedSharding]:
        """The sharding of each leaf of the arguments."""
        args = self.unflatten(range(self.function.tree.num_leaves))
        given = entries("in_specs", self.specs[0], args)
        return [NamedSharding(self.mesh, spec) for spec in given]

    @cached_property
    def names(self) -> Sequence[str]:
        """The names of the leaves of the arguments, for messages."""
        return describe_arguments(self.function.fun, self.function.tree)()

    def unflatten(self, leaves: Iterable[object]) -> tuple[object, ...]:
        """The arguments of a call."""
        args: tuple[object, ...] = self.function.tree.unflatten(list(leaves))[0]
        return args

    def placed(self, values: Values) -> list[object]:
        """The leaves of a call, each in its parts."""
        leaves = self.function.leaves(values)
        pairs = zip(leaves, self.places, strict=True)
        return [device_put(x, place) for x, place in pairs]

    @cached_property
    def whole(self) -> Callable[..., Any]:
        """The function of whole arrays, compiled."""
        return jit(self.function.fun)

    @cached_property
    def mapped(self) -> Callable[..., Any]:
        """The function of one device, mapped over the mesh."""
        assert self.local is not None
        specs = tuple(self.unflatten([place.spec for place in self.places]))
        return shard_map(
            self.local,
            mesh=self.mesh,
            in_specs=specs,
            out_specs=self.specs[1],
            check_vma=self.check_vma,
        )

    @cached_property
    def pulled(self) -> Callable[..., Any]:
        """The derivative of the function of whole arrays, compiled."""
        return jit(lambda leaves, cts: self.pull(self.function.fun, leaves, cts))

    @cached_property
    def pulled_outside(self) -> Callable[..., object]:
        """The derivative of the mapped function."""
        return jit(lambda leaves, cts: self.pull(self.mapped, leaves, cts))

    def pulled_inside(self, leaves: Leaves, cts: Leaves, ends: object) -> object:
        """The derivatives that each device takes, put together as the arguments are."""
        specs = [place.spec for place in self.places]
        active = [is_inexact(aval.dtype) for aval in self.function.avals]
        return shard_map(
            lambda leaves, cts: self.pull(self.local, leaves, cts, True),
            mesh=self.mesh,
            in_specs=(specs, ends),
            out_specs=[spec for spec, flag in zip(specs, active, strict=True) if flag],
        )(list(leaves), list(cts))

    def pull(
        self,
        fun: Any,
        leaves: Leaves,
        cts: Leaves,
        parts: bool = False,
    ) -> list[object]:
        """The cotangents of the leaves that have any."""
        outs, back = vjp(fun, *self.unflatten(leaves))
        ends, tree = pytrees.flatten(outs)
        if parts:
            cts = [as_varying(ct, out) for ct, out in zip(cts, ends, strict=True)]
        result = pytrees.flatten(back(tree.unflatten(list(cts))))[0]
        return [
            x
            for x, aval in zip(result, self.function.avals, strict=True)
            if is_inexact(aval.dtype)
        ]

    def snippet(self, law: str, case: Case) -> list[str]:
        """A program that tries the law on the values of the case."""
        args = self.unflatten([Text(array_text(x)) for x in case.values])
        name = own_name(self.function.fun, "f")
        local = None if self.local is None else own_name(self.local, "local")
        known: dict[str, object] = {name: self.function.fun}
        more = ""
        if local is not None:
            known[local] = self.local
            more = f" local={local}, out_specs={self.specs[1]!r},"
        sizes, axes = tuple(self.mesh.shape.values()), self.mesh.axis_names
        return [
            "import ml_dtypes",
            "import numpy as np",
            "import verax",
            "from numpy import inf, nan",
            "from verax import P, verify",
            *import_lines(known),
            f"mesh = verax.make_mesh({sizes!r}, {axes!r})",
            f"report = verify.check_sharded({name}, *{args!r}, mesh=mesh,",
            f"    in_specs={self.specs[0]!r},{more} check_vma={self.check_vma},",
            f"    laws=[{law!r}], cases=1)",
            "report.raise_if_broken()",
        ]


def own_name(fun: Callable[..., object], other: str) -> str:
    name = function_name(fun)
    return name if name.isidentifier() else other


def entries(what: str, specs: object, tree: object) -> list[PartitionSpec]:
    """One spec for each leaf; None stands for what no axis splits.

    Raises:
        TypeError: one is no spec.
        ValueError: `specs` is not a prefix of the tree.
    """
    out = []
    for spec in place_entries(what, specs, tree):
        if spec is not None and not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"check_sharded {what} must be made of PartitionSpecs, not "
                f"{shown(spec)}"
            )
        out.append(spec or PartitionSpec())
    return out


def as_varying(ct: Array, out: Array) -> Array:
    """A cotangent along the axes along which the result varies.

    A result that is the same on all devices is one number, however often it is laid
    down: what is asked of its copies adds up.
    """
    none: frozenset[str] = frozenset()
    extra = getattr(ct.aval, "vma", none) - getattr(out.aval, "vma", none)
    return psum(ct, tuple(sorted(extra))) if extra else ct


def hold_same(
    sharded: Sharded,
    law: str,
    engine: StandardEngine,
    case: Case,
    named: Sequence[tuple[str, PartitionSpec]],
    got: Values,
    want: Values,
    spread: Callable[[], Values],
) -> None:
    """Raise unless the results over the mesh are those of one device.

    Raises:
        LawBroken: they are not; it says which, where, and along which axis.
    """
    slack: Values | None = None
    for i, ((name, spec), x, y) in enumerate(zip(named, got, want, strict=True)):
        first = difference(x, y, ulps=ULPS)
        if first is not None and x.shape == y.shape:
            slack = slack or spread()
            first = difference(x, y, ulps=ULPS, slack=SLACK * slack[i])
        if first is not None:
            where = part_of(sharded.mesh, spec, x.shape, first.index)
            what = f"{name} is not that of one device"
            why = reason(sharded.mesh, x, y)
            raise broken(law, case, what + where + why, got=x, want=y, first=first)


def part_of(
    mesh: Mesh, spec: PartitionSpec, shape: Sequence[int], index: Sequence[int]
) -> str:
    """In which part of an array an element lies, along each axis that splits it.

    >>> from verax import P, make_mesh
    >>> part_of(make_mesh((1,), ("m",)), P("m"), (4,), (3,))
    ", in part 0 along mesh axis 'm'"
    """
    out = []
    splits = NamedSharding(mesh, spec).splits
    for split, size, place in zip(splits, shape, index, strict=False):
        sizes = [mesh.shape[axis] for axis in split or ()]
        part = place * prod(sizes) // max(size, 1)
        for axis, count in zip((split or ())[::-1], sizes[::-1], strict=True):
            out.append(f"in part {part % count} along mesh axis {axis!r}")
            part //= count
    if out:
        return ", " + ", ".join(out)
    axes = ", ".join(repr(axis) for axis in mesh.axis_names)
    return f", which is whole on all devices of the mesh ({axes})"


def reason(mesh: Mesh, got: NDArray, want: NDArray) -> str:
    """The axes of the mesh that a common factor of all elements points to, if it does.

    >>> from verax import make_mesh
    >>> reason(make_mesh((1,), ("m",)), np.ones(2), np.zeros(2))
    ''
    """
    if got.shape != want.shape or not is_inexact(got.dtype):
        return ""
    with np.errstate(all="ignore"):
        factors = (got / want)[(want != 0) & np.isfinite(want)].astype(complex)
    if not factors.size or not np.all(np.isfinite(factors)):
        return ""
    factor = factors.flat[0]
    if not np.all(np.abs(factors - factor) <= EXACT * abs(factor)):
        return ""
    for axes in groups(mesh):
        size = prod([mesh.shape[axis] for axis in axes])
        where = " and ".join(map(repr, axes))
        if abs(factor - size) <= EXACT * size:
            return f": it is {size} times as large, the size of mesh axis {where}"
        if abs(factor * size - 1) <= EXACT:
            return (
                f": it is 1/{size} of it, and {size} is the size of mesh axis {where}"
            )
    return ""


def groups(mesh: Mesh) -> list[tuple[str, ...]]:
    """The axes of a mesh with several devices, and groups of them, smallest first."""
    axes = [name for name, size in mesh.shape.items() if size > 1]
    counts = range(1, len(axes) + 1)
    return [group for count in counts for group in combinations(axes, count)]


def value_law(sharded: Sharded, name: str, run: Callable[[], Any]) -> Law:
    """The law that calling what `run` gives on placed arrays gives the values."""

    def check(engine: StandardEngine, case: Case) -> None:
        want = engine.evaluate(case.jaxpr, case.values)
        outs = run()(*sharded.unflatten(sharded.placed(case.values)))
        got = numbers(pytrees.flatten(outs)[0])
        ends = result_specs(sharded, name, outs)
        named = [(f"result {i}", spec) for i, spec in enumerate(ends)]
        if len(got) != len(want):
            what = f"{len(got)} results instead of {len(want)}"
            raise broken(name, case, what)
        at = Run(case.jaxpr, case.values)
        hold_same(
            sharded,
            name,
            engine,
            case,
            named,
            got,
            want,
            lambda: measured(engine, case, at),
        )

    return Law(name, check, rows_only=False)


def result_specs(sharded: Sharded, law: str, outs: object) -> list[PartitionSpec]:
    """The split of the results of a call, as far as anybody has said it."""
    if law == "shard_map":
        return entries("out_specs", sharded.specs[1], outs)
    return [PartitionSpec() for _ in pytrees.flatten(outs)[0]]


def gradient_law(
    sharded: Sharded, name: str, run: Callable[[Leaves, Leaves], Any]
) -> Law:
    """The law that cotangents pulled back over the mesh are those of one device."""

    def check(engine: StandardEngine, case: Case) -> None:
        jaxpr, active = case.jaxpr, case.active
        if not any(active) or not all(is_inexact(a.dtype) for a in jaxpr.out_avals):
            raise Skipped("derivatives are of inexact results by inexact arguments")
        cts = directions(case, [aval.tangent() for aval in jaxpr.out_avals], 9)
        want, spread = pulled_by_one(engine, case, cts)
        typed = [
            as_typed_array(x, a.tangent())
            for x, a in zip(cts, jaxpr.out_avals, strict=True)
        ]
        got = numbers(run(sharded.placed(case.values), typed))
        named = [
            (f"the cotangent of {label}", place.spec)
            for label, place, flag in zip(
                sharded.names, sharded.places, active, strict=True
            )
            if flag
        ]
        hold_same(sharded, name, engine, case, named, got, want, spread)

    return Law(name, check)


def pulled_by_one(
    engine: StandardEngine, case: Case, cts: Values
) -> tuple[list[NDArray], Callable[[], Values]]:
    """The cotangents on one device, and how far rounding errors move them."""
    jaxpr, active = case.jaxpr, case.active
    forward, tangent, mask = engine.linearize(jaxpr, active)
    saved = engine.evaluate(forward, case.values)[len(jaxpr.outvars) :]
    linear = (False,) * len(saved) + (True,) * sum(active)
    back, live = engine.transpose(tangent, linear, (True,) * sum(mask))
    given = [ct for ct, flag in zip(cts, mask, strict=True) if flag]
    run = Run(back, (*saved, *given))
    types = tangent_types(jaxpr.in_avals, active)
    want = filled(types, live, engine.evaluate(back, run.args))
    return want, lambda: filled(types, live, measured(engine, case, run))


def own(sharded: Sharded, law: str, case: Case) -> Case:
    """The case with a snippet that checks the function over a mesh."""
    return evolve(case, snippet=lambda case: sharded.snippet(law, case))


def numbers(leaves: Iterable[object]) -> list[NDArray]:
    return [np.asarray(as_leaf(x).stored()) for x in leaves]


def sharded_laws(sharded: Sharded) -> tuple[Law, ...]:
    """The laws of a program over a mesh; those of `local` if there is one."""
    laws = [
        value_law(sharded, "jit", lambda: sharded.whole),
        gradient_law(sharded, "vjp of jit", lambda xs, cts: sharded.pulled(xs, cts)),
    ]
    if sharded.local is None:
        return tuple(laws)
    laws += [
        value_law(sharded, "shard_map", lambda: sharded.mapped),
        gradient_law(
            sharded,
            "vjp of shard_map",
            lambda xs, cts: sharded.pulled_outside(xs, cts),
        ),
    ]
    if sharded.check_vma:
        laws.append(
            gradient_law(
                sharded,
                "vjp inside",
                lambda xs, cts: sharded.pulled_inside(
                    xs, cts, entries("out_specs", sharded.specs[1], cts)
                ),
            )
        )
    return tuple(laws)


def sharded_of(
    fun: Callable[..., object],
    args: Sequence[object],
    mesh: Mesh,
    in_specs: object,
    local: Callable[..., object] | None,
    out_specs: object,
    domains: object,
    check_vma: bool,
) -> Sharded:
    """The subject of `check_sharded`, whose errors these are."""
    if not isinstance(mesh, Mesh):
        raise TypeError(
            "check_sharded needs a mesh of devices (verax.make_mesh), not "
            f"{shown(mesh)}"
        )
    if (local is None) != (out_specs is None):
        raise ValueError(
            "check_sharded takes local and out_specs together: what each device "
            "computes, and how its results make whole ones"
        )
    if local is not None:
        check_callable("check_sharded", local)
    function = function_of(fun, args, {}, domains)
    # Where types say how values are split, they say so in the program of one device.
    auto = mesh.update_axis_types(dict.fromkeys(mesh.explicit_axes, AxisType.Auto))
    out = Sharded(function, auto, (in_specs, out_specs), local, check_vma)
    for place, aval, name in zip(out.places, function.avals, out.names, strict=True):
        place.check(aval.shape, name)
    return out


def searched(
    sharded: Sharded, name: str, known: Mapping[str, Law], cases: int, seed: int | None
) -> Finding:
    """The finding of the law of that name on drawn calls."""
    if name not in known:
        raise ValueError(
            f"there is no law {name!r} here; the laws are {', '.join(known)}"
        )
    function, law = sharded.function, known[name]
    source = function_cases(function, law).map(partial(own, sharded, name))
    return search(law, function.name, ENGINE, source, cases, seed=seed)


def check_sharded(
    fun: Callable[..., object],
    *args: object,
    mesh: Mesh,
    in_specs: object,
    local: Callable[..., object] | None = None,
    out_specs: object = None,
    domains: object = None,
    check_vma: bool = True,
    cases: int = CASES,
    laws: Iterable[str] | None = None,
    seed: int | None = None,
) -> Report:
    """Checks a program over a mesh against one device: a finding for each law.

    `jit` and `vjp of jit`: the function, compiled for arguments that are split over the
    mesh, has the value and the cotangents that it has on one device. With `local`,
    `shard_map` and `vjp of shard_map` say the same of that function mapped over the
    mesh; and `vjp inside` says that the cotangents that each device takes for itself,
    within the map, are the parts of the whole ones.

    Args:
        fun: a function of whole arrays: what is meant.
        args: example arguments, as in `check_function`.
        mesh, in_specs: how the arguments are split, as in `shard_map`.
        local: what each device computes from its parts, with collectives.
        out_specs: how the results of `local` make whole ones, as in `shard_map`.
        check_vma: as in `shard_map`. Without it, derivatives inside the map are not
            those of whole arrays, and are not looked at.
        domains, cases, laws, seed: as in `check_function`.

    Raises:
        TypeError: there is no function, no mesh of devices, or a spec is none.
        ValueError: `local` or `out_specs` lacks the other, an argument cannot be split
            so, or there is no such law.

    >>> import numpy as np, verax
    >>> from verax import P, lax
    >>> mesh = verax.make_mesh((1,), ("m",))
    >>> report = check_sharded(
    ...     lambda w, x: ((x @ w) ** 2).sum(), np.ones(3), np.ones((4, 3)),
    ...     mesh=mesh, in_specs=(P(), P("m")),
    ...     local=lambda w, x: lax.psum(((x @ w) ** 2).sum(), "m"), out_specs=P(),
    ...     laws=["vjp of jit", "shard_map", "vjp of shard_map"],
    ... )
    >>> bool(report), [finding.verdict for finding in report]
    (True, ['holds', 'holds', 'holds'])
    """
    sharded = sharded_of(
        fun, args, mesh, in_specs, local, out_specs, domains, check_vma
    )
    known = {law.name: law for law in sharded_laws(sharded)}
    findings = [
        searched(sharded, name, known, cases, seed)
        for name in (known if laws is None else laws)
    ]
    return Report(sharded.function.name, tuple(findings))
