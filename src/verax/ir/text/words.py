"""Floor 0: the words of the printed language: names, numbers, strings, dtypes.

One idea: a word means the same wherever it occurs, so a parser need not know what to
expect: `None`, `True`, `float32` and `inf` are reserved, another word is a string, and
a string that is no such word is quoted::

    bare("scatter-add"), plain("float32"), plain(-0.0)
    # ('scatter-add', "'float32'", '-0.0')
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

import numpy as np

from verax.ir.avals import AbstractRef, ShapedArray, SymbolicSize
from verax.ir.dtypes import (
    KNOWN,
    DType,
    float0,
    from_short_name,
    is_extended,
    short_name,
)
from verax.ir.extended import ExtendedDType, key_from_name
from verax.ir.facade import module_named
from verax.ir.memos.memo import memoised
from verax.ir.meshes import AxisType, MeshType, Terms, UnreducedKind, explicit_on
from verax.ir.scalars import scalar_text

CONSTANTS: Final[Mapping[str, bool | None]] = MappingProxyType(
    {"None": None, "True": True, "False": False}
)
DTYPE_WORDS: Final[Mapping[str, DType]] = MappingProxyType(
    {"float0" if dtype == float0 else dtype.name: dtype for dtype in KNOWN}
)
RESERVED: Final = frozenset((*CONSTANTS, *DTYPE_WORDS, "inf", "nan", "lambda"))
NAME: Final = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
COMMA: Final = re.compile(r",(?! )")
"""Between the sizes of a shape; operands of a symbolic size have a blank as well."""
AXES: Final = re.compile(r"@\(([^)]*)\)")
TERM: Final = re.compile(r"(V|R|U\w*):(\([^)]*\)|[^,}]+)")
OVER: Final = " over "
"""Between a type that explicit axes split and their mesh, in files."""
STRING: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def bare(name: str) -> str:
    """The name of a primitive, in quotes if it is not a word.

    >>> bare("scatter-add"), bare("my op")
    ('scatter-add', "'my op'")
    """
    return name if NAME.fullmatch(name) and name != "in" else repr(name)


def quoted(text: str) -> str:
    """A string among params, in quotes unless it is a word without another meaning."""
    return text if STRING.fullmatch(text) and text not in RESERVED else repr(text)


def plain(value: object) -> str | None:
    """The text of a value without parts; None for all others.

    >>> plain(np.dtype("float32")), plain("inner"), plain(2j), plain(())
    ('float32', 'inner', '0.0+2.0j', None)
    """
    match value:
        case None | bool():
            return repr(value)
        case Enum():
            return f"{type(value).__name__}.{value.name}" if value.name else None
        case np.generic():
            return typed_scalar(value)
        case int() | float() | bytes():
            return repr(value)
        case complex():
            return scalar_text(np.complex128(value).tobytes(), np.dtype(np.complex128))
        case str():
            return quoted(value)
        case ShapedArray() | SymbolicSize():
            return repr(value)
        case np.dtype() | ExtendedDType():
            return dtype_word(value)
        case _:
            return None


def dtype_word(dtype: DType) -> str | None:
    """The name of a dtype; None if there are no arrays of that dtype."""
    if dtype == float0:
        return "float0"
    return dtype.name if is_extended(dtype) or dtype in KNOWN else None


def typed_scalar(value: np.generic) -> str | None:
    """A NumPy scalar as literals are written, such as `3.0:f32[]`."""
    if value.dtype not in KNOWN:
        return None
    text = scalar_text(value.tobytes(), value.dtype)
    return f"{text}:{short_name(value.dtype)}[]"


def dtype_of_word(word: str) -> DType | None:
    """The dtype that `dtype_word` gives `word`.

    >>> dtype_of_word("bfloat16"), dtype_of_word("key<fry>"), dtype_of_word("inner")
    (dtype(bfloat16), key<fry>, None)
    """
    return DTYPE_WORDS.get(word) or key_from_name(word)


@memoised
def aval_of_word(text: str) -> ShapedArray:
    """The type that prints as `text`.

    Raises:
        ValueError: its dtype does not exist.

    >>> aval_of_word("~f32[2,3]")
    ~f32[2,3]
    >>> aval_of_word('f32[8@x] over [["x", 4, "Explicit"]]')
    f32[8@x]
    """
    word, _, axes = text.partition(OVER)
    return sized_aval(word, fixed_size, mesh_of_word(axes) if axes else None)


def filed_text(aval: ShapedArray) -> str:
    """A type as files hold it, with the mesh that it is over; see `aval_of_word`."""
    if aval.explicit is None:
        return repr(aval)
    return f"{aval}{OVER}{mesh_word(aval.explicit.mesh)}"


def mesh_word(mesh: MeshType) -> str:
    """The axes of a mesh, for texts that outlive a process.

    >>> mesh_word(MeshType(("x",), (4,), (AxisType.Explicit,)))
    '[["x", 4, "Explicit"]]'
    """
    axes = zip(mesh.names, mesh.sizes, mesh.types, strict=True)
    rows = [[name, size, kind.name] for name, size, kind in axes]
    return str(module_named("json").dumps(rows))


def mesh_of_word(text: str) -> MeshType:
    """What `mesh_word` wrote."""
    names, sizes, kinds = zip(*module_named("json").loads(text), strict=True)
    return MeshType(names, sizes, tuple([AxisType[kind] for kind in kinds]))


def sized_aval(
    text: str, sizes: Callable[[str], int], mesh: MeshType | None = None
) -> ShapedArray:
    """`aval_of_word`, of which `sizes` reads the sizes that are not numbers.

    Axes that split it are those of `mesh`.

    Raises:
        ValueError: its dtype, a size or an axis does not exist.
    """
    if text.startswith("Ref{"):
        return AbstractRef(sized_aval(text[4:-1], sizes, mesh))
    name, _, rest = text.lstrip("~").partition("[")
    dims, _, terms = rest.partition("]")
    words = [
        word.partition("@") for word in COMMA.split(AXES.sub(joined_by_bars, dims))
    ]
    shape = [
        int(size) if size.isdigit() else sizes(size) for size, _, _ in words if size
    ]
    aval = ShapedArray(shape, from_short_name(name), text.startswith("~"))
    if "@" not in dims and not terms:
        return aval
    if mesh is None:
        raise ValueError(f"explicit axes split {text}: pass mesh= to read it")
    splits = [tuple(axes.split("|")) if axes else () for _, _, axes in words]
    found = explicit_on(mesh, splits[: len(shape)], terms_of_word(terms))
    unknown = set(() if found is None else found.axes).difference(mesh.names)
    if unknown:
        raise ValueError(f"{text} names {min(unknown)!r}, which is not an axis of mesh")
    return aval.with_explicit(found)


def joined_by_bars(axes: re.Match[str]) -> str:
    """Several axes of a dimension without the commas that separate dimensions."""
    return "@" + axes[1].replace(",", "|")


def terms_of_word(text: str) -> Terms:
    """The terms that print so.

    >>> terms_of_word("{V:v, U_max:(x,y), R:z}").text()
    '{V:v, U_max:(x,y), R:z}'
    """
    found = {
        letter: tuple(axes.strip("()").split(","))
        for letter, axes in TERM.findall(text)
    }
    reduced, open = found.pop("R", ()), text.endswith("open}")
    varying = found.pop("V", ())
    for letter, axes in found.items():
        kind = UnreducedKind[letter.partition("_")[2] or "sum"]
        return Terms(axes, reduced, kind, open, varying=varying)
    return Terms((), reduced, open=open, varying=varying)


def fixed_size(text: str) -> int:
    """Raise ValueError: a symbolic size needs somebody to read it."""
    raise ValueError(f"the size {text} is symbolic: pass sizes= to read it")
