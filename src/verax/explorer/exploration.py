"""`verax.explore`: a page that shows every stage of a program (floor 6).

The function is traced under an observer, lowered and compiled once more, beside all
that the process has made of it: nothing that is found later changes::

    page = verax.explore(verax.grad(loss))(w, x)
    page.save("loss.html")
"""

import gzip
import json
import re
import tempfile
import webbrowser
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from verax.api.arguments.call_keys import signature
from verax.api.jit import PjitFunction, jit
from verax.api.stages.on_references import on_values
from verax.api.stages.stages import Traced
from verax.api.tracing import reference_checks
from verax.api.tracing.apply import apply
from verax.api.tracing.structs import ShapeDtypeStruct, struct_avals, struct_of
from verax.api.tracing.wrapping import function_name, wraps
from verax.backend.programs.partitioned import is_absent
from verax.backend.runtime.client import default_platform
from verax.explorer.pipeline import Pipeline, profiled
from verax.explorer.recording import (
    CollectivesNote,
    DigitsNote,
    Document,
    Json,
    LineTotal,
    MemoryNote,
    ProfileNote,
    Recording,
    Stage,
    Story,
    WatchNote,
    sources_of,
)
from verax.explorer.watched import watched_note
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.values.conversions import check_callable
from verax.rules.values.lazy import loaded
from verax.transforms.public import opened

# -----------------------------------------------------------------------------
# The stages of a program as one page of HTML that needs nothing else.
#
# The page is a style sheet, JavaScript modules joined into one, and the document beside
# them, compressed. It fetches nothing, and its own policy forbids it to::
#
#     Path("loss.html").write_text(render(document), encoding="utf-8")


