"""jit(f).explain: whether a call hits, in which cache, why not, and what it takes."""

import functools
import re
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen

import verax
import verax.numpy as vnp
from verax.api.explain.report import ADVICE, Explanation
from verax.backend.xla import compile_options
from verax.rules.values.state import TRACED, State


class Plain:
    """Compares by identity."""

    def __repr__(self) -> str:
        return "Plain()"


@verax.tree_util.register_pytree_node_class
class Strict:
    """A node that takes nothing but arrays, with a static part."""

    def __init__(self, x: Any, mode: str) -> None:
        if isinstance(x, int):
            raise TypeError("an array")
        self.x, self.mode = x, mode

    def tree_flatten(self) -> tuple[tuple[Any], str]:
        return (self.x,), self.mode

    @classmethod
    def tree_unflatten(cls, mode: str, children: tuple[Any]) -> "Strict":
        return cls(children[0], mode)


Pair = namedtuple("Pair", "left right")


def fun(x: Any, y: Any = 1.0, *rest: Any, n: Any = 1, **others: Any) -> Any:
    """Takes whatever it is given."""
    return vnp.ones(2)


def first(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    return args, kwargs


V = vnp.ones(3)
type Case = tuple[tuple[Any, ...], tuple[Any, ...], list[str]]
CASES: dict[str, Case] = {
    "shape": (
        first(V),
        first(vnp.ones((2, 3))),
        ["x: shape (2, 3), previously (3,)"],
    ),
    "dtype": (
        first(np.ones(3, np.int8)),
        first(V),
        ["x: dtype float32, previously int8"],
    ),
    "weak type": (
        first(vnp.float32(1)),
        first(1.0),
        ["x: type weak (a Python number), previously strong (an array)"],
    ),
    "a leaf": (
        first({"w": [V, V]}, V),
        first({"w": [V, vnp.ones(4)]}, V),
        ["x['w'][1]: shape (4,), previously (3,)"],
    ),
    "leaves of two arguments": (
        first(V, V, V, k=V),
        first(V, V, vnp.ones(4), k=vnp.arange(3)),
        ["rest[0]: shape (4,), previously (3,)", "k: dtype int32, previously float32"],
    ),
    "an argument more": (
        first(V),
        first(V, 2.0),
        ["y: given, previously not given"],
    ),
    "an argument less": (
        first(V, 2.0, 3.0),
        first(V, 2.0),
        ["rest[0]: not given, previously given"],
    ),
    "a keyword more": (
        first(V),
        first(V, k=2.0),
        ["k: given, previously not given"],
    ),
    "a keyword in place of a position": (
        first(V, 2.0),
        first(V, y=2.0),
        ["y: passed by keyword, previously by position"],
    ),
    "a container": (
        first([V, V]),
        first((V, V)),
        ["x: tuple of 2, previously list of 2"],
    ),
    "a length": (
        first([V, V]),
        first([V]),
        ["x: list of 1, previously list of 2"],
    ),
    "a leaf in place of a container": (
        first({"a": [V]}),
        first({"a": V}),
        ["x['a']: an array, previously list of 1"],
    ),
    "None in place of a leaf": (
        first({"a": V}),
        first({"a": None}),
        ["x['a']: None, previously an array"],
    ),
    "a key more": (
        first({"a": V}),
        first({"a": V, "b": V}),
        ["x: dict with 'b', previously without"],
    ),
    "a key less": (
        first({"a": {"b": V, "c": V}}),
        first({"a": {"b": V}}),
        ["x['a']: dict without 'c', previously with"],
    ),
    "another key": (
        first({"a": V, "b": V}),
        first({"a": V, "c": V}),
        ["x: dict with 'c' and without 'b', previously the other way round"],
    ),
    "the order of keys": (
        first(OrderedDict(a=V, b=V)),
        first(OrderedDict(b=V, a=V)),
        ["x: static part ('b', 'a'), previously ('a', 'b')"],
    ),
    "the keys of a defaultdict": (
        first(defaultdict(list, a=V)),
        first(defaultdict(list, a=V, b=V)),
        ["x: defaultdict with 'b', previously without"],
    ),
    "a named tuple": (
        first(Pair(V, V)),
        first(Pair(V, (V,))),
        ["x.right: tuple of 1, previously an array"],
    ),
    "a static part of a node": (
        first(Strict(V, "fast")),
        first(Strict(V, "slow")),
        ["x: static part 'slow', previously 'fast'"],
    ),
    "a leaf of a node that refuses numbers": (
        first(Strict(V, "fast")),
        first(Strict(vnp.ones(4), "fast")),
        ["leaf 0 of x: shape (4,), previously (3,)"],
    ),
    "a static value": (
        first(V, n=1),
        first(V, n=2),
        ["n: static value 2, previously 1"],
    ),
    "the class of a static value": (
        first(V, n=1),
        first(V, n=True),
        ["n: static value True of type bool, previously 1 of type int"],
    ),
    "a static tuple": (
        first(V, n=(1, 2)),
        first(V, n=(1, 2.0)),
        ["n: static value (1, 2.0), previously (1, 2)"],
    ),
    "a static tuple of one, and a zero with a sign": (
        first(V, n=(0.0,)),
        first(V, n=(-0.0,)),
        ["n: static value (-0.0,), previously (0.0,)"],
    ),
    "a static set": (
        first(V, n=frozenset({1, 2})),
        first(V, n=frozenset({3})),
        ["n: static value frozenset({3}), previously frozenset({1, 2})"],
    ),
    "a static object": (
        first(V, n=Plain()),
        first(V, n=Plain()),
        ["n: static value Plain(), previously another object that prints the same"],
    ),
    "a static argument more": (
        first(V),
        first(V, n=3),
        ["n: given, previously not given"],
    ),
    "two static arguments": (
        first(V, n=3, m="a"),
        first(V, n=4, m="b"),
        ["m: static value 'b', previously 'a'", "n: static value 4, previously 3"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_differs_is_named(name: str) -> None:
    (args, kwargs), (others, words), expected = CASES[name]
    jitted = verax.jit(fun, static_argnames=("n", "m"))
    jitted(*args, **kwargs)
    report = jitted.explain(*others, **words)
    assert [str(actual) for actual in report.differences] == expected
    assert report.reason == "What differs from the only signature known so far:"
    assert not report.hit
    assert jitted.explain(*args, **kwargs).hit
    for actual in report.differences:
        assert f"  ({ADVICE[actual.kind]})" in str(report).splitlines()
    jitted(*others, **words)
    assert jitted.explain(*others, **words).hit


@contextmanager
def mesh() -> Iterator[None]:
    with verax.make_mesh((1,), ("batch",)):
        yield


OPTIONS: dict[str, tuple[Callable[[], AbstractContextManager[None]], str]] = {
    "x64": (verax.enable_x64, "config.enable_x64: True, previously False"),
    "precision": (
        lambda: verax.default_matmul_precision("highest"),
        "config.default_matmul_precision: highest, previously None",
    ),
    "promotion": (
        lambda: verax.numpy_dtype_promotion("strict"),
        "config.numpy_dtype_promotion: strict, previously standard",
    ),
    "nans": (verax.debug_nans, "config.debug_nans: True, previously False"),
    "infinities": (verax.debug_infs, "config.debug_infs: True, previously False"),
    "device": (
        lambda: verax.default_device(verax.devices()[0]),
        "config.default_device: cpu:0, previously None",
    ),
    "mesh": (
        mesh,
        "the mesh of the enclosing block: Mesh(axis_sizes=(1,), axis_names=('batch',), "
        "axis_types=(Explicit,)), previously none",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_differ_are_named(name: str) -> None:
    block, expected = OPTIONS[name]
    jitted, x = verax.jit(lambda x: x), vnp.ones(3)
    jitted(x)
    with block():
        report = jitted.explain(x)
        assert [str(found) for found in report.differences] == [expected]
        assert [found.kind for found in report.differences] == ["option"]
        jitted(x)
        assert jitted.explain(x).hit
    assert jitted.explain(x).hit


def test_every_option_of_the_keys_has_a_name() -> None:
    assert len(TRACED) == len(State.context.values)


def test_the_nearest_signature_is_compared() -> None:
    jitted = verax.jit(lambda x, y: x)
    jitted(vnp.ones(3), vnp.ones(3))
    jitted(vnp.ones(4), vnp.ones(4))
    jitted(np.ones(3, np.int8), [1.0])
    report = jitted.explain(vnp.ones(4), vnp.arange(3))
    assert (
        report.reason == "What differs from the nearest of 3 signatures known so far:"
    )
    assert list(map(str, report.differences)) == [
        "y: shape (3,), previously (4,)",
        "y: dtype int32, previously float32",
    ]


def test_many_differences_are_cut_short() -> None:
    jitted = verax.jit(lambda xs: xs[0])
    jitted([vnp.ones(3)] * 20)
    report = jitted.explain([vnp.ones(4)] * 20)
    assert len(report.differences) == 20
    assert "  and 12 more differences" in str(report).splitlines()
    assert str(report).count(ADVICE["shape"]) == 1


def answers(report: Explanation) -> list[bool | None]:
    return [answer.hit for answer in report.caches]


def test_each_cache_answers_for_itself() -> None:
    def one(x: Any) -> Any:
        return vnp.sin(x) + 11.5

    def two(x: Any) -> Any:
        return vnp.sin(x) + 11.5

    x = vnp.ones(7)
    f, g = verax.jit(one), verax.jit(two)
    report = f.explain(x)
    assert answers(report) == [False, False, False, False, None]
    assert report.verdict == "miss: the function is traced, lowered and compiled."
    assert report.reason.startswith("This is the first call of")
    f(x)
    report = f.explain(x)
    assert answers(report) == [True, True, True, None, None]
    assert report.verdict == "hit: the call runs its compiled program at once."
    report = f.explain(np.ones(7, np.float32))
    assert answers(report) == [False, True, True, None, None]
    assert report.hit
    report = f.explain(verax.ShapeDtypeStruct((7,), np.float32))
    assert answers(report) == [None, True, True, None, None]
    report = g.explain(x)
    assert answers(report) == [False, False, False, True, None]
    line = one.__code__.co_firstlineno + 1
    assert report.verdict == (
        "miss: the function is traced and given the program that was compiled for one "
        f"({__file__}:{line})."
    )
    assert report.memory is not None
    g.lower(x)
    report = g.explain(x)
    assert answers(report) == [False, False, True, True, None]
    assert "traced for these arguments before" in report.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: vnp.cos(x) * 12.5, (5,)),
        (lambda x: vnp.cos(x).T * 12.5, (300, 300)),  # of which XLA chooses the vectors
    ],
)
def test_the_cache_on_disk_is_asked(
    function: Callable[[Any], Any],
    shape: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compile_options, "has_wide_vectors", lambda: True)
    verax.config.update("enable_compilation_cache", True)
    verax.config.update("compilation_cache_dir", str(tmp_path))
    verax.config.update("persistent_cache_min_compile_time_secs", 0.0)
    try:
        x = vnp.ones(shape)
        f = verax.jit(function)
        assert answers(f.explain(x))[-1] is False
        f(x)
        (file,) = tmp_path.glob("*.verax")
        assert str(f.explain(x).caches[-1]) == f"miss: written to {file}"
        verax.clear_caches()
        report = f.explain(x)
        assert answers(report)[-1] is True
        assert str(tmp_path) in report.caches[-1].note
        assert report.verdict == (
            "miss: the function is traced, lowered and read from the compilation cache "
            "on disk."
        )
        f(x)
        assert f.explain(x).stages[3].note == "read from disk"
        assert str(f.explain(x).caches[-1]) == f"hit: read from {file}"
        verax.config.update("persistent_cache_min_compile_time_secs", 1e3)
        g = verax.jit(lambda x: vnp.cos(x) * 12.625)
        g(x)
        assert re.fullmatch(
            r"miss: not kept: compiled in [\d.]+ s, and "
            "persistent_cache_min_compile_time_secs is 1000",
            str(g.explain(x).caches[-1]),
        )
        verax.config.update("enable_compilation_cache", False)
        note = verax.jit(lambda x: x * 12.75).explain(x).caches[-1].note
        assert note == "enable_compilation_cache is off"
    finally:
        verax.config.update("enable_compilation_cache", False)
        verax.config.update("compilation_cache_dir", "auto")
        verax.config.update("persistent_cache_min_compile_time_secs", 0.05)


def test_asking_changes_nothing_and_runs_nothing() -> None:
    ran: list[float] = []

    def noisy(x: Any) -> Any:
        verax.debug.callback(lambda v: ran.append(float(v)), x)
        return x * 2

    f = verax.jit(noisy)
    before = verax.metrics()["compiles"]
    first, second = f.explain(1.0), f.explain(1.0)
    assert answers(first) == answers(second) == [False, False, False, False, None]
    assert verax.metrics()["compiles"] == before
    f(1.0)
    f.explain(1.0)
    verax.effects_barrier()
    assert ran == [1.0]
    assert answers(f.explain(1.0))[0] is True


def test_stages_have_times_and_sizes() -> None:
    table = np.ones((8, 8), np.float32)

    def fun(x: Any) -> Any:
        vnp.sin(x)  # nobody needs it
        return x @ table

    f, x = verax.jit(fun), vnp.ones((4, 8))
    fresh = f.explain(x)
    assert [stage.name for stage in fresh.stages] == [
        "trace",
        "rewrite",
        "lower",
        "compile",
    ]
    assert [stage.when for stage in fresh.stages] == ["now"] * 3 + ["at the call"]
    assert fresh.stages[0].sizes["equations"] == 2
    assert fresh.stages[1].sizes["equations"] == 1
    assert fresh.stages[2].sizes["operations"] == 1
    assert fresh.memory is None
    f(x)
    made = f.explain(x)
    assert [stage.when for stage in made.stages] == ["before"] * 4 + ["at the call"]
    assert all(stage.seconds for stage in made.stages[:4])
    assert made.memory is not None
    assert made.memory.arguments == 4 * 8 * 4 + 8 * 8 * 4
    assert made.memory.outputs == 4 * 8 * 4
    (constant,) = made.constants
    assert constant.nbytes == 256
    assert constant.source.line == fun.__code__.co_firstlineno + 2


def test_equations_of_bodies_count() -> None:
    def fun(x: Any) -> Any:
        return verax.lax.fori_loop(0, 5, lambda i, a: vnp.sin(a) * 2, x)

    assert verax.jit(fun).explain(1.0).stages[0].sizes["equations"] > 2


GOLDEN = """\
step (FILE:LINE) called with params: {'b': f32[2], 'w': f32[3,2]}, x: f32[4,3], n=2
miss: the function is traced, lowered and compiled.
What differs from the only signature known so far:
  x: shape (4, 3), previously (8, 3)
  (each shape gets its own program: pad arrays to a few fixed shapes, or map the \
function over a dimension with verax.vmap)

cache                      answer
calls of this function     miss
programs of this function  miss
traces of this function    miss
programs of this process   miss
programs on disk           not asked: enable_compilation_cache is off

stage    time  when         result
trace    TIME  now          3 equations
rewrite  TIME  now          3 equations
lower    TIME  now          3 operations, BYTES bytes of StableHLO
compile  -     at the call  not compiled for this report"""


def plain(report: Explanation) -> str:
    """The printed report without what differs from machine to machine."""
    text = re.sub(r"[^\s(]+test_explain\.py:\d+", "FILE:LINE", str(report))
    text = re.sub(r"[\d,.]+ (KiB|bytes of StableHLO)", r"BYTES \1", text)
    text = re.sub(r"[\d.,]+ ms", "TIME", text)
    return re.sub(r"(?m)^((stage|trace|rewrite|lower|compile)\s+\S+)\s+", r"\1  ", text)


def test_the_printed_report() -> None:
    def step(params: Any, x: Any, n: int) -> Any:
        return x @ params["w"] + params["b"]

    f = verax.jit(step, static_argnums=2)
    params = {"w": vnp.ones((3, 2)), "b": vnp.zeros(2)}
    f(params, vnp.ones((8, 3)), 2)
    report = f.explain(params, vnp.ones((4, 3)), 2)
    lines = [re.sub(r"  +", "  ", line) for line in GOLDEN.splitlines()]
    printed = [re.sub(r"  +", "  ", line) for line in plain(report).splitlines()]
    assert printed == lines
    assert report._repr_html_().startswith("<pre")
    assert "&#" not in report._repr_html_()


def test_a_hit_says_what_a_run_needs() -> None:
    f, x = verax.jit(lambda x: x * 2), vnp.ones(4)
    f(x)
    lines = str(f.explain(x)).splitlines()
    assert lines[1] == "hit: the call runs its compiled program at once."
    assert lines[2] == ""
    assert (
        "memory of a run: 16 bytes of arguments, 16 of results, 0 of temporaries"
        in lines
    )


def test_donated_arguments() -> None:
    f = verax.jit(lambda x: x * 2, donate_argnums=0)
    given = vnp.ones(4)
    f(given)
    report = f.explain(given)  # its type is known still
    assert report.hit
    assert report.memory is not None
    assert report.memory.aliased == 16
    assert "16 of them shared by arguments and results" in str(report)


def test_within_a_trace() -> None:
    inner = verax.jit(lambda x: x * 2)
    seen: list[Explanation] = []

    def outer(x: Any) -> Any:
        seen.append(inner.explain(x))
        y = inner(x)
        seen.append(inner.explain(x))
        closing = verax.jit(lambda z: z + x)
        closing(1.0)
        seen.append(closing.explain(1.0))
        return y

    verax.jit(outer)(1.0)
    assert [report.hit for report in seen] == [False, True, False]
    assert [len(report.stages) for report in seen] == [1, 1, 1]
    assert seen[0].verdict.startswith("miss: the function is traced for the enclosing")
    assert seen[2].verdict.startswith("miss: the function is traced each time")


def test_other_objects_of_the_same_code_are_counted() -> None:
    def make() -> Any:
        return verax.jit(lambda x: x * 13.5)

    f = make()
    assert f.explain(1.0).reason == ("This is the first call of this jitted object.")
    f(1.0)
    f.clear_cache()
    assert "other" not in f.explain(1.0).reason  # it is the same object
    assert "One other object was made from the same code" in make().explain(1.0).reason
    make()(1.0)
    assert "2 other objects were made from the same code" in make().explain(1.0).reason


def test_derived_callables_have_the_users_place() -> None:
    def loss(x: Any, scale: float) -> Any:
        return scale * x**2

    place = f"loss ({__file__}:{loss.__code__.co_firstlineno})"
    for derived in (
        loss,
        verax.grad(loss),
        functools.partial(loss, scale=2.0),
        verax.checkpoint(loss),
    ):
        assert verax.jit(derived).explain(1.0, scale=2.0).function == place


def test_static_objects_that_were_changed() -> None:
    class Unwatched:
        """Hashes by what it holds, which nobody should change."""

        scale = 2

        def __hash__(self) -> int:
            return self.scale

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Unwatched) and self.scale == other.scale

    class Watched:
        scale = 2

    jitted = verax.jit(lambda x, s: x * s.scale, static_argnums=1)
    held, watched = Unwatched(), Watched()
    jitted(1.0, held)
    jitted(1.0, watched)
    held.scale = watched.scale = 3
    report = jitted.explain(1.0, held)
    assert not report.hit
    assert "a static one has a different hash now" in report.reason
    report = jitted.explain(1.0, watched)
    assert report.hit
    assert "an object of class Watched, has changed since" in report.reason
    assert "(attributes: scale)" in str(report)


def test_static_classes_that_cannot_be_compared() -> None:
    class Grid:
        def __init__(self, n: int) -> None:
            self.points = np.arange(n)

        def __eq__(self, other: Any) -> Any:
            return self.points == other.points  # an array, or an error

        def __hash__(self) -> int:
            return len(self.points)

        def __repr__(self) -> str:
            return f"Grid({len(self.points)})"

    jitted = verax.jit(lambda x, grid: x, static_argnums=1)
    jitted(1.0, Grid(3))
    report = jitted.explain(1.0, Grid(4))
    assert list(map(str, report.differences)) == [
        "grid: static value Grid(4), previously Grid(3)"
    ]


def test_what_xla_cannot_estimate_is_left_out() -> None:
    def fun(x: Any) -> Any:
        shape = verax.ShapeDtypeStruct((), np.float32)
        return verax.pure_callback(lambda a: a, shape, x)

    f = verax.jit(fun)
    f(1.0)
    assert not any(size < 0 for size in f.explain(1.0).stages[-1].sizes.values())


def test_functions_made_anew_are_told() -> None:
    mapped = verax.jit(lambda x, f: f(x), static_argnums=1)
    mapped(1.0, lambda x: x * 2)
    (actual,) = mapped.explain(1.0, lambda x: x * 2).differences
    assert actual.kind == "static identity"
    assert actual.now.startswith(f"<lambda> ({__file__}:")
    mapped(1.0, vnp.sin)
    (actual,) = mapped.explain(1.0, vnp.cos).differences
    assert actual.now.startswith("cos (")


def test_a_keyword_of_the_name_of_a_positional_argument() -> None:
    @verax.jit
    def total(x: Any, /, **others: Any) -> Any:
        return x + others["x"]

    total(1.0, x=2.0)
    assert list(map(str, total.explain(1, x=2.0).differences)) == [
        "x: dtype int32, previously float32"
    ]
    assert list(map(str, total.explain(1.0, x=2).differences)) == [
        "x (by keyword): dtype int32, previously float32"
    ]


def test_methods_and_objects() -> None:
    @frozen
    class Model:
        scale: float

        @functools.partial(verax.jit, static_argnums=0)
        def apply(self, x: Any) -> Any:
            return self.scale * x

        def __call__(self, x: Any) -> Any:
            return self.scale * x

    one, two = Model(2.0), Model(3.0)
    one.apply(1.0)
    report = Model.apply.explain(two, 1.0)
    assert list(map(str, report.differences)) == [
        f"self: static value {two!r}, previously {one!r}"
    ]
    assert verax.jit(one).explain(1.0).function.startswith(f"Model ({__file__}:")
    assert verax.jit(vnp.sin).explain(1.0).signature == "x: weak f32[]"


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (1.0, "weak f32[]"),
        ({"a": [V, None]}, "{'a': [f32[3], None]}"),
        ([V] * 5, "5 arrays"),
        ((), "()"),
        (Pair(V, V), "(f32[3], f32[3])"),
        (Strict(V, "fast"), "(f32[3])"),
    ],
)
def test_arguments_are_shown(x: Any, text: str) -> None:
    assert verax.jit(fun).explain(x).signature == f"x: {text}"


def test_wrong_arguments_are_the_errors_of_the_call() -> None:
    f = verax.jit(lambda x, n: x, static_argnums=1)
    with pytest.raises(TypeError, match=r"argument to <lambda>.*at path x"):
        f.explain("text", 1)
    with pytest.raises(ValueError, match="not hashable"):
        f.explain(1.0, [])
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        f.explain(1.0)


def test_disable_jit_is_said() -> None:
    f = verax.jit(lambda x: x)
    with verax.disable_jit():
        report = f.explain(1.0)
    assert report.verdict == (
        "off: disable_jit is on, so the function runs as plain Python."
    )
    assert not report.hit


@pytest.mark.parametrize("on", [False, True])
def test_the_same_key_in_any_context(on: bool) -> None:
    f, x = verax.jit(lambda x: x + 1), np.ones(3)
    with verax.enable_x64() if on else nullcontext():
        f(x)
        assert f.explain(x).hit
        assert f.explain(x).signature == ("x: f64[3]" if on else "x: f32[3]")
