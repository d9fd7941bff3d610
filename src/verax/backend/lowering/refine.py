"""A module with symbolic sizes, for arguments of known sizes (floor 4).

A public `main` on types without symbols calls what was `main`; jaxlib then replaces
each `?` by the size that follows, and what was computed from sizes by its value::

    refined(text, declared, ins, outs)      # the text of an ordinary module
"""

from collections.abc import Sequence
from io import BytesIO

from jaxlib import _jax

from verax.backend.lowering.mlir_text import mlir_type
from verax.backend.lowering.stablehlo_io import new_context, parsed, renamed
from verax.backend.runtime.errors import trimmed
from verax.ir.avals import ShapedArray
from verax.rules.values.lazy import loaded
from verax.rules.values.memo import pure

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
    module = parsed(with_main(text, declared_ins, declared_outs, ins, outs))
    data = BytesIO()
    module.operation.write_bytecode(data)
    try:
        found = _jax.mlir.refine_polymorphic_shapes(
            data.getvalue(),
            enable_shape_assertions=True,
            validate_static_shapes=True,
            enable_shardy=False,
        )
    except (_jax.JaxRuntimeError, ValueError) as error:
        raise ValueError(
            f"the program has no form for {ins}: {trimmed(str(error))}"
        ) from error
    return str(loaded("jaxlib.mlir.ir", "Module").parse(found, new_context()))


def with_main(
    text: str, declared_ins: Types, declared_outs: Types, ins: Types, outs: Types
) -> str:
    """The module with a `main` on other types around its own."""
    functions, main = renamed(text, lambda name: f"{name}_of_symbols")
    names = [f"%{i}" for i in range(len(ins))]
    lines: list[str] = []
    given = conversions(lines, names, ins, declared_ins, "a")
    found = [f"%r{i}" for i in range(len(outs))]
    types = ", ".join(map(mlir_type, declared_ins))
    results = ", ".join(map(mlir_type, declared_outs))
    start = f"{', '.join(found)} = " if found else ""
    lines.append(
        f"{start}func.call @{main}({', '.join(given)}) : ({types}) -> ({results})"
    )
    ends = conversions(lines, found, declared_outs, outs, "b")
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
    wanted: Types,
    stem: str,
) -> list[str]:
    """Write what gives values of some types the types `wanted`; their names."""
    found = []
    for i, (name, one, other) in enumerate(zip(names, types, wanted, strict=True)):
        have, want = mlir_type(one), mlir_type(other)
        if have == want:
            found.append(name)
            continue
        found.append(f"%{stem}{i}")
        lines.append(f'{found[-1]} = "stablehlo.convert"({name}) : ({have}) -> {want}')
    return found