MODULES: Final = (
    "elements",
    "document",
    "links",
    "colours",
    "hits",
    "linecosts",
    "view",
    "groups",
    "watch",
    "digits",
    "heat",
    "list",
    "ruler",
    "rows",
    "source",
    "clusters",
    "layout",
    "graph",
    "stagepane",
    "workspace",
    "search",
    "summary",
    "valuecard",
    "info",
    "costtable",
    "memory",
    "collectives",
    "drawer",
    "story",
    "header",
    "main",
)
"""The modules of the page, each after all that it imports."""
POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src data:"
)
"""The browser's policy for the page: nothing leaves it."""
TEMPLATE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}</style>
<script type="application/octet-stream" id="verax-data">{data}</script>
<script type="application/octet-stream" id="verax-layout">{layout}</script>
</head>
<body>
<noscript>This page shows a program with JavaScript, which is off.</noscript>
<script type="module">
{script}</script>
</body>
</html>
"""
IMPORT: Final = re.compile(r"^import [^;]*;\n", re.MULTILINE)
EXPORT: Final = re.compile(r"^export ", re.MULTILINE)


def render(document: Mapping[str, object]) -> str:
    """The page that shows a document of `verax.explore`, the same for equal documents.

    >>> page = render({"format": 1, "title": "a<b", "files": [], "stages": []})
    >>> "<title>a&lt;b · verax</title>" in page
    True
    """
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    title = f"{document.get('title', 'program')} · verax"
    return TEMPLATE.format(
        policy=POLICY,
        title=escape(title),
        style=asset("explorer.css"),
        data=packed(text),
        layout=packed(
            f"/*\n{asset('vendor/dagre.LICENSE.txt')}*/\n"
            + asset("vendor/dagre.min.js")
            + asset("layout_worker.js")
        ),
        script="".join([joined(asset(f"{name}.js")) for name in MODULES]),
    )


def asset(name: str) -> str:
    """The text of a file beside this module."""
    place = files(__package__) / "assets"
    return place.joinpath(name).read_text(encoding="utf-8")


def joined(module: str) -> str:
    """A module as a part of one script: what it imports stands before it."""
    return EXPORT.sub("", IMPORT.sub("", module))


def packed(text: str) -> str:
    """Text compressed, in letters that HTML leaves alone; equal for equal text."""
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


# -----------------------------------------------------------------------------
# `verax.explore`: a page that shows every stage of a program.


FRAME = (
    '<iframe srcdoc="{}" style="width:100%;height:640px;border:1px solid #8888"'
    ' title="{}"></iframe>'
)


@frozen(eq=False, repr=False)
class Exploration(ReprMixin):
    """The result of `verax.explore`: a document, and the page that shows it."""

    __module__ = "verax.explorer"

    content: Document = field(repr=False)

    @cached_property
    def document(self) -> Mapping[str, Json]:
        """The stages, their rows and links, as JSON."""
        return self.content.to_json()

    @cached_property
    def html(self) -> str:
        """The page: one file, which needs no network."""
        return render(self.document)

    @property
    def title(self) -> str:
        """The name of the function."""
        return self.content.title

    def save(self, path: str | Path) -> Path:
        """Write the page to a file; a name that ends in `.json` gets the document."""
        target = Path(path)
        text = json.dumps(self.document) if target.suffix == ".json" else self.html
        target.write_text(text, encoding="utf-8")
        return target

    def open(self) -> Path:
        """Show the page in a browser, from a file among the temporary ones."""
        folder = Path(tempfile.mkdtemp(prefix="verax-explore-"))
        path = self.save(folder / "explore.html")
        webbrowser.open(path.as_uri())
        return path

    def _repr_html_(self) -> str:
        """The page as a notebook shows it."""
        page = self.html.replace("&", "&amp;").replace('"', "&quot;")
        title = self.title.replace("&", "&amp;").replace('"', "&quot;")
        return FRAME.format(page, title)

    def __repr__(self) -> str:
        stages = [
            f"{stage.name} ({len(stage.rows)} rows)" for stage in self.content.stages
        ]
        return f"Exploration of {self.title}: {', '.join(stages)}"


def explore(
    fun: Callable[..., object] | Jaxpr | ClosedJaxpr,
    *,
    path: str | Path | None = None,
    open: bool = False,
    compile: bool = True,
    profile: bool = False,
    watch: bool = False,
    precision: bool = False,
) -> Callable[..., Exploration]:
    """A function that takes the arguments of `fun` and shows what becomes of it.

    The result has every stage of the program: what was traced from the user's lines,
    what each transformation made of it, what `jit` removes and joins, StableHLO, and
    the program that XLA compiles. It knows of each row which rows of the stage before
    it was made from, and which line of the user's.

    Arguments may be `ShapeDtypeStruct`s; those of a jaxpr, which may stand for `fun`,
    are of its own types if there are none. The page is written to `path`, and shown in
    a browser if `open` is true; in a notebook the result shows itself. Without
    `compile` XLA is not asked, which is most of the time that a large program takes.
    With `profile` the program is run a few times, and each row says how long it takes;
    with `watch` it is run once, and rows say what values they had; with `precision` it
    runs beside a shadow in wider arithmetic, as in `verax.debug.precision`, and rows
    say how many digits they lose. All three need arguments with values. Of a program
    over several devices, which need not be there, the page also says what they send
    each other.

    Raises:
        TypeError: `fun` is not callable, or `profile`, `watch` or `precision` is asked
            for a call without values.
        ValueError: `profile` is asked for without `compile`; or one of the three for
            devices that are not there.

    >>> import verax
    >>> page = verax.explore(verax.grad(lambda x: x * x), compile=False)(3.0)
    >>> [stage["name"] for stage in page.document["stages"]]
    ['trace', 'linearize', 'transpose', 'join', 'dce', 'stablehlo']
    """
    if isinstance(fun, Jaxpr | ClosedJaxpr):
        fun, given = of_program(fun)
    else:
        check_callable("explore", fun)
        given = ()
    if profile and not compile:
        raise ValueError("explore: profile=True runs the program, so it needs compile")
    function = fun if isinstance(fun, PjitFunction) else jit(fun)

    @wraps(fun)
    def explored(*args: object, **kwargs: object) -> Exploration:
        args = args or given
        extras = Extras(compile, profile, watch, precision)
        out = explored_call(function, extras, args, kwargs)
        if path is not None:
            out.save(path)
        if open:
            out.open()
        return out

    return explored


def of_program(
    program: Jaxpr | ClosedJaxpr,
) -> tuple[Callable[..., Any], tuple[object, ...]]:
    """A function that does what a program does, and arguments of its types."""
    jaxpr = opened(program)

    def run(*args: object) -> Any:
        return tuple(apply(jaxpr, args))

    run.__name__ = run.__qualname__ = "program"
    return run, tuple(map(struct_of, jaxpr.in_avals))


@frozen(repr=False)
class Extras(ReprMixin):
    """What an exploration does besides tracing and lowering."""

    compile: bool
    profile: bool
    watch: bool
    precision: bool

    @property
    def runs(self) -> str:
        """The first option that runs the program; none is empty."""
        return next(
            (n for n in ("profile", "watch", "precision") if getattr(self, n)), ""
        )


def explored_call(
    function: PjitFunction[..., object],
    extras: Extras,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> Exploration:
    """The exploration of a call."""
    recording = Recording()
    with recording.watching():
        stage: Traced = function.trace(*args, **kwargs)
        if extras.runs:
            check_present(stage, extras.runs)
        pipeline = Pipeline(recording, of_arrays(stage))
        explored = pipeline.explored(extras.compile)
    name, note, seen, talk = function_name(function.fun), None, None, None
    whole, level, lost = pipeline.whole, pipeline.whole.level, None
    leaves = (
        values_of(function, stage, args, kwargs, extras.runs) if extras.runs else []
    )
    rows = explored.stages[level].rows
    if extras.watch:
        seen = watched_note(name, whole.marked, leaves, level, rows)
    if extras.precision:
        measured: Callable[..., DigitsNote]
        measured = loaded("verax.explorer.digits", "digits_note")
        lost = measured(whole.marked, leaves, level, rows)
    if extras.profile:
        assert explored.program is not None
        note = profiled(
            explored.stages, explored.program, explored.instructions, leaves
        )
    if explored.part is not None:
        noted: Callable[..., CollectivesNote]
        noted = loaded("verax.explorer.collectives", "collectives_note")
        talk = noted(explored, stage.placement)
    totals: Callable[[Jaxpr], list[LineTotal] | None]
    totals = loaded("verax.explorer.costing", "line_totals")
    costs = totals(whole.jaxpr)
    remembered: Callable[..., MemoryNote | None]
    remembered = loaded("verax.explorer.memory.noted", "memory_note")
    memory = remembered(function, stage, args, kwargs)
    notes = (None, note, costs, seen, talk, memory, lost)
    return exploration_of(name, explored.stages, *notes)


def check_present(stage: Traced, option: str) -> None:
    """Raise ValueError if a program is to run on devices that are not there."""
    if is_absent(stage.placement):
        raise ValueError(
            f"explore: {option}=True runs the program, which is for a mesh of devices "
            "that are not there: leave it out, or use a Mesh of devices of this process"
        )


def of_arrays(stage: Traced) -> Traced:
    """The program on what references hold, if it takes any."""
    if not stage.traced.refs:
        return stage

    return on_values(stage)[0]


def exploration_of(
    title: str,
    stages: Sequence[Stage],
    story: Story | None = None,
    profile: ProfileNote | None = None,
    costs: Sequence[LineTotal] | None = None,
    watch: WatchNote | None = None,
    talk: CollectivesNote | None = None,
    memory: MemoryNote | None = None,
    digits: DigitsNote | None = None,
) -> Exploration:
    """The exploration of these stages."""
    rows = [row for stage in stages for row in stage.rows]
    sources = sources_of([row.source for row in rows])
    shown = tuple(stages)
    notes = (story, profile, costs, watch, talk, memory, digits)
    return Exploration(Document(title, made_with(), sources, shown, *notes))


def values_of(
    function: PjitFunction[..., object],
    stage: Traced,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    option: str,
) -> list[object]:
    """The leaves of the arguments of a call, as the program takes them.

    Raises:
        TypeError: one is a type without a value.
    """
    sig = signature(function.fun, function.settings.statics, args, kwargs, struct_avals)
    for leaf, name in zip(sig.leaves, sig.describe(), strict=True):
        if isinstance(leaf, ShapeDtypeStruct):
            raise TypeError(
                f"explore: {name} is a type without a value, and {option}=True runs "
                "the program: pass an array"
            )
    if not stage.traced.refs:
        return list(sig.leaves)

    return reference_checks.held([*stage.traced.opened.captured, *sig.leaves])


def made_with() -> dict[str, str]:
    """The versions and the device."""
    return {
        "verax": loaded("verax", "__version__"),
        "jaxlib": version("jaxlib"),
        "device": default_platform(),
    }
