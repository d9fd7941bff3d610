"""Floor 5: exported functions: what is left of a program when Python is gone.

One idea: an exported function is its StableHLO module with the types and structures of
what goes in and out; calling one is an equation like any other, and its derivative is
another exported function::

    exported = export(jit(f))(x)
    exported.call(x), exported.vjp(), exported.serialize(vjp_order=1)
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from attrs import field, frozen

from verax.api.autodiff.jvp_vjp import vjp
from verax.api.config.config import override
from verax.api.custom.vjp import custom_vjp
from verax.api.export.places import (
    AnyMesh,
    Shardings,
    fitting_layouts,
    layouts_of,
    on_first_devices,
    read_layout,
    several_devices,
    shardings_on,
    write_layout,
)
from verax.api.jit import PjitFunction, jit
from verax.api.stages.stages import Traced, checked_platforms
from verax.api.tracing.apply import EAGER, ENGINE, apply
from verax.api.tracing.structs import struct_of
from verax.api.tracing.wrapping import describe_arguments
from verax.api.trees.pytrees import keystr
from verax.api.trees.serialization import read_tree, write_tree
from verax.backend import pytrees
from verax.backend.lowering.lower import lower
from verax.backend.lowering.mlir_text import mlir_type
from verax.backend.lowering.stablehlo_io import (
    custom_targets,
    from_portable,
    refined,
    signature,
    to_portable,
)
from verax.backend.programs.placement import Placement
from verax.backend.programs.program import spread_of
from verax.backend.pytrees import PyTreeDef, result_tree
from verax.ir.avals import ShapedArray, SymbolicSize
from verax.ir.dtypes import int32, is_inexact
from verax.ir.forms.values import Frame, crc32, cut
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin, Unchanging
from verax.ir.text.tokens import OVER, aval_of_word, filed_text
from verax.ops.calls.call_exported import (
    ExportedModule,
    ExportedParams,
    Layouts,
    call_exported_p,
)
from verax.ops.symbols.expression import SymbolicDim
from verax.ops.symbols.parse import (
    Plan,
    SymbolicScope,
    parsed_shape,
    solved,
    solving_plan,
)
from verax.rules.rows.leaks import leaked
from verax.rules.rows.row import same_kind
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import SHOWN, shown
from verax.rules.values.state import STATE, interpreting

# -----------------------------------------------------------------------------
# Exported functions as bytes.
#
# In a frame with a version and a checksum stand a list of JSON descriptions,
# one for the function and one for each derivative, and then their modules::
#
#     pack([{"name": "f", ...}], [module]) -> bytes
#     unpack(data) -> ([{...}], [module])
#
# Wrong bytes are found here, before anything else looks at them.


FRAME: Final = Frame(
    b"verax-export\n", 1, "exported function", "Exported.serialize()", crc32
)


def pack(descriptions: Sequence[dict[str, object]], modules: Sequence[bytes]) -> bytes:
    """The file of a function and its derivatives."""
    sized: list[Any] = [
        {**description, "size": len(module)}
        for description, module in zip(descriptions, modules, strict=True)
    ]
    return FRAME.pack(sized, modules)


def unpack(data: bytes | bytearray) -> tuple[list[dict[str, object]], list[bytes]]:
    """The descriptions and the modules.

    Raises:
        TypeError: `data` is not bytes.
        ValueError: it is not an exported function, is damaged, or of another version.
    """
    if not isinstance(data, bytes | bytearray):
        raise TypeError(f"deserialize takes bytes, not {type(data).__name__}")
    result, rest = FRAME.unpack(bytes(data))
    descriptions: Any = result
    with FRAME.understanding():
        return descriptions, cut(rest, [one["size"] for one in descriptions])


# In the second, the module takes the number of its platform as its first argument.
CALLING_CONVENTIONS = (1, 2)
# How the library annotates parameters that take arrays or numbers.
OF_VALUES: Final = re.compile(r"Array|Where|Any|float|complex")
# The prefixes of the names of routines that jaxlib promises to keep.
ROUTINES = ("lapack_", "cusolver_", "hipsolver_")
# The number of the platform that the module runs on.
PLATFORM_NUMBER: Final = ShapedArray((), int32)
# XLA itself has these on every platform.
STABLE_TARGETS = frozenset(
    (
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "shape_assertion",
        "stablehlo.dynamic_rng_bit_generator",
        "stablehlo.dynamic_top_k",
    )
)


@frozen(repr=False)
class DisabledSafetyCheck(ReprMixin):
    """A check of `export` that the caller turns off.

    >>> DisabledSafetyCheck.custom_call("my_kernel")
    DisabledSafetyCheck(kind='custom_call', target='my_kernel')
    """

    __module__ = "verax.export"

    kind: str
    target: str = ""

    @classmethod
    def platform(cls) -> "DisabledSafetyCheck":
        """Let the function be called on platforms for which it was not exported."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> "DisabledSafetyCheck":
        """Let the module call `target_name`, which later versions may lack."""
        return cls("custom_call", target_name)

    def is_custom_call(self) -> str | None:
        """The target that is allowed, if the check is about one."""
        return self.target if self.kind == "custom_call" else None


