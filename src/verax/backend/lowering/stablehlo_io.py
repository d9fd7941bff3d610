"""StableHLO modules as text, as objects, and for other versions of jaxlib (floor 4).

One idea: text is enough except in files that other versions read, and in programs that
call functions of the host; where many are compiled, objects take less time. Only these
need MLIR's bindings (30 ms to import), so they are imported when they are needed::

    data = to_portable(text)
    functions, main = renamed(from_portable(data), fresh)
    client.compile_and_load(read(text), devices, options, [function])
"""

import re
import sys
import threading
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, Final

from jaxlib import _jax

from verax.backend.lowering.mlir_text import mlir_type
from verax.backend.runtime.errors import trimmed
from verax.ir.avals import ShapedArray
from verax.rules.values.lazy import LazyFunction, loaded
from verax.rules.values.memo import pure

IR: Final = "jaxlib.mlir.ir"
CHARACTERS: Final = 1 << 22
"""How much a context reads before it is let go."""
FIRST: Final = 32
"""So many programs of a thread would not make up for the import of MLIR's bindings."""
LIBRARIES: Final = "jaxlib.mlir._mlir_libs."
REGISTRATIONS: Final = (
    LazyFunction(f"{LIBRARIES}_stablehlo", "register_dialect"),
    LazyFunction(f"{LIBRARIES}_chlo", "register_dialect"),
    LazyFunction(f"{LIBRARIES}_sdy", "register_dialect"),
    LazyFunction(f"{LIBRARIES}_mlirHlo", "register_mhlo_dialect"),
)


def new_context() -> Any:
    """A context with every dialect in which modules are written."""
    context = loaded(IR, "Context")()
    registry = loaded(IR, "DialectRegistry")()
    loaded(f"{LIBRARIES}_jax_mlir_ext", "register_dialects")(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for register in REGISTRATIONS:
        register(context)
    return context


def parsed(text: str) -> Any:
    """The module that `text` is, in a context of its own."""
    return loaded(IR, "Module").parse(text, new_context())


class Kept(threading.local):
    """A context of this thread, which reads modules until they are many.

    A new one takes 3 ms, and in one that has read a module XLA has no dialect to load,
    which it does in 2 of the 10 ms for a program of one operation. But a context holds
    all constants and places that it has read, until it is let go.
    """

    def __init__(self) -> None:
        self.context: object = None
        self.left = 0
        self.asked = 0

    def reader(self, length: int) -> object:
        """The context for a text of so many characters."""
        if self.context is None or self.left < 0:
            context = new_context()
            # One thread alone uses it, which needs no others and may be forked.
            context.enable_multithreading(False)
            self.context, self.left = context, CHARACTERS
        self.left -= length
        return self.context


KEPT: Final = Kept()


def read(text: str | bytes) -> Any:
    """The module of a text or of bytecode, in the context that this thread keeps."""
    return loaded(IR, "Module").parse(text, KEPT.reader(len(text)))


def for_compiler(text: str) -> Any:
    """What the compiler takes: the text, or the module, which it takes sooner.

    A module needs MLIR's bindings; where nothing else does, the first programs of a
    thread go without. What is no module stays text, so that the compiler says why.
    """
    if IR not in sys.modules and KEPT.asked < FIRST:
        KEPT.asked += 1
        return text
    try:
        return read(text)
    except loaded(IR, "MLIRError"):
        return text


# The place in the text itself, of what no line of a program made.
PARSED: Final = re.compile(r'loc\("-":\d+:\d+\)')


def pretty(text: str, *, located: bool = False) -> str:
    """A module as MLIR prints it for readers, with lines of programs if `located`."""
    out: str = read(text).operation.get_asm(enable_debug_info=located)
    return PARSED.sub("loc(unknown)", out)


STABLEHLO: Final = "jaxlib.mlir._mlir_libs._stablehlo"
version_for: Final = LazyFunction(
    STABLEHLO, "get_version_from_compatibility_requirement"
)
# A text in quotes, in which nothing is a symbol, or a symbol.
SYMBOLS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|@(?:[\w.$-]+|"(?:[^"\\]|\\.)*")')
TARGETS: Final = re.compile(
    r'custom_call @(?:"([^"]+)"|([\w.$]+))|call_target_name = "([^"]+)"'
)
MAIN: Final = re.compile(r"func\.func public @main(\(.*)\{$", re.M)
TYPES: Final = re.compile(r"tensor<(?:[^<>]|<[^<>]*>)*>|!stablehlo\.token")
QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
DECLARED: Final = re.compile(
    r"^  (?:func\.func (?:public |private )?(@\S+?)\(|sdy\.mesh (@\S+) =)", re.M
)
"""Declarations of a module: its functions, and the meshes that its shardings name."""


