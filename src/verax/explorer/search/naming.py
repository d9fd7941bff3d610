"""Plans in words: what each axis splits, by the arguments that have it (floor 6).

One idea: a kind of dimension is called by an argument that has it, so a reader finds it
in his own program::

    text_of(model, layouts, names)      # 'data: tokens[0]; model: layers['up'][2]'
"""

from collections.abc import Sequence
from typing import Final

from verax.explorer.search.constraints import value_spec
from verax.explorer.search.descent import kinds_of, main_kind
from verax.explorer.search.families import NUMBER
from verax.explorer.search.model import WHOLE, Layout, Layouts, Model


def text_of(model: Model, layouts: Layouts, names: Sequence[str]) -> str:
    """What each axis splits of intermediate values, and what is stored in parts."""
    program = model.program
    given = {program.of[v][0] for v in program.inputs}
    kinds = kinds_of(model)
    texts = []
    for axis, name in enumerate(model.mesh.names):
        sizes = {f: program.families[f].bytes for f in given}
        stored = sum([n for f, n in sizes.items() if layouts[f][axis] != WHOLE])
        main = main_kind(model, layouts, axis, kinds)
        part = "" if main is None else called(model, main, names)
        more = " and what is stored" if 2 * stored > sum(sizes.values()) else ""
        texts.append(f"{name}: {part or 'nothing'}{more}")
    return "; ".join(texts)


def called(model: Model, kind: dict[int, int], names: Sequence[str]) -> str:
    """A dimension of an argument, of this kind."""
    program = model.program
    for v, name in sorted(
        zip(program.inputs, names, strict=True), key=lambda pair: -pair[0]
    ):
        family, dims = program.of[v]
        if kind.get(family) in dims:
            return f"{name}[{dims.index(kind[family])}]"
    largest = max(kind, key=lambda f: program.families[f].bytes, default=None)
    if largest is None:
        return ""
    size = program.families[largest].sizes[kind[largest]]
    return f"a dimension of {size}"


def arguments_of(
    model: Model, layouts: Sequence[Layout], names: Sequence[str]
) -> dict[str, str]:
    """The specs of arguments by name; those of layers that are alike in one line."""
    groups: dict[str, dict[str, list[str]]] = {}
    for v, name in zip(model.program.inputs, names, strict=True):
        spec = str(value_spec(model, layouts, v))
        groups.setdefault(NUMBER.sub("#", name), {}).setdefault(spec, []).append(name)
    return {
        group if len(specs) == 1 else listed(members): spec
        for group, specs in groups.items()
        for spec, members in specs.items()
    }


def listed(names: Sequence[str]) -> str:
    """A few names, and how many there are besides.

    >>> listed(["w[0]", "w[2]"]), listed(["w[0]", "w[2]", "w[4]", "w[6]"])
    ('w[0], w[2]', 'w[0], w[2] and 2 more')
    """
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more


FEW: Final = 2
"""So many names stand in a line."""
