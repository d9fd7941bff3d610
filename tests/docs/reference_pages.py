"""The reference: one page for each public module, with an entry for every public name.

What a page says is what Python says: signatures are those of the values themselves, and
the rest is their docstrings, as Markdown. `make docs` adds the pages to the site::

    python -m tests.docs.reference_pages verax.nn      # prints one of them
    python -m tests.docs.reference_pages --without-example  # names that lack one
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAliasType

from tests.layout import ORDER
from tests.stubs import table_of
from tests.surface import Default, is_ours, public_names, public_values
from verax.extend import Row

FOLDER = "api"
OTHERS = (
    "verax.example_libraries.optimizers",
    "verax.example_libraries.stax",
    "verax.experimental.multihost_utils",
    "verax.experimental.ode",
    "verax.jax",
)
SECTION = re.compile(r"(Args|Arguments|Returns|Raises|Yields|Attributes|Example|Note):")
ITEM = re.compile(r" {4}(\*{0,2}[\w.`, *|\[\]]+): +(.+)")
FLOOR = re.compile(r"^Floor \d: | \(floor \d\)|\.$")
HOME = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])")
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
SELF = re.compile(r"\((?:\n {4})?(?:self|cls)(?:, |,(?=\n)|(?=\)))")
IDEA = re.compile(r"^(The one|One) idea: .*?(?=\n\n|::\n|\Z)(::\n)?", re.DOTALL)
SUBJECTS = {
    "verax.api.jit": "Compiling",
    "verax.api.arguments": "Compiling",
    "verax.backend.xla": "Compiling",
    "verax.api.autodiff": "Derivatives",
    "verax.api.vmap": "Many elements at once",
    "verax.api.custom": "Rules of your own, and rematerialisation",
    "verax.api.inspect": "Looking at programs",
    "verax.explorer.exploration": "Looking at programs",
    "verax.monitoring": "Looking at programs",
    "verax.rules.rows": "Looking at programs",
    "verax.rules.values": "Arrays",
    "verax.backend.arrays": "Arrays",
    "verax.numpy.indexing": "Arrays",
    "verax.ir.dtypes": "Arrays",
    "verax.api.tracing": "Shapes, and references to mutable arrays",
    "verax.api.host": "Functions of the host",
    "verax.api.parallel": "Several devices",
    "verax.backend.placement": "Meshes and shardings",
    "verax.backend.runtime": "Devices and processes",
    "verax.api.config": "Configuration",
}
"""The headings of the page of `verax` itself, whose names come from all floors."""
LARGE = frozenset(
    f"verax.ops.{name}"
    for name in (
        "base",
        "elementwise",
        "indexing",
        "reductions",
        "special",
        "structure",
    )
)
WIDTH = 80
LONG = 100
EXAMPLES = Path(__file__).parents[2] / "docs" / "by_name"
EXAMPLE = re.compile(r"(?:^## `(\w+)`\n\n)?^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Entry(NamedTuple):
    """A public name: the module that shows it, its value, and where it is explained."""

    module: str
    name: str
    value: Any
    group: str
    same_as: str | None

    @property
    def anchor(self) -> str:
        return f"{self.module}.{self.name}"


def entries() -> dict[str, list[Entry]]:
    """The entries of every public module, in the order of its groups."""
    actual: dict[str, list[Entry]] = {}
    shown: dict[int, list[tuple[str, str]]] = {}
    values = [*public_values(), *other_values()]
    for module, name, value in values:
        if explained(value):
            shown.setdefault(id(value), []).append((module, name))
    for module, name, value in values:
        actual.setdefault(module, [])
        if isinstance(value, ModuleType):
            actual.setdefault(value.__name__, [])
            continue
        best = min(shown.get(id(value), [(module, name)]), key=closeness(value))
        other = None if best == (module, name) else ".".join(best)
        actual[module].append(Entry(module, name, value, group(module, name), other))
    return actual


def other_values() -> Iterator[tuple[str, str, Any]]:
    """The names of modules that no other shows: users import them by their paths."""
    for path in OTHERS:
        module = import_module(path)
        for name in public_names(module):
            yield path, name, getattr(module, name)


def explained(value: object) -> bool:
    """Whether a value has a text of its own, which stands in one place only."""
    return callable(value) and is_ours(value) and not isinstance(value, Row)


class closeness:
    """How far a name is from that under which users are to find a value."""

    def __init__(self, value: object) -> None:
        self.home = getattr(value, "__module__", "")
        self.own = getattr(value, "__name__", "")

    def __call__(self, shown: tuple[str, str]) -> tuple[bool, bool, int, str]:
        module, name = shown
        return module != self.home, name != self.own, module.count("."), module + name


@cache
def homes_of(module: str) -> Mapping[str, tuple[str, str]]:
    """Where the names of a facade come from; nothing for other modules."""
    tree = ast.parse(inspect.getsource(import_module(module)))
    return table_of(tree, module) or {}


@cache
def group(module: str, name: str) -> str:
    """The heading under which a page has a name: what its home says of itself."""
    home, _ = homes_of(module).get(name, ("", ""))
    if not home:
        return "Names"
    package = ".".join(home.split(".")[:3])
    if module == "verax":
        return SUBJECTS.get(package) or title(package)
    inside = home.startswith(f"{module}.") or package in LARGE
    return title(home if inside else package)


def level(entry: Entry) -> tuple[str, int]:
    """Where a group stands on a page: what others are made of comes first."""
    if entry.module == "verax":
        subjects = list(dict.fromkeys(SUBJECTS.values()))
        known = entry.group in subjects
        return "", subjects.index(entry.group) if known else len(subjects)
    _, floor, *rest = (
        *homes_of(entry.module).get(entry.name, ("", ""))[0].split("."),
        "",
    )
    levels = [level.split() for level in ORDER.get(floor, ())]
    return floor, next((i for i, names in enumerate(levels) if rest[0] in names), -1)


@cache
def title(module: str) -> str:
    """The first sentence of a module's docstring, as a heading."""
    paragraph = (import_module(module).__doc__ or "").split("\n\n")[0]
    first = " ".join(paragraph.split()).split(". ")[0]
    words = FLOOR.sub("", FLOOR.sub("", first))
    return words[0].upper() + words[1:]