def to_portable(text: str, mixed: bool = False) -> bytes:
    """The module as StableHLO's portable artifact; `mixed` as for `portable`.

    It is written in the version that jaxlib had twelve weeks before, or later, so that
    a somewhat older jaxlib reads it as well; newer ones do for five years.

    Raises:
        ValueError: the module holds what that version of StableHLO cannot express.
    """
    requirement = loaded(STABLEHLO, "StablehloCompatibilityRequirement").WEEK_12
    return portable(text, version_for(requirement), mixed)


def portable(module: object, version: str, mixed: bool = False) -> bytes:
    """A module, or its text or bytecode, in the form of a version of StableHLO.

    `mixed` leaves operations of other dialects as they are.

    Raises:
        ValueError: that version of StableHLO cannot express it.
    """
    try:
        return _jax.mlir.serialize_portable_artifact(module, version, mixed)
    except (_jax.JaxRuntimeError, ValueError) as error:
        raise ValueError(
            f"the program has no portable form: {trimmed(str(error))}"
        ) from error


def from_portable(data: bytes) -> str:
    """The text of a portable artifact.

    Raises:
        ValueError: this jaxlib cannot read the bytes.
    """
    return str(module_of(data))


def module_of(data: bytes, context: object = None) -> object:
    """The module of a portable artifact, by default in a context of its own.

    Raises:
        ValueError: this jaxlib cannot read the bytes.
    """
    context = new_context() if context is None else context
    try:
        return _jax.mlir.deserialize_portable_artifact(data, context)
    except (_jax.JaxRuntimeError, ValueError) as error:
        raise ValueError(
            f"not StableHLO that this jaxlib can read: {trimmed(str(error))}"
        ) from error


def from_hlo(data: bytes) -> bytes:
    """The bytecode of a StableHLO module from a serialized HLO module.

    Raises:
        ValueError: the bytes are not an HLO module.
    """
    try:
        return _jax.mlir.hlo_to_stablehlo(data)
    except (_jax.JaxRuntimeError, ValueError) as error:
        raise ValueError(f"not an HLO module: {trimmed(str(error))}") from error


def custom_targets(text: str) -> tuple[str, ...]:
    """The custom calls of a module, each target once, in order."""
    out = ["".join(groups) for groups in TARGETS.findall(text)]
    return tuple(dict.fromkeys(out))


