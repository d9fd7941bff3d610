"""Floor 5: what a function means at one moment, for who calls it later.

One idea: what a function may read is walked through once, cells, globals and defaults,
down to values. Where these are numbers, arrays, types, modules and functions of such,
the function made again over cells of its own means the same for ever, and equal ones
are equal values. Where an object that may change is among them, only a call can tell::

    rule = snapshot(lambda x: x * s)
    rule.fun(2.0)                       # with the s of then
    snapshot(lambda x: x * self.t).open   # True: to be called at once
"""

import dis
import enum
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields as dataclass_fields, is_dataclass
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
    WrapperDescriptorType,
)
from typing import Any, ClassVar, Final

import attrs
import numpy as np
from attrs import frozen

from verax.api.custom.arguments import signature_of
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.pytrees import PyTreeDef, tree_holds
from verax.ir.avals import is_reference
from verax.ir.memos import holds
from verax.ir.records import Unchanging
from verax.rules.rows.builder import Tracer
from verax.rules.values.memo import pure

# -----------------------------------------------------------------------------
# The objects that functions with rules of the user's own are.
#
# What became of a function's rules is kept by the function itself, so that it
# dies with it::
#
#     at_home(weak_reference(), traced_jvp, user, mask)


RULES = 1 << 12
"""The number of traces of its rules a function keeps."""


class Home:
    """A function with rules of its own; what became of them is kept here.

    So the traces of rules, and the arrays that these captured, die with the function.
    `parts` are the attributes that hold functions of the user's, `taken` is what the
    rules meant when somebody looked, and where that was looked up.
    """

    parts: ClassVar[tuple[str, ...]] = ("fun",)

    def __init__(self, fun: Callable[..., object]) -> None:
        self.fun = fun
        self.traced: dict[object, Any] = {}
        self.taken: tuple[Sequence[Any], Sequence[Any], tuple[Any, ...]] | None = None
        self.weighed = False

    @functools.cached_property
    def signature(self) -> inspect.Signature | None:
        """The signature of the function; None if it does not say what it takes."""
        return signature_of(self.fun)

    def clear_cache(self) -> None:
        """Forget how the rules were traced."""
        self.traced.clear()
        self.taken = None


def at_home[R](home: Home | None, what: Callable[..., R], *key: object) -> R:
    """`what(*key)`, kept by the function `home` if that still exists."""
    return what(*key) if home is None else kept_in(home.traced, what, *key)


def kept_in[R](traced: dict[object, Any], what: Callable[..., R], *key: object) -> R:
    """`what(*key)`, kept in `traced`."""
    entry: R | None = traced.get((what, key))  # others may clear it meanwhile
    if entry is None:
        if len(traced) >= RULES:
            traced.clear()
        entry = traced[what, key] = what(*key)
    return entry


# -----------------------------------------------------------------------------
# What a function means at one moment, for who calls it later.