# ------------------------------------------------------------------------- signatures


def signature(name: str, value: Any) -> str:
    """How a value is called, on as many lines as it takes."""
    try:
        actual = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{name}(...)"
    parts = [parameter(p) for p in actual.parameters.values()]
    kinds = [p.kind for p in actual.parameters.values()]
    positional = [k for k in kinds if k is inspect.Parameter.POSITIONAL_ONLY]
    if positional:
        parts.insert(len(positional), "/")
    keywords = [k is inspect.Parameter.KEYWORD_ONLY for k in kinds]
    if any(keywords) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parts.insert(keywords.index(True) + bool(positional), "*")
    empty = actual.return_annotation in (inspect.Signature.empty, None)
    result = "" if empty else f" -> {annotation(actual.return_annotation)}"
    line = f"{name}({', '.join(parts)}){result}"
    if len(line) <= WIDTH:
        return line
    inner = "".join(f"    {part},\n" for part in parts)
    return f"{name}(\n{inner}){result}"


def parameter(p: inspect.Parameter) -> str:
    """A parameter with its type and default, as one writes it."""
    stars = "*" * (p.kind is p.VAR_POSITIONAL) + "**" * (p.kind is p.VAR_KEYWORD)
    typed = "" if p.annotation is p.empty else f": {annotation(p.annotation)}"
    if p.default is p.empty:
        return f"{stars}{p.name}{typed}"
    equals = " = " if typed else "="
    return f"{stars}{p.name}{typed}{equals}{Default(p.default)!r}"


def annotation(result: Any) -> str:
    """A type without the modules that its parts come from."""
    text = result if isinstance(result, str) else inspect.formatannotation(result)
    return ADDRESS.sub("", HOME.sub("", text))


# ------------------------------------------------------------------------- docstrings


def markdown(docstring: str) -> str:
    """A docstring as Markdown: its examples and code in fences, its sections as lists.

    >>> print(markdown("Twice `x`.\\n\\nRaises:\\n    TypeError: never.\\n"))
    Twice `x`.
    <BLANKLINE>
    **Raises**
    <BLANKLINE>
    - `TypeError`: never.
    """
    lines = inspect.cleandoc(docstring).splitlines()
    return "\n".join(blocks(lines)).strip()