def signature(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The types that the main function of a module takes, and those that it returns.

    >>> line = "func.func public @main(%arg0: tensor<3xf32>) -> (tensor<f32> {a = 1}) {"
    >>> signature(line)
    (('tensor<3xf32>',), ('tensor<f32>',))

    Raises:
        ValueError: there is no main function.
    """
    match = MAIN.search(text)
    if match is None:
        raise ValueError("the module has no function @main")
    ins, _, outs = QUOTED.sub("", match[1]).partition(") -> ")
    return tuple(TYPES.findall(ins)), tuple(TYPES.findall(outs))


def renamed(text: str, fresh: Callable[[str], str]) -> tuple[str, str]:
    """The functions of a module under names from `fresh`, all private, and `main`'s.

    Its meshes are renamed likewise.

    >>> text = "module @f {\\n  func.func public @main() {\\n    return\\n  }\\n}\\n"
    >>> functions, main = renamed(text, lambda name: name + "_1")
    >>> functions.split("\\n")[0], main
    ('  func.func private @main_1() {', 'main_1')
    """
    body = text[text.index("{\n", text.index("module")) + 2 : text.rindex("}")]
    names = {
        function or mesh: f"@{fresh(function.strip('@' + chr(34)) or 'called_mesh')}"
        for function, mesh in DECLARED.findall(body)
    }

    def replaced(match: re.Match[str]) -> str:
        return names.get(match[0], match[0])

    functions = SYMBOLS.sub(replaced, body).replace(
        "func.func public", "func.func private"
    )
    return functions, names["@main"].removeprefix("@")


# -----------------------------------------------------------------------------
# A module with symbolic sizes, for arguments of known sizes.
#
# A public `main` on types without symbols calls what was `main`; jaxlib then replaces
# each `?` by the size that follows, and what was computed from sizes by its value::
#
#     refined(text, declared, ins, outs)      # the text of an ordinary module


type Types = tuple[ShapedArray, ...]


@pure(256)
def refined(
    text: str, declared_ins: Types, declared_outs: Types, ins: Types, outs: Types
) -> str:
    """The module of which the arguments and results have the types `ins` and `outs`.

    It has been written for arguments and results of the declared types.

    Raises:
        ValueError: the sizes do not go together.
    """
    module = read(with_main(text, declared_ins, declared_outs, ins, outs))
    data = BytesIO()
    module.operation.write_bytecode(data)
    try:
        out = _jax.mlir.refine_polymorphic_shapes(
            data.getvalue(),
            enable_shape_assertions=True,
            validate_static_shapes=True,
            enable_shardy=False,
        )
    except (_jax.JaxRuntimeError, ValueError) as error:
        raise ValueError(
            f"the program has no form for {ins}: {trimmed(str(error))}"
        ) from error
    return str(read(out))


def with_main(
    text: str, declared_ins: Types, declared_outs: Types, ins: Types, outs: Types
) -> str:
    """The module with a `main` on other types around its own."""
    functions, main = renamed(text, lambda name: f"{name}_of_symbols")
    names = [f"%{i}" for i in range(len(ins))]
    lines: list[str] = []
    given = conversions(lines, names, ins, declared_ins, "a")
    result = [f"%r{i}" for i in range(len(outs))]
    types = ", ".join(map(mlir_type, declared_ins))
    results = ", ".join(map(mlir_type, declared_outs))
    start = f"{', '.join(result)} = " if result else ""
    lines.append(
        f"{start}func.call @{main}({', '.join(given)}) : ({types}) -> ({results})"
    )
    ends = conversions(lines, result, declared_outs, outs, "b")
    heads = ", ".join(f"{x}: {mlir_type(a)}" for x, a in zip(names, ins, strict=True))
    kinds = ", ".join(map(mlir_type, outs))
    returned = f"return {', '.join(ends)} : {kinds}" if ends else "return"
    body = "".join([f"    {line}\n" for line in [*lines, returned]])
    head = text[: text.index("{\n", text.index("module")) + 2]
    return (
        f"{head}  func.func public @main({heads}) -> ({kinds}) {{\n{body}  }}\n"
        f"{functions}}}\n"
    )


def conversions(
    lines: list[str],
    names: Sequence[str],
    types: Types,
    expected: Types,
    stem: str,
) -> list[str]:
    """Write what gives values of some types the types `expected`; their names."""
    out = []
    for i, (name, one, other) in enumerate(zip(names, types, expected, strict=True)):
        have, want = mlir_type(one), mlir_type(other)
        if have == want:
            out.append(name)
            continue
        out.append(f"%{stem}{i}")
        lines.append(f'{out[-1]} = "stablehlo.convert"({name}) : ({have}) -> {want}')
    return out