@frozen(eq=False, kw_only=True, repr=False)
class Exported(Unchanging, ReprMixin):
    """A function as a StableHLO module, with all that a caller needs to know.

    `in_tree` is the structure of (args, kwargs); `in_avals` and `out_avals` are the
    types of the leaves. The module takes those arguments that `module_kept_var_idx`
    names, and holds the arrays that the function captured. Floating leaves have
    cotangents; integer ones have none. A module for several platforms that does not do
    the same on each takes the number of its platform before everything else:
    `takes_platform` says so. A function for several devices runs on any mesh of
    as many: `in_shardings_jax(mesh)` says where to put its arguments.
    """

    __module__ = "verax.export"

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    platforms: tuple[str, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...] = ()
    mlir_module_serialized: bytes = field(repr=False)
    module_kept_var_idx: tuple[int, ...]
    nr_devices: int = 1
    takes_platform: bool = False
    in_layouts: Layouts = field(default=(), repr=False)
    out_layouts: Layouts = field(default=(), repr=False)
    get_vjp: Callable[[], "Exported"] | None = field(default=None, repr=False)

    @property
    def calling_convention_version(self) -> int:
        """1, or 2 where the module takes the number of its platform."""
        return CALLING_CONVENTIONS[self.takes_platform]

    @property
    def uses_global_constants(self) -> bool:
        """Whether the module is for symbolic sizes, or takes its platform's number."""
        return self.takes_platform or any([aval.symbolic for aval in self.in_avals])

    @property
    def ordered_effects(self) -> tuple[object, ...]:
        """The effects of the program whose order counts: none can be exported."""
        return ()

    @property
    def unordered_effects(self) -> tuple[object, ...]:
        """The other effects of the program: none can be exported."""
        return ()

    @property
    def in_shardings_hlo(self) -> tuple[None, ...]:
        """XLA's shardings of the arguments: none, see `in_shardings_jax`."""
        return (None,) * len(self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple[None, ...]:
        """XLA's shardings of the results: none, see `out_shardings_jax`."""
        return (None,) * len(self.out_avals)

    def in_shardings_jax(self, mesh: AnyMesh | None = None) -> Shardings:
        """The shardings of the arguments on a mesh; None where nothing was said.

        Without a mesh it is one of Auto axes that has no devices.

        Raises:
            ValueError: the mesh has other axes than that of the export.
        """
        return shardings_on(mesh, self.in_layouts, len(self.in_avals))

    def out_shardings_jax(self, mesh: AnyMesh | None = None) -> Shardings:
        """The shardings of the results on a mesh; None where the compiler decides.

        Raises:
            ValueError: the mesh has other axes than that of the export.
        """
        return shardings_on(mesh, self.out_layouts, len(self.out_avals))

    def mlir_module(self) -> str:
        """The StableHLO module as text."""
        return self.text

    @cached_property
    def text(self) -> str:
        """The module as text, which takes and returns what was exported.

        Raises:
            ValueError: it does not, or this jaxlib cannot read it.
        """
        text = from_portable(self.mlir_module_serialized)
        extra = (PLATFORM_NUMBER,) if self.takes_platform else ()
        ins = (*extra, *[self.in_avals[i] for i in self.module_kept_var_idx])
        due = tuple(map(mlir_type, ins)), tuple(map(mlir_type, self.out_avals))
        if (result := signature(text)) != due:
            raise ValueError(
                f"the module of the exported function {self.fun_name} is one of "
                f"{arrow(*result)}, but its description says {arrow(*due)}: the file "
                "was altered"
            )
        return text

    def has_vjp(self) -> bool:
        """Whether there is a derivative."""
        return self.get_vjp is not None

    def vjp(self) -> "Exported":
        """The derivative: takes the leaves of the arguments and the cotangents of the
        floating results; returns the tuple of cotangents of the floating arguments.

        Raises:
            ValueError: the function was serialised without it.
        """
        if self.get_vjp is None:
            raise ValueError(
                f"the exported function {self.fun_name} has no derivative: it was "
                "serialised without one; pass a larger vjp_order to serialize"
            )
        return self.derivative

    @cached_property
    def derivative(self) -> "Exported":
        assert self.get_vjp is not None
        return self.get_vjp()

    def call(self, *args: object, **kwargs: object) -> Any:
        """The function itself; also under jit, grad and vmap.

        Raises:
            ValueError: the arguments have another structure or types than the function
                was exported for, or the program runs on another platform.
            MissingRule: it is differentiated, and has no derivative.
        """
        leaves, tree = pytrees.flatten((args, kwargs))
        self.check_arguments(leaves, tree)
        return result_tree(self.out_tree, self.flat(*leaves))

    def check_arguments(self, leaves: Sequence[object], tree: PyTreeDef) -> None:
        """The arguments must be those for which the function was exported."""
        if tree != self.in_tree:
            raise ValueError(
                "The invocation args and kwargs must have the same pytree structure as "
                f"those for which {self.fun_name} was exported: {self.in_tree}, not "
                f"{tree}"
            )
        names = describe_arguments(self.fun_name, tree)
        for i, (leaf, due) in enumerate(zip(leaves, self.in_avals, strict=True)):
            given = aval_of(leaf)
            if not fits(given, due):
                place = names()[i].removesuffix(f" of {self.fun_name}")
                raise ValueError(
                    f"{mismatch(path_of(self, i), given, due)}{place} of the exported "
                    f"function {self.fun_name} is {given}, but must be {due.strong()}"
                )

    @cached_property
    def flat(self) -> Callable[..., tuple[Any, ...]]:
        """The function on leaves, with its derivative if there is one."""
        kept = self.module_kept_var_idx

        @named(self.fun_name)
        def plain(*leaves: object) -> tuple[object, ...]:
            operands = [leaves[i] for i in kept]
            params = params_of(self, tuple(map(aval_of, leaves)))
            return tuple(call_exported_p.bind(params, *operands))

        if self.get_vjp is None:
            return plain

        def forward(*leaves: object) -> tuple[tuple[object, ...], tuple[object, ...]]:
            # With its derivative: a second one goes through this call.
            return self.flat(*leaves), leaves

        def backward(
            leaves: tuple[object, ...], cts: tuple[object, ...]
        ) -> tuple[Any, ...]:
            outs = zip(cts, self.out_avals, strict=True)
            given = [ct for ct, aval in outs if is_inexact(aval.dtype)]
            out = iter(self.vjp().flat(*leaves, *given))
            return tuple(
                next(out) if is_inexact(aval.dtype) else None for aval in self.in_avals
            )

        function = custom_vjp(plain)
        function.defvjp(forward, backward)
        return function

    @cached_property
    def plan(self) -> Plan:
        """Solves for the values of symbolic sizes, given those of the arguments."""
        return solving_plan([aval.shape for aval in self.in_avals])

    def sizes_for(self, avals: Sequence[ShapedArray]) -> Mapping[str, Any]:
        """The values of the variables for arguments of these types.

        Raises:
            ValueError: a size does not fit.
        """
        due = [aval.shape for aval in self.in_avals]
        given = [aval.shape for aval in avals]
        return solved(self.plan, due, given, lambda i: path_of(self, i))

    def serialize(self, vjp_order: int = 0) -> bytes:
        """The function as bytes, with its derivatives up to `vjp_order`.

        Raises:
            TypeError: a structure holds a class or a key without a serialised form.
            ValueError: a derivative of that order is not there.
        """
        return write_exported(self, vjp_order)

    def run(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """The module on NumPy arrays: how the interpreter evaluates a call.

        Raises:
            ValueError: it is for more devices than there are.
        """
        with interpreting(EAGER):
            params = params_of(self, tuple(map(aval_of, arrays)))
            if self.nr_devices > 1:
                kept = [self.in_layouts[i] for i in self.module_kept_var_idx]
                arrays = on_first_devices(arrays, kept, self.nr_devices)
            return [x.stored() for x in call_exported_p.bind(params, *arrays)]


def arrow(ins: Sequence[str], outs: Sequence[str]) -> str:
    """The type of a function."""
    return f"({', '.join(ins)}) -> ({', '.join(outs)})"


def fits(aval: ShapedArray, due: ShapedArray) -> bool:
    """Whether an argument may have this type; sizes that are symbols are solved for."""
    if not due.symbolic:
        return same_kind(aval) is same_kind(due)
    return not mismatch("", aval, due)


def path_of(exported: Exported, i: int) -> str:
    """Where a leaf is, from `args` or `kwargs`."""
    numbers = exported.in_tree.unflatten(range(len(exported.in_avals)))
    (kind, *rest), _ = pytrees.flatten_with_path(numbers)[0][i]
    return f"{'args' if kind.idx == 0 else 'kwargs'}{keystr(tuple(rest))}"


def mismatch(path: str, aval: ShapedArray, due: ShapedArray) -> str:
    """In what the type of an argument differs from the one that is due."""
    if aval.ndim != due.ndim:
        return f"Rank mismatch for {path}: "
    if aval.dtype != due.dtype:
        return f"Dtype mismatch for {path}: "
    sizes: Sequence[object] = aval.shape
    expected_sizes: Sequence[object] = due.shape
    for i, (size, expected) in enumerate(zip(sizes, expected_sizes, strict=True)):
        if not isinstance(expected, SymbolicDim) and not (
            isinstance(size, int) and size == expected
        ):
            return f"Shape mismatch for {path}.shape[{i}] (expected same constant): "
    return ""


def params_of(exported: Exported, avals: tuple[ShapedArray, ...]) -> ExportedParams:
    """The params of an equation that calls an exported function on these types."""
    kept = exported.module_kept_var_idx
    ins, outs = tuple([exported.in_avals[i] for i in kept]), exported.out_avals
    text = exported.text
    lie: tuple[Layouts, Layouts] = (), ()
    if exported.nr_devices > 1:
        lie = tuple([exported.in_layouts[i] for i in kept]), exported.out_layouts
    declared = None
    if any([aval.symbolic for aval in exported.in_avals]):
        env = exported.sizes_for(avals)
        declared = ins, outs
        ins = tuple([given_sizes(aval, env) for aval in ins])
        outs = tuple([given_sizes(aval, env) for aval in outs])
        if not any([aval.symbolic for aval in ins]):
            extra = (PLATFORM_NUMBER,) if exported.takes_platform else ()
            text = refined(
                text, (*extra, *declared[0]), declared[1], (*extra, *ins), outs
            )
            declared = None
    module = ExportedModule(
        exported.fun_name,
        text,
        exported.run,
        exported.platforms,
        takes_platform=exported.takes_platform,
        unchecked=DisabledSafetyCheck.platform() in exported.disabled_safety_checks,
        declared=declared,
        num_devices=exported.nr_devices,
        lie=lie,
    )
    return ExportedParams(module, ins, outs)


def given_sizes(aval: ShapedArray, env: Mapping[str, Any]) -> ShapedArray:
    """The type with the sizes that the variables of `env` give."""
    if not aval.symbolic:
        return aval
    return aval.with_shape(
        [n.evaluated(env) if isinstance(n, SymbolicSize) else n for n in aval.shape]
    )


def named[F: Callable[..., Any]](name: str) -> Callable[[F], F]:
    """Decorator: the function under another name, which jaxprs show."""

    def rename(fun: F) -> F:
        fun.__name__ = name
        return fun

    return rename


def exportable(fun: object) -> PjitFunction[..., object]:
    """A jitted function; for one of this library, `verax.numpy.sin`, the jit of it.

    Raises:
        ValueError: it is another.
    """
    if isinstance(fun, PjitFunction):
        return fun
    library, home = __name__.partition(".")[0], getattr(fun, "__module__", None) or ""
    if not callable(fun) or home.partition(".")[0] != library:
        raise ValueError(
            "Function to be exported must be the result of `jit`, or a function of the "
            f"library, not {shown(fun, SHOWN)}: write export(verax.jit(f))"
        )
    parameters = inspect.signature(fun).parameters.values()
    return jit(fun, static_argnames=[p.name for p in parameters if is_setting(p)])


def is_setting(parameter: inspect.Parameter) -> bool:
    """Whether a parameter of the library's functions takes no arrays: axis, dtype."""
    kind, empty = parameter.annotation, parameter.empty
    if kind is empty or OF_VALUES.search(str(kind)):
        return False
    # An operand of `verax.lax` may be any object, and has no default.
    return kind is not object or parameter.default is not empty


def export[**P, R](
    fun_jit: Callable[P, R],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """A function that exports `fun_jit` for its arguments.

    `fun_jit` is a jitted function, or one of the library: `verax.numpy.sin`. Arguments
    may be arrays, scalars, `ShapeDtypeStruct`s and pytrees of them; static ones, such
    as an axis, are fixed. Arrays that the function captures become part of the module.
    `platforms` are those to run on ("cpu", "cuda"), by default the current one. What
    `disabled_checks` names is not checked.

    Raises:
        ValueError: `fun_jit` is not a jitted function; the program calls functions of
            this process, or what a later jaxlib may lack; it runs on several devices
            and has symbolic sizes; an unknown platform.
        MissingRule: a primitive has no lowering for one of the platforms.

    >>> import verax, verax.numpy as vnp
    >>> exported = export(verax.jit(vnp.sin))(vnp.zeros(3))
    >>> exported.in_avals, exported.platforms
    ((f32[3],), ('cpu',))
    >>> exported.call(vnp.zeros(3)).tolist()
    [0.0, 0.0, 0.0]
    """
    jitted = exportable(fun_jit)
    expected = checked_platforms(platforms)
    checks = tuple(disabled_checks)

    def export_for(*args: object, **kwargs: object) -> Exported:
        traced = jitted.trace(*args, **kwargs)
        if traced.traced.captured:
            raise leaked(traced.traced.captured[0])
        return exported_program(traced, expected, checks)

    return export_for


def exported_program(
    stage: Traced,
    platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
) -> Exported:
    """The exported form of a traced function."""
    jaxpr, name = stage.traced.jaxpr, stage.fun_name
    placement = several_devices(stage.placement)
    symbolic = any([a.symbolic for a in jaxpr.in_avals])
    if symbolic and placement is not None:
        raise ValueError(
            f"{name} has symbolic sizes and runs on {len(placement.devices)} devices: "
            "export it for sizes that are numbers, or for one device"
        )
    module = lower(
        ENGINE,
        jaxpr,
        name,
        platforms=platforms,
        keep_unused=stage.keep_unused or symbolic,
        spread=None if placement is None else spread_of(placement),
        inline_constants=True,
    )
    x64 = STATE.enable_x64
    if module.calls.functions:
        raise ValueError(
            f"{name} calls functions of this process (callbacks or prints), which "
            "cannot be exported: remove them"
        )
    check_targets(name, module.text, checks)
    in_layouts, out_layouts = layouts_of(placement)
    return Exported(
        fun_name=name,
        in_tree=stage.in_tree,
        in_avals=jaxpr.in_avals,
        out_tree=stage.out_tree,
        out_avals=jaxpr.out_avals,
        platforms=platforms,
        disabled_safety_checks=checks,
        mlir_module_serialized=to_portable(module.text, mixed=placement is not None),
        module_kept_var_idx=tuple([i for i, k in enumerate(module.kept) if k]),
        nr_devices=1 if placement is None else len(placement.devices),
        takes_platform=module.takes_platform,
        in_layouts=in_layouts,
        out_layouts=out_layouts,
        get_vjp=lambda: exported_vjp(jaxpr, name, platforms, checks, x64, placement),
    )


def check_targets(
    name: str,
    text: str,
    checks: tuple[DisabledSafetyCheck, ...],
) -> None:
    """Raise unless all custom calls are stable."""
    allowed = {check.is_custom_call() for check in checks}
    for target in custom_targets(text):
        if target in STABLE_TARGETS or target in allowed:
            continue
        if target.startswith(ROUTINES):
            continue
        raise ValueError(
            "Cannot serialize code with custom calls whose targets have no "
            f"compatibility guarantees: {name} calls {target}; "
            f"allow it with DisabledSafetyCheck.custom_call({target!r})"
        )


def exported_vjp(
    jaxpr: Jaxpr,
    name: str,
    platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
    x64: bool,
    placement: Placement | None,
) -> Exported:
    """The derivative of a program, exported: leaves and cotangents to cotangents.

    These lie as the leaves and results do.
    """
    ins, outs = jaxpr.in_avals, jaxpr.out_avals
    moving = [i for i, aval in enumerate(ins) if is_inexact(aval.dtype)]

    def pull_back(*args: object) -> tuple[object, ...]:
        leaves, cts = list(args[: len(ins)]), args[len(ins) :]

        def of_moving(*xs: object) -> tuple[object, ...]:
            for i, x in zip(moving, xs, strict=True):
                leaves[i] = x
            out = zip(apply(jaxpr, leaves), outs, strict=True)
            return tuple(y for y, aval in out if is_inexact(aval.dtype))

        _, pull = vjp(of_moving, *[leaves[i] for i in moving])
        return tuple(pull(cts))

    pull_back.__name__ = f"{name}_vjp"
    in_places = (None,) * len(ins) if placement is None else placement.ins
    out_places = (None,) * len(outs) if placement is None else placement.outs
    leaves = zip(ins, in_places, strict=True)
    results = zip(outs, out_places, strict=True)
    cotangents = [(a.strong(), s) for a, s in results if is_inexact(a.dtype)]
    structs = [struct_of(aval, place) for aval, place in (*leaves, *cotangents)]
    due = tuple([in_places[i] for i in moving])
    # Leaves that the module does not need still say on which devices it runs.
    keep = placement is not None
    pull = jit(pull_back, keep_unused=keep, out_shardings=due if any(due) else None)
    with override("enable_x64", x64):
        return exported_program(pull.trace(*structs), platforms, checks)


def constraints_of(avals: Sequence[ShapedArray]) -> tuple[str, ...]:
    """The assumptions about the variables in the sizes of some types."""
    sizes: list[object] = [size for aval in avals for size in aval.shape]
    for size in sizes:
        if isinstance(size, SymbolicDim):
            return tuple([one.text for one in size.scope.constraints])
    return ()


def read_aval(word: str, scope: SymbolicScope) -> ShapedArray:
    """The type that prints as `word`, with its symbols in `scope`."""
    name, _, sizes = word.partition("[")
    if OVER in word or not any([c.isalpha() for c in sizes]):
        return aval_of_word(word)
    shape: Any = parsed_shape(sizes.rstrip("]"), scope)
    return aval_of_word(f"{name}[]").with_shape(shape)


def write_exported(exported: Exported, vjp_order: int) -> bytes:
    """The function and its derivatives up to an order, as bytes."""
    if isinstance(vjp_order, bool) or not isinstance(vjp_order, int) or vjp_order < 0:
        raise ValueError(f"vjp_order must be a non-negative integer, not {vjp_order!r}")
    chain = [exported]
    for _ in range(vjp_order):
        chain.append(chain[-1].vjp())
    return pack(list(map(described, chain)), [e.mlir_module_serialized for e in chain])


def described(exported: Exported) -> dict[str, object]:
    """The description of an exported function, beside its module."""
    return {
        "fun_name": exported.fun_name,
        "in_tree": write_tree(exported.in_tree),
        "in_avals": list(map(filed_text, exported.in_avals)),
        "out_tree": write_tree(exported.out_tree),
        "out_avals": list(map(filed_text, exported.out_avals)),
        "platforms": list(exported.platforms),
        "checks": [[c.kind, c.target] for c in exported.disabled_safety_checks],
        "kept": list(exported.module_kept_var_idx),
        "nr_devices": exported.nr_devices,
        "in_layouts": list(map(write_layout, exported.in_layouts)),
        "out_layouts": list(map(write_layout, exported.out_layouts)),
        "calling_convention": exported.calling_convention_version,
        "constraints": list(constraints_of(exported.in_avals)),
    }


def deserialize(blob: bytes | bytearray) -> Exported:
    """The exported function that `Exported.serialize` wrote.

    Raises:
        TypeError: `blob` is not bytes.
        ValueError: the bytes are not an exported function, are damaged, are in another
            version of the format, or name a class that is not registered here.

    >>> import verax
    >>> data = export(verax.jit(lambda x: x * x))(3.0).serialize(vjp_order=1)
    >>> float(verax.grad(deserialize(data).call)(3.0))
    6.0
    """
    out: Exported | None = None
    pairs = list(zip(*unpack(blob), strict=True))
    with FRAME.understanding():
        for description, module in reversed(pairs):
            out = checked(read_exported(description, module, out))
    if out is None:
        raise ValueError("the file does not contain a function")
    return out


def checked(exported: Exported) -> Exported:
    """The contents that were read, if their parts fit together.

    Raises:
        ValueError: they do not.
    """
    ins, outs = len(exported.in_avals), len(exported.out_avals)
    kept, count = exported.module_kept_var_idx, exported.nr_devices
    fits = (
        isinstance(exported.fun_name, str)
        and all([isinstance(p, str) for p in exported.platforms])
        and (exported.in_tree.num_leaves, exported.out_tree.num_leaves) == (ins, outs)
        and all([type(i) is int and 0 <= i < ins for i in kept])
        and list(kept) == sorted(set(kept))
        and fitting_layouts(exported.in_layouts, exported.in_avals, count)
        and fitting_layouts(exported.out_layouts, exported.out_avals, count)
    )
    if not fits:
        raise ValueError(
            f"the description of the exported function {exported.fun_name!r:.80} is "
            "inconsistent: the file was altered"
        )
    return exported


def read_exported(
    description: dict[str, Any], module: bytes, derivative: Exported | None
) -> Exported:
    """One function of a file, with the one that is its derivative."""
    version = description["calling_convention"]
    if version not in CALLING_CONVENTIONS:
        raise ValueError(
            f"the exported function has the calling convention {version}, but this "
            f"verax only supports {' and '.join(map(str, CALLING_CONVENTIONS))}"
        )
    scope = SymbolicScope(description.get("constraints", ()))
    return Exported(
        fun_name=description["fun_name"],
        in_tree=read_tree(description["in_tree"]),
        in_avals=tuple([read_aval(word, scope) for word in description["in_avals"]]),
        out_tree=read_tree(description["out_tree"]),
        out_avals=tuple([read_aval(word, scope) for word in description["out_avals"]]),
        platforms=tuple(description["platforms"]),
        disabled_safety_checks=tuple(
            [DisabledSafetyCheck(*check) for check in description["checks"]]
        ),
        mlir_module_serialized=module,
        module_kept_var_idx=tuple(description["kept"]),
        nr_devices=description["nr_devices"],
        takes_platform=version == CALLING_CONVENTIONS[1],
        in_layouts=tuple(map(read_layout, description.get("in_layouts", ()))),
        out_layouts=tuple(map(read_layout, description.get("out_layouts", ()))),
        get_vjp=None if derivative is None else lambda: derivative,
    )