def blocks(lines: Sequence[str]) -> Iterator[str]:
    """The blocks of a docstring, one after the other."""
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.lstrip().startswith(">>> "):
            at, block = until(lines, at, lambda text: not text.strip())
            yield from ("", "```pycon", *inspect.cleandoc("\n".join(block)).split("\n"))
            yield from ("```", "")
        elif SECTION.fullmatch(line):
            end, block = until(lines, at + 1, lambda t: bool(t) and t[0] != " ")
            yield from section(line.removesuffix(":"), block)
            at = end
        elif line.endswith("::"):
            yield line[:-1]
            start = at + 1 + (at + 1 < len(lines) and not lines[at + 1].strip())
            at, block = until(lines, start, lambda t: bool(t) and t[0] != " ")
            code = inspect.cleandoc("\n".join(("", *block))).split("\n")
            yield from ("", "```python", *code, "```", "")
        else:
            yield escaped(line)
            at += 1


def until(lines: Sequence[str], start: int, stop: Any) -> tuple[int, list[str]]:
    """The lines from `start` to the first for which `stop` holds, and its index."""
    for at in range(start, len(lines)):
        if stop(lines[at]):
            return at, list(lines[start:at])
    return len(lines), list(lines[start:])


def section(name: str, lines: Sequence[str]) -> Iterator[str]:
    """`Args:` and its like, with one point for each `name: text` in it."""
    yield from ("", f"**{name}**", "")
    for line in lines:
        item = ITEM.fullmatch(line)
        if item:
            yield f"- `{item[1].strip('`')}`: {escaped(item[2])}"
        else:
            deeper = "  " if line.startswith("      ") else ""
            yield escaped(deeper + line.strip())
    yield ""


def escaped(line: str) -> str:
    """A line of prose in which nothing outside of backticks looks like HTML."""
    parts = line.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)


def first_paragraph(docstring: str) -> str:
    return markdown(inspect.cleandoc(docstring).split("\n\n")[0])


# ------------------------------------------------------------------------------ pages


def page(module: str, result: Sequence[Entry]) -> str:
    """The page of a module: its docstring, an index, and an entry for each name."""
    docstring = import_module(module).__doc__ or ""
    lines = [f"# {module}", "", title(module) + ".", "", about(docstring), ""]
    groups: dict[str, list[Entry]] = {}
    for entry in sorted(result, key=level):
        groups.setdefault(entry.group, []).append(entry)
    if len(result) > 4:
        lines += index(groups)
    for name, members_of in groups.items():
        lines += [f"## {name}", ""]
        values = [entry for entry in members_of if is_value(entry.value)]
        for entry in members_of:
            if entry not in values:
                lines += [*described(entry), ""]
        lines += table(values)
    return "\n".join(lines) + "\n"


def about(docstring: str) -> str:
    """What a module says to its users, after its first sentence."""
    summary, _, rest = inspect.cleandoc(docstring).partition("\n\n")
    _, *more = re.split(r"\.\s", summary, maxsplit=1)
    without = IDEA.sub(lambda result: "For example::\n" if result[2] else "", rest)
    return markdown("\n\n".join(["", *more, without]))


def index(groups: Mapping[str, Sequence[Entry]]) -> Iterator[str]:
    """The names of a page by group, as links."""
    for name, actual in groups.items():
        links = " · ".join(f"[`{e.name}`](#{e.anchor})" for e in actual)
        head = [] if name == "Names" else [f"**{name}**:"]
        yield from (" ".join((*head, links)), "{ .index }", "")


def is_value(value: object) -> bool:
    """Whether an entry is one line: a constant, a type, a primitive."""
    return not callable(value) or isinstance(value, Row)


def table(result: Sequence[Entry]) -> Iterator[str]:
    """Constants, types and primitives: a line each."""
    if not result:
        return
    yield from ("| | |", "|---|---|")
    for entry in result:
        name = f'<a id="{entry.anchor}"></a>`{entry.name}`'
        yield f"| {name} | {value_text(entry).replace('|', '&#124;')} |"
    yield ""


