"""What of jaxlib's private surface verax uses, where, and what to do when it moves.

One idea: the sources name what they use, and `typings/jaxlib` names the members of it,
since a type checker admits no others. So the list is read, never kept by hand; what is
written by hand is the way out for each part, and a part without one is an error::

    python -m tests.jaxlib_surface     # writes the table into the page
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from attrs import field, frozen

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "verax"
TYPINGS = ROOT / "typings" / "jaxlib"
PAGE = ROOT / "docs" / "design" / "0054-what-is-used-of-jaxlib.md"
START, END = "<!-- surface -->\n", "<!-- end of surface -->\n"
LIBRARY = "jaxlib"
LATE = ("loaded", "LazyFunction", "import_module", "module_named")
"""What takes the name of a module, and perhaps that of a part of it, as text."""

OPTIONAL = frozenset({"jaxlib._profiler.export_to_xprof"})
"""What an older jaxlib of the range lacks: asked for with `getattr`."""

KERNELS = ("gpu_solver", "gpu_linalg", "gpu_sparse", "gpu_prng")
BATCHED = KERNELS[:3]
BY_LOOP = {
    **{f"jaxlib.{name}.registrations": "backend/runtime/cuda.py" for name in KERNELS},
    **{
        f"jaxlib.{name}.batch_partitionable_targets": "backend/runtime/cuda.py"
        for name in BATCHED
    },
    "jaxlib.gpu_solver.initialize_hybrid_kernels": "backend/runtime/cuda.py",
}
"""Parts of modules whose names a loop makes."""

FALLBACKS = {
    "jaxlib.version": "public: `importlib.metadata` has the version, too",
    "jaxlib.version._git_hash": "the version alone; development builds of one version "
    "would share files of the cache",
    "jaxlib.__path__": "`importlib.util.find_spec`",
    "jaxlib.lapack": "SciPy's own pointers to LAPACK (`scipy.linalg.cython_lapack`), "
    "or calls of the host, which every row has for a platform without a lowering",
    "jaxlib.xla_client": "thin Python over `_jax`: the compiled functions directly",
    "jaxlib.plugin_support": "`importlib` finds the plugin's extension, ten lines",
    "jaxlib.gpu_": "the plugin's extension has the kernels; without them programs run "
    "that need no linear algebra",
    "jaxlib._profiler": "none: `verax.profiler` raises, and everything else works",
    "jaxlib._profiler.export_to_xprof": "an error that says so; a session with a "
    "`log_dir` writes its files itself",
    "jaxlib._profile_data": "the protocol buffers of XSpace, read with a schema",
    "jaxlib._hlo": "the text of HLO, which `Compiled.as_text()` shows, and shardings "
    "from their text",
    "jaxlib._jax.pytree": "a registry of our own in Python, ten times slower for trees "
    "of many leaves; classes registered with jax would not be known",
    "jaxlib._jax.mlir": "the bindings in `jaxlib.mlir` do the same on module objects",
    "jaxlib.mlir": "texts, which the compiler takes, too: only exports, "
    "calls of the host in programs, and rules of the user's in MLIR need objects",
    "jaxlib._jax.Distributed": "none: one process works without",
    "jaxlib._jax.get_distributed_runtime": "none: one process works without",
    "jaxlib._jax.make_gloo_tcp_collectives": "MPI's, which jaxlib has beside Gloo's",
    "jaxlib._jax.PreemptionSync": "none: what asks for a preemption raises",
    "jaxlib._jax.create_preemption": "none: what asks for a preemption raises",
    "jaxlib._jax.ArrayImpl": "PJRT's buffers: there is no second way to them. The "
    "classes of arrays (`backend/arrays`) would hold what comes instead",
    "jaxlib._jax.dlpack_managed_tensor_to_buffer": "a copy through NumPy",
    "jaxlib._jax.buffer_to_dlpack_managed_tensor": "a copy through NumPy",
    "jaxlib._jax.batched_": "one array at a time, by the same client",
    "jaxlib._jax.register_custom_call": "`xla_client.register_custom_call_target`",
    "jaxlib._jax.hlo_module_cost": "`debug.costs`, which counts from the jaxpr",
    "jaxlib._jax.ResultHandler": "arrays made one by one of what `execute_sharded` "
    "returns: some microseconds for each",
    "jaxlib._jax.array_result_handler": "arrays made one by one of what "
    "`execute_sharded` returns: some microseconds for each",
    "jaxlib._jax": "PJRT's C API, which is stable, through bindings of our own: "
    "client, devices, compiling, running and buffers are what it has",
    "jaxlib._jax.JaxRuntimeError": "`RuntimeError`, of which it is a class",
}
"""From the beginning of a name to what would be done without it; the longest counts."""


@frozen
class Use:
    """A name of jaxlib, the files that name it, and its members that types name."""

    name: str
    files: tuple[str, ...]
    members: tuple[str, ...] = field(default=())

    @property
    def fallback(self) -> str:
        """What would be done without it.

        Raises:
            KeyError: nobody has written it down.
        """
        starts = [start for start in FALLBACKS if self.name.startswith(start)]
        if not starts:
            raise KeyError(f"say in FALLBACKS what to do without {self.name}")
        return FALLBACKS[max(starts, key=len)]


def uses() -> list[Use]:
    """Everything of jaxlib that the sources name, by name."""
    places: dict[str, set[str]] = defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        if LIBRARY in text and path.parent.name != "doctor":
            for name in named(ast.parse(text)):
                places[name].add(str(path.relative_to(SOURCE)))
    for name, file in BY_LOOP.items():
        places[name].add(file)
    types = members()
    used = {name for name in places if not is_module(name)}
    reached = {*used, *[x for x in types if not x.startswith(tuple(used))]}
    return [
        Use(name, tuple(sorted(places[name])), tuple(types.get(name, ())))
        for name in sorted(reached)
    ]


def named(tree: ast.Module) -> Iterator[str]:
    """The names of jaxlib in a module, imported, late or by attribute."""
    known = dict(imported(tree))
    texts = constants(tree)
    yield from (name for name in known.values() if name != LIBRARY)
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            *chain, base = chained(node)
            inner.update(map(id, chain))
            start = known.get(text_or_name(base)) or late(base, texts)
            if start:
                names = [
                    x.attr for x in reversed(chain) if isinstance(x, ast.Attribute)
                ]
                yield trimmed(".".join([start, *names]))
        elif name := late(node, texts):
            yield name
        elif isinstance(node, ast.Call) and called(node) == "getattr":
            base, asked = node.args[:2]
            if start := known.get(text_or_name(base), ""):
                yield f"{start}.{text_of(asked, texts)}"


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """What a module imports of jaxlib: its name there, and in jaxlib."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            if any(alias.name.split(".")[0] == LIBRARY for alias in node.names):
                yield LIBRARY, LIBRARY
        elif isinstance(node, ast.ImportFrom):
            ours = (node.module or "").split(".")[0] == LIBRARY
            for alias in node.names if ours else ():
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def late(node: ast.AST, texts: Mapping[str, str]) -> str:
    """The name of jaxlib's that a call loads when it runs; empty for other nodes."""
    if not isinstance(node, ast.Call) or called(node) not in LATE:
        return ""
    words = [text_of(arg, texts) for arg in node.args[:2]]
    ours = words and words[0].split(".")[0] == LIBRARY
    return ".".join(words) if ours and all(words) else ""