REBUILT: Final = (FunctionType, Home)
LIMIT: Final = 1 << 11
"""The most values looked at of those that a function reads."""
MISSING: Final = object()
LIBRARY: Final = sys.stdlib_module_names | {
    *("verax", "jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "opt_einsum"),
    *("attr", "attrs", "pyrsistent", "_pytest"),
}
"""Packages whose globals, modules and classes stay as they are."""
EXACT: Final = frozenset((bool, int, str, bytes, NoneType, type(...), range))
CONSTANT: Final = (
    *(np.dtype, np.ufunc, enum.Enum),
    *(MemberDescriptorType, GetSetDescriptorType, WrapperDescriptorType),
)
LASTING: Final = (
    *(FunctionType, BuiltinFunctionType, ModuleType, type, Home),
    *CONSTANT,
)
WRITES: Final = frozenset(("STORE_DEREF", "DELETE_DEREF"))
GLOBAL_WRITES: Final = frozenset(("STORE_GLOBAL", "DELETE_GLOBAL"))
GLOBAL_READS: Final = frozenset(
    ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
)
ATTRIBUTES: Final = frozenset(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"))

type Check = tuple[object, str, object]
"""A cell, a namespace or a class, the name in it, and what stood there."""


class Open(Exception):
    """A function may read what can change."""


@frozen(eq=False, repr=False)
class Names:
    """The names that a function's code reads around it, and whether it `writes` any."""

    globals: tuple[str, ...]
    attributes: frozenset[str]
    writes: bool


@pure(1 << 12, lasting=(CodeType,))
def names_of(code: CodeType) -> Names:
    """The names in a code and in those within it."""
    read: dict[str, None] = {}
    attributes: set[str] = set()
    writes = False
    todo = [code]
    while todo:
        part = todo.pop()
        todo += [x for x in part.co_consts if isinstance(x, CodeType)]
        for step in dis.get_instructions(part):
            name = step.opname
            if name in GLOBAL_READS:
                read[step.argval] = None
            elif name in ATTRIBUTES:
                attributes.add(step.argval)
            elif name in GLOBAL_WRITES:
                writes = True
            elif name in WRITES:
                writes |= step.argval in code.co_freevars
            elif name == "IMPORT_NAME":
                writes |= step.argval.partition(".")[0] not in LIBRARY
    return Names(tuple(read), frozenset(attributes), writes)


def is_library(name: object) -> bool:
    """Whether a module of this name stays as it is."""
    return isinstance(name, str) and name.partition(".")[0] in LIBRARY


def is_lasting(value: object) -> bool:
    """Whether a name that stands for it is taken to stand for it always.

    Modules seldom put other functions, classes or modules in place of theirs.
    """
    return isinstance(value, LASTING) or hasattr(value, "__wrapped__")


class Reader:
    """One walk through what a function reads; `key` is what it means, as tokens.

    `checks` say where it looked, and `late` where a later call would look again.
    Within modules, classes and records nothing can be put in another's place: there
    the walk is `rigid`, and what is rebound makes the function open.
    """

    def __init__(self) -> None:
        self.key: list[object] = []
        self.kept: list[object] = []
        self.places: dict[int, int] = {}
        self.checks: list[Check] = []
        self.late: list[Check] = []
        self.private = self.captures = False
        self.attributes: frozenset[str] = frozenset()
        self.shared = self.rigid = False

    def read(self, value: Any) -> None:
        """Add what a value means.

        Raises:
            Open: it may change.
        """
        kind = type(value)
        if kind in EXACT:
            self.key += (kind, value)
        elif kind is float or kind is complex:
            self.key += (kind, repr(value))  # tells zeros apart
        elif kind is FunctionType:
            self.once(value, self.function)
        elif kind is tuple:
            self.parts(value)
        elif isinstance(value, ModuleType | type):
            self.once(value, self.namespace)
        elif isinstance(value, Home):
            self.once(value, self.home)
        else:
            self.other(kind, value)

    def other(self, kind: type, value: Any) -> None:
        """Add what a value of a rarer kind means."""
        if isinstance(value, np.generic):
            self.key += (kind, value.dtype, value.tobytes())
        elif isinstance(value, CONSTANT):
            self.same(value)
        elif kind is BuiltinFunctionType:
            self.same(value)
            if not isinstance(value.__self__, ModuleType | NoneType):
                self.read(value.__self__)
        elif isinstance(value, MethodType):
            self.key.append(kind)
            self.read(value.__func__)
            self.read(value.__self__)
        elif isinstance(value, ConcreteArray) or is_frozen_array(value):
            self.private = True
            self.same(value)
        elif isinstance(value, Tracer) or is_reference(value):
            self.private = self.captures = True
            self.same(value)
        elif isinstance(value, functools.partial):
            self.key += (kind, *value.keywords)
            self.parts((value.func, *value.args, *value.keywords.values()))
        elif isinstance(value, tuple | frozenset):
            self.key.append(kind)
            self.kept.append(kind)
            self.record(kind, getattr(kind, "_fields", ()), tuple(value))
        else:
            self.once(value, self.object)

    def once(self, value: object, reads: Callable[[Any], None]) -> None:
        """Add what an object means, or that it is one seen before."""
        place = self.places.get(id(value))
        if place is not None:
            self.key += ("seen", place)
            return
        if len(self.key) > LIMIT:
            raise Open
        self.places[id(value)] = len(self.places)
        self.kept.append(value)
        reads(value)

    def same(self, value: object) -> None:
        """Add an object that is what it is."""
        self.key.append(id(value))
        self.kept.append(value)

    def parts(self, values: Sequence[object]) -> None:
        """Add several values."""
        self.key.append(len(values))
        for value in values:
            self.read(value)

    def function(self, value: FunctionType) -> None:
        """Add a function: its code, its cells, its defaults and its globals."""
        code, around = value.__code__, value.__globals__
        names = names_of(code)
        library = is_library(around.get("__name__"))
        if names.writes and not library:
            raise Open
        self.same(code)
        if not library:
            self.same(around)
        outer, self.attributes = self.attributes, names.attributes
        if value.__closure__:
            for name, cell in zip(code.co_freevars, value.__closure__, strict=True):
                self.name(cell, name, content(cell))
        if value.__defaults__ or value.__kwdefaults__:
            named = value.__kwdefaults__ or {}
            self.key += named
            self.parts((*(value.__defaults__ or ()), *named.values()))
        if not library and names.globals:
            shared, self.shared = self.shared, True
            for name in names.globals:
                if (there := around.get(name, MISSING)) is not MISSING:
                    self.name(around, name, there)
            self.shared = shared
        self.attributes = outer

    def name(self, holder: object, name: str, value: object) -> None:
        """Add what a name stands for, which may be rebound."""
        self.key.append(name)
        if value is MISSING:
            if self.rigid:
                raise Open
            return
        if self.rigid and not is_lasting(value):
            raise Open
        check = (holder, name, value)
        self.checks.append(check)
        if self.shared:
            self.late.append(check)
        self.read(value)

    def namespace(self, value: Any) -> None:
        """Add a module or class, and of the user's what the code takes from there."""
        self.key.append(id(value))
        if isinstance(value, type):
            if not is_library(value.__module__) and not issubclass(value, enum.Enum):
                self.named(value)
            return
        if not is_library(value.__name__):
            self.names(value, vars(value))

    def named(self, kind: type, but: frozenset[str] = frozenset()) -> None:
        """Add what the code may take from a class of the user's."""
        for base in kind.__mro__:
            if not is_library(base.__module__):
                self.names(base, vars(base), but)

    def names(
        self,
        holder: object,
        there: Mapping[str, object],
        but: frozenset[str] = frozenset(),
    ) -> None:
        """Add those names of a namespace that the code mentions."""
        mentioned = [n for n in self.attributes if n in there and n not in but]
        rigid, self.rigid = self.rigid, True
        for name in sorted(mentioned):
            result = there[name]
            if isinstance(result, property):
                for part in (result.fget, result.fset):
                    self.read(part)
            elif isinstance(result, staticmethod | classmethod):
                self.read(result.__func__)
            else:
                self.name(holder, name, result)
        self.rigid = rigid

    def home(self, value: Home) -> None:
        """Add a function with rules of its own."""
        self.key.append(type(value))
        for part in value.parts:
            result = vars(value)[part]
            self.checks.append((value, part, result))
            self.read(result)

    def object(self, value: object) -> None:
        """Add an object that cannot change, or wraps a function.

        Raises:
            Open: nothing says that it cannot.
        """
        kind = type(value)
        self.key.append(kind)
        self.kept.append(kind)
        library = is_library(kind.__module__)
        if library and hasattr(value, "__wrapped__"):
            self.key.append(id(value))
            rigid, self.rigid = self.rigid, True
            self.read(value.__wrapped__)
            self.rigid = rigid
        elif library and kind.__hash__ is not None and not holds_any(value):
            self.key.append(value)
        elif library and isinstance(value, Unchanging | PyTreeDef):
            self.private = True
            self.same(value)
        else:
            names = field_names(kind)
            self.record(kind, names, [getattr(value, name) for name in names])

    def record(self, kind: type, names: Sequence[str], values: Sequence[Any]) -> None:
        """Add the values of a record, and what the code takes from its class."""
        rigid, self.rigid = self.rigid, True
        self.named(kind, frozenset(names))
        self.parts(values)
        self.rigid = rigid


def holds_any(value: object) -> bool:
    """As `holds`, which knows nothing of structures."""
    return tree_holds(value) if isinstance(value, PyTreeDef) else holds(value)


def content(cell: CellType) -> object:
    """The content of a cell, or `MISSING`."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def is_frozen_array(value: object) -> bool:
    """Whether a value is an array of NumPy's that nobody can write."""
    while type(value) is np.ndarray:
        if value.flags.writeable:
            return False
        if value.base is None:
            return True
        value = value.base
    return False


def field_names(kind: type) -> list[str]:
    """The fields of a frozen class.

    Raises:
        Open: it is none.
    """
    options = getattr(kind, "__dataclass_params__", None)
    if is_dataclass(kind) and options is not None and options.frozen:
        return [a.name for a in dataclass_fields(kind)]
    if attrs.has(kind) and kind.__setattr__ is FROZEN_SETATTR:
        return [a.name for a in attrs.fields(kind)]
    raise Open


FROZEN_SETATTR: Final = Names.__setattr__


def now(check: Check) -> object:
    """The present value of the name that a reader looked up."""
    holder, name, _ = check
    if isinstance(holder, CellType):
        return content(holder)
    there = holder if isinstance(holder, dict) else vars(holder)
    return there.get(name, MISSING)


def stand(checks: Sequence[Check]) -> bool:
    """Whether everything is as a reader found it."""
    for check in checks:
        holder, name, value = check
        if type(holder) is dict:  # most are globals, and each call asks
            if holder.get(name, MISSING) is not value:
                return False
        elif now(check) is not value:
            return False
    return True


class Rebuilder:
    """Makes functions again, over cells of their own.

    Names that `late` mentions stand for what they stood for then.
    """

    def __init__(self, late: Sequence[Check] = ()) -> None:
        self.values = {(id(holder), name): value for holder, name, value in late}
        self.made: dict[int, Any] = {}

    def __call__(self, value: Any) -> Any:
        kind = type(value)
        if id(value) in self.made:
            return self.made[id(value)]
        if kind is FunctionType:
            return self.function(value)
        if kind is tuple:
            return tuple([self(x) for x in value])
        if kind is MethodType:
            return MethodType(self(value.__func__), value.__self__)
        if kind is functools.partial:
            named = {name: self(x) for name, x in value.keywords.items()}
            return functools.partial(self(value.func), *map(self, value.args), **named)
        if isinstance(value, Home):
            return self.home(value)
        return value

    def function(self, old: FunctionType) -> FunctionType:
        """A function like `old`, that sees what it saw."""
        cells, around = old.__closure__, old.__globals__
        names = [n for n in self.late_names(old) if (id(around), n) in self.values]
        if not (cells or names or old.__defaults__ or old.__kwdefaults__):
            return old
        own = around if not names else dict(around)
        closure = None if cells is None else tuple([CellType() for _ in cells])
        new = FunctionType(old.__code__, own, old.__name__, None, closure)
        self.made[id(old)] = new
        vars(new).update(vars(old))
        new.__qualname__, new.__doc__ = old.__qualname__, old.__doc__
        new.__module__ = old.__module__
        if old.__defaults__:
            new.__defaults__ = tuple([self(x) for x in old.__defaults__])
        if old.__kwdefaults__:
            new.__kwdefaults__ = {n: self(x) for n, x in old.__kwdefaults__.items()}
        for cell, name, fresh in zip(
            cells or (), old.__code__.co_freevars, closure or (), strict=False
        ):
            entry = self.values.get((id(cell), name), content(cell))
            if entry is not MISSING:
                fresh.cell_contents = self(entry)
        for name in names:
            own[name] = self(self.values[id(around), name])
        return new

    def late_names(self, function: FunctionType) -> Iterator[str]:
        """The globals of a function, if some of those met have changed."""
        return iter(names_of(function.__code__).globals if self.values else ())

    def home(self, old: Home) -> Home:
        """A function with rules like `old`."""
        new: Home = object.__new__(type(old))
        self.made[id(old)] = new
        vars(new).update(vars(old))
        for part in old.parts:
            vars(new)[part] = self(vars(old)[part])
        new.traced, new.taken = {}, None
        return new


class Snapshot:
    """A function, or another value, as it was when it was looked at.

    Snapshots are equal if they mean the same. One that is `open` is the function
    itself, which may mean something else by now: it equals no other, and holds what
    was `traced` of it.
    """

    __slots__ = (
        *("captures", "hashed", "key", "kept", "late", "open", "own"),
        *("traced", "transient"),
    )

    def __init__(self, value: Any, reader: Reader | None) -> None:
        self.open = reader is None
        self.traced: dict[object, Any] = {}
        self.captures = reader is not None and reader.captures
        self.transient = reader is None or reader.private
        if reader is None:
            self.key: tuple[object, ...] = (id(self),)
            self.kept: Sequence[object] = ()
            self.late: Sequence[Check] = ()
            self.own = value
        else:
            self.key = tuple(reader.key)
            self.late = reader.late
            self.own = Rebuilder()(value)
            self.kept = [x for x in reader.kept if not isinstance(x, REBUILT)]
        self.hashed = hash(self.key)

    @property
    def value(self) -> Any:
        """The value; made again where a name that it reads is bound to another."""
        if stand(self.late):
            return self.own
        return Rebuilder(self.late)(self.own)

    def __hash__(self) -> int:
        return self.hashed

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Snapshot) and self.key == other.key


def snapshot(value: object) -> tuple[Snapshot, Sequence[Check]]:
    """The present meaning of a value, and where it was looked up."""
    reader = Reader()
    try:
        reader.read(value)
    except (Open, RecursionError):
        return Snapshot(value, None), reader.checks
    return Snapshot(value, reader), reader.checks


def snapshots_at(home: Home, values: Sequence[object]) -> tuple[Snapshot, ...]:
    """The present meaning of a function's rules, kept while nothing changes."""
    if home.taken is not None:
        given, checks, kept = home.taken
        same = all([a is b for a, b in zip(given, values, strict=True)])
        if same and stand(checks):
            return kept
    pairs = [snapshot(value) for value in values]
    out = tuple([pair[0] for pair in pairs])
    if not any([x.open for x in out]):
        checks = [check for pair in pairs for check in pair[1]]
        home.taken = (tuple(values), checks, out)
    return out