def value_text(entry: Entry) -> str:
    """What a constant is, in a line."""
    value = entry.value
    if isinstance(value, Row):
        return f"The primitive `{value.name}`."
    if isinstance(value, TypeAliasType):
        return f"A type: <code>{code(annotation(str(value.__value__)))}</code>"
    own = vars(type(value)).get("__doc__") if is_ours(type(value)) else None
    if own:
        return first_paragraph(own).replace("\n", " ")
    text = ADDRESS.sub("", annotation(repr(value)))
    return f"<code>{code(text if len(text) < LONG else text[:LONG] + '...')}</code>"


def code(text: str) -> str:
    escapes = str.maketrans({"&": "&amp;", "<": "&lt;", "[": "&#91;", "\n": " "})
    return text.translate(escapes)


def described(entry: Entry) -> Iterator[str]:
    """The entry of a function or a class."""
    yield from (f"### `{entry.name}` {{ #{entry.anchor} }}", "")
    yield from ("```python", head(entry.name, entry.value), "```", "")
    docstring = inspect.getdoc(entry.value) or ""
    if entry.same_as:
        yield from (first_paragraph(docstring), "")
        yield f"The same as `{entry.same_as}`."
        return
    yield from (markdown(docstring), "")
    if entry.anchor in examples():
        yield from ("```pycon", examples()[entry.anchor], "```", "")
    if isinstance(entry.value, type) and is_ours(entry.value):
        actual = {name: unwrapped(value) for name, value in members(entry.value)}
        plain = [name for name, value in actual.items() if not speaks(value)]
        yield from attributes(entry, plain)
        for name in (name for name in actual if name not in plain):
            yield from described_member(entry, name, actual[name])


def head(name: str, value: Any) -> str:
    if not isinstance(value, type):
        return signature(name, value)
    if not is_ours(value) or value.__init__ is object.__init__:  # type: ignore[misc]
        return f"class {name}"
    return "class " + signature(name, value).removesuffix(" -> None")


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """What a class or a base of ours defines publicly, as `tests.surface` lists it."""
    for name in dir(cls):
        home = next((base for base in cls.__mro__ if name in vars(base)), object)
        if not name.startswith("_") and is_ours(home):
            yield name, inspect.getattr_static(cls, name)


def unwrapped(member: Any) -> Any:
    return member.__func__ if isinstance(member, classmethod | staticmethod) else member


def speaks(member: object) -> bool:
    """Whether a member has a signature or a docstring of its own."""
    own = inspect.cleandoc(str(vars(type(member)).get("__doc__")))
    return inspect.isroutine(member) or inspect.getdoc(member) not in (None, "", own)


def attributes(entry: Entry, names: Sequence[str]) -> Iterator[str]:
    """Those attributes of a class of which there is no more to say than their types."""
    types: dict[str, Any] = {}
    for base in reversed(entry.value.__mro__):
        types.update(inspect.get_annotations(base))
    for name in names:
        typed = f": {annotation(types[name])}" if name in types else ""
        label = f'<a id="{entry.anchor}.{name}"></a><code>{name}{code(typed)}</code>'
        yield f"- {label}"
    yield ""


def described_member(entry: Entry, name: str, member: Any) -> Iterator[str]:
    """The entry of a method, or of an attribute that is computed."""
    yield from (f"#### `{entry.name}.{name}` {{ #{entry.anchor}.{name} }}", "")
    if inspect.isroutine(member):
        call = SELF.sub("(", signature(name, member), count=1)
        yield from ("```python", call, "```", "")
    yield from (markdown(inspect.getdoc(member) or ""), "")


@cache
def examples() -> Mapping[str, str]:
    """Examples beside those of docstrings, by name, with what they import."""
    actual: dict[str, str] = {}
    for path in sorted(EXAMPLES.glob("*.md")):
        imports, *parts = EXAMPLE.findall(path.read_text())
        for name, text in parts:
            actual[f"{path.stem}.{name}"] = imports[1].rstrip() + "\n" + text.rstrip()
    return actual