def chained(node: ast.expr) -> list[ast.expr]:
    """The nodes of `a.b.c`, from the last attribute to what is no attribute."""
    out = [node]
    while isinstance(node, ast.Attribute):
        node = node.value
        out.append(node)
    return out


def trimmed(name: str) -> str:
    """A name up to its first part that is a class or a function: members come after.

    >>> trimmed("jaxlib._hlo.HloSharding.from_proto")
    'jaxlib._hlo.HloSharding'
    """
    parts = name.split(".")
    for size in range(2, len(parts) + 1):
        start = ".".join(parts[:size])
        if not is_module(start):
            return start
    return name


def is_module(name: str) -> bool:
    """Whether a name is that of a module of jaxlib, as far as this page knows them."""
    words = name.removeprefix(f"{LIBRARY}.").split(".")
    stub = TYPINGS.joinpath(*words)
    known = stub.with_suffix(".pyi").exists() or stub.is_dir()
    return known or words in (["version"], ["lapack"], ["mlir"])


def constants(tree: ast.Module) -> dict[str, str]:
    """The texts to which a module gives names."""
    out: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            out[node.target.id] = text_of(node.value, out)
    return out


def text_of(node: ast.AST | None, texts: Mapping[str, str]) -> str:
    """The text that an expression is; empty where that is not known."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return texts.get(name, "")
        case ast.FormattedValue(value=inner):
            return text_of(inner, texts)
        case ast.JoinedStr(values=parts):
            words = [text_of(part, texts) for part in parts]
            return "".join(words) if all(words) else ""
    return ""


def text_or_name(node: ast.AST) -> str:
    """The name that an expression is; empty if it is another."""
    return node.id if isinstance(node, ast.Name) else ""


def called(node: ast.Call) -> str:
    """The name of the function that is called."""
    return text_or_name(node.func)


def members() -> dict[str, list[str]]:
    """The names in the typings, each with its members."""
    out: dict[str, list[str]] = {}
    for path in sorted(TYPINGS.rglob("*.pyi")):
        words = path.relative_to(TYPINGS.parent).with_suffix("").parts
        home = ".".join(word for word in words if word != "__init__")
        for node in ast.parse(path.read_text()).body:
            for name in defined(node):
                inside = node.body if isinstance(node, ast.ClassDef) else []
                out[f"{home}.{name}"] = [m for x in inside for m in defined(x)]
    return out


def defined(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a typing defines, without special methods."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            names = [name]
        case ast.Assign(targets=targets):
            names = [x.id for x in targets if isinstance(x, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            names = [name]
        case _:
            names = []
    yield from (name for name in names if not name.startswith("__"))


def missing(use: Use) -> list[str]:
    """What of a name the installed jaxlib lacks."""
    parts = use.name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            value: object = import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for part in parts[size:]:
            value = getattr(value, part, None)
        if value is None:
            return [use.name]
        return [f"{use.name}.{x}" for x in use.members if not hasattr(value, x)]
    return [use.name]


def table(rows: Sequence[Use]) -> str:
    """The table of the page: one row for all names of a module with one way out."""
    groups: dict[tuple[str, str], list[Use]] = {}
    for use in rows:
        home, _, _ = use.name.rpartition(".")
        groups.setdefault((home, use.fallback), []).append(use)
    lines = ["| of | names (and members) | in | without it |", "|---|---|---|---|"]
    for (home, fallback), group in sorted(groups.items()):
        names = ", ".join([spelled(use) for use in group])
        files = sorted({file for use in group for file in use.files})
        where = ", ".join([f"`{file}`" for file in files]) or "types alone"
        lines.append(f"| `{home}` | {names} | {where} | {fallback} |")
    return "\n".join(lines) + "\n"


def spelled(use: Use) -> str:
    """A name with the number of its members."""
    name = f"`{use.name.rpartition('.')[2]}`"
    return f"{name} ({len(use.members)})" if use.members else name


def written(page: str) -> str:
    """The page with the table of today."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}{table(uses())}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