def without_example(result: Mapping[str, Sequence[Entry]]) -> list[str]:
    """The functions and classes whose entries show nobody how to use them."""
    return [
        entry.anchor
        for listed in result.values()
        for entry in listed
        if not is_value(entry.value) and not entry.same_as
        if not any(">>>" in line for line in described(entry))
    ]


def pages(result: Mapping[str, Sequence[Entry]]) -> dict[str, str]:
    """Every page by its path below docs/, with links between them."""
    links = Links(result)
    return {
        links.paths[module]: links.linked(
            page(module, result[module]), links.paths[module], module
        )
        for module in sorted(result)
    }


def paths_of(modules: Iterable[str]) -> dict[str, str]:
    """The path of each page; a module that holds others is the index of a folder."""
    packages = {module.rpartition(".")[0] for module in modules}
    return {
        module: f"{FOLDER}/{module}{'/index' if module in packages else ''}.md"
        for module in modules
    }


def menu(modules: Iterable[str]) -> list[Any]:
    """The pages as MkDocs nests them: a module, and below it those that it holds."""
    actual: dict[str, Any] = {}
    for module, path in sorted(paths_of(modules).items()):
        inner = actual
        for part in module.split("."):
            inner = inner.setdefault(part, {})
        inner[""] = path
    return submenu(actual["verax"])


def submenu(result: Mapping[str, Any]) -> list[Any]:
    own = [result[""]] if "" in result else []
    inner = [
        {part: submenu(below) if below.keys() != {""} else below[""]}
        for part, below in result.items()
        if part
    ]
    return [*own, *inner]


def anchors(result: Mapping[str, Sequence[Entry]]) -> dict[str, str]:
    """Where each public name is explained: the path and the anchor of a link to it."""
    paths = paths_of(result)
    places = dict(paths)
    for module, listed in result.items():
        for entry in listed:
            places[entry.anchor] = f"{paths[module]}#{entry.anchor}"
    return places


# ------------------------------------------------------------------------------ links


class Links:
    """Names in backticks as links to their entries, on any page of the site."""

    def __init__(self, result: Mapping[str, Sequence[Entry]]) -> None:
        self.paths = paths_of(result)
        self.places = anchors(result)
        self.parameters = {
            module: {name for entry in listed for name in parameter_names(entry)}
            for module, listed in result.items()
        }

    def place(self, name: str, module: str | None) -> str | None:
        """Where a name is explained; a bare one is of the page's own module.

        Unless a function of that module calls a parameter so: then it means that.
        """
        if "." in name:
            long = SHORT.sub(lambda short: LONG_NAMES[short[1]] + ".", name)
            options = [name, long, f"verax.{name}", f"{module}.{name}"]
        elif module and name not in self.parameters[module]:
            options = [f"{module}.{name}"]
        else:
            return None
        return next((self.places[x] for x in options if x in self.places), None)

    def linked(self, text: str, path: str, module: str | None = None) -> str:
        """A page with links, outside of its fences, headings and links."""
        up = "../" * path.count("/")

        def link(token: re.Match[str]) -> str:
            place = self.place(token[1], module)
            return f"[{token[0]}]({up}{place})" if place else token[0]

        pieces = FENCED.split(text)
        pieces[::2] = [NAME.sub(link, piece) for piece in pieces[::2]]
        return "".join(pieces)


SHORT = re.compile(r"^(vnp|jnp|np)\.")
LONG_NAMES = {"vnp": "verax.numpy", "jnp": "verax.numpy", "np": "numpy"}
FENCED = re.compile(
    r"(^ *```.*?^ *```|^#+ .*?$|(?<!`)``[^`].*?``|\[[^\[\]]*\]\()",
    re.MULTILINE | re.DOTALL,
)
NAME = re.compile(r"`([A-Za-z_][\w.]*)(?:\(\))?`")


def parameter_names(entry: Entry) -> Iterator[str]:
    if callable(entry.value):
        try:
            yield from inspect.signature(entry.value).parameters
        except (TypeError, ValueError):
            return


def main() -> None:
    if sys.argv[1:] == ["--without-example"]:
        print("\n".join(without_example(entries())))
        return
    for module in sys.argv[1:] or sorted(entries()):
        print(page(module, entries()[module]))


if __name__ == "__main__":
    main()
