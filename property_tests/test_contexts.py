"""The configuration leaves no trace: what was made under one option, or under other
named axes, is never found under another.

Rows of the library read no configuration at all, so their programs are the same under
each option; functions and rules of the user's mean what is in force where they are
called, whatever the process did before.
"""

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import verax
import verax.numpy as vnp
from property_tests.levels import NIGHTLY, by_turns, crossed
from verax import lax
from verax.api.config.config import option_block
from verax.api.tracing.apply import ENGINE
from verax.backend.lowering.lower import lower
from verax.errors import KeyReuseError
from verax.experimental.xla_metadata import set_xla_metadata
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ops.table import PRIMITIVES
from verax.rules.rows.row import MissingRule, Sample
from verax.rules.values.state import NAMES, changing, widths_of
from verax.verify.cases.case import traced
from verax.verify.cases.nested import DRAWS
from verax.verify.strategies import samples

type Option = Callable[[], AbstractContextManager[Any]]

SCALE = verax.make_user_context(1.0)
DRAWN: Mapping[str, tuple[str, Option]] = {
    "x64": ("enable_x64", lambda: verax.enable_x64(True)),
    "matmul": (
        "default_matmul_precision",
        lambda: verax.default_matmul_precision("bfloat16"),
    ),
    "promotion": (
        "numpy_dtype_promotion",
        lambda: verax.numpy_dtype_promotion("strict"),
    ),
    "keys": ("default_prng_impl", lambda: verax.default_prng_impl("rbg")),
    "nans": ("debug_nans", lambda: verax.debug_nans(True)),
    "mesh": ("mesh", lambda: verax.make_mesh((1,), ("i",))),
    "device": ("default_device", lambda: verax.default_device(verax.devices()[0])),
    "eager": ("disable_jit", lambda: verax.disable_jit(True)),
    "infinities": ("debug_infs", lambda: verax.debug_infs(True)),
    "leaks": ("check_tracer_leaks", lambda: verax.check_tracer_leaks(True)),
    "effort": ("compile_effort", lambda: option_block({"compile_effort": "fast"})),
    "calls": ("calls", lambda: option_block({"calls": "keep"})),
    "cpu_lowerings": (
        "cpu_lowerings",
        lambda: option_block({"cpu_lowerings": "xla"}),
    ),
    "ranks": ("numpy_rank_promotion", lambda: verax.numpy_rank_promotion("raise")),
    "indices": (
        "check_static_indices",
        lambda: option_block({"check_static_indices": True}),
    ),
    "widths": ("explicit_x64_dtypes", lambda: verax.explicit_x64_dtypes("error")),
    "raw keys": ("legacy_prng_key", lambda: verax.legacy_prng_key("error")),
    "typed keys": ("enable_custom_prng", lambda: verax.enable_custom_prng(True)),
    "seeds": ("random_seed_offset", lambda: option_block({"random_seed_offset": 7})),
    "halves": ("threefry_partitionable", lambda: verax.threefry_partitionable(False)),
    "casts": ("auto_pcast", lambda: verax.auto_pcast(False)),
    "unit axes": (
        "remove_size_one_mesh_axis_from_type",
        lambda: verax.remove_size_one_mesh_axis_from_type(True),
    ),
    "reuse": ("debug_key_reuse", lambda: verax.debug_key_reuse(True)),
    "execution": ("no_execution", lambda: verax.no_execution(True)),
    "user": ("user_contexts", lambda: SCALE(3.0)),
    "metadata": ("xla_metadata", lambda: set_xla_metadata(a="b")),
    "runtime errors": (
        "experimental_unsafe_xla_runtime_errors",
        lambda: option_block({"experimental_unsafe_xla_runtime_errors": True}),
    ),
    "checks": ("checking", lambda: changing({"checking": True})),
}
"""The blocks, with the attribute of the state that each sets."""
OPTIONS: Mapping[str, Option] = {
    "nothing": nullcontext,
    **{name: block for name, (_, block) in DRAWN.items()},
}
ELSEWHERE = {
    "axes": "test_rules_divide_by_the_size_of_the_axis",
    "tracked": "tests/placement/cases_varying.py",
    "forked": "tests/robustness/test_forks.py",
}
"""What is not an option, and where it varies."""


def test_each_setting_that_tracing_reads_is_drawn() -> None:
    drawn = [attribute for attribute, _ in DRAWN.values()]
    assert sorted([*drawn, *ELSEWHERE]) == sorted(NAMES)


def programs(jaxpr: Jaxpr) -> list[str]:
    """What every transformation makes of a program, as text."""
    active = tuple([is_inexact(v.aval.dtype) for v in jaxpr.invars])
    axes = (0,) * len(jaxpr.invars)
    made: list[Callable[[], object]] = [
        lambda: ENGINE.jvp(jaxpr, active),
        lambda: ENGINE.linearize(jaxpr, active),
        lambda: ENGINE.batch(jaxpr, 3, axes),
        lambda: pulled(jaxpr, active),
        lambda: lower(ENGINE, jaxpr, "f", platforms=("cpu",)).text,
    ]
    actual = []
    for make in made:
        try:
            actual.append(repr(make()))
        except (MissingRule, TypeError, ValueError) as error:
            actual.append(f"{type(error).__name__}: {error}")
    return actual


def pulled(jaxpr: Jaxpr, active: tuple[bool, ...]) -> object:
    """The backward program."""
    _, tangent, mask = ENGINE.linearize(jaxpr, active)
    count = len(tangent.invars) - sum(active)
    linear = tuple([i >= count for i in range(len(tangent.invars))])
    return ENGINE.transpose(tangent, linear, (True,) * sum(mask))


SAMPLED = [name for name, row in sorted(PRIMITIVES.items()) if row.draw or row in DRAWS]


@pytest.mark.parametrize("name", SAMPLED)
def test_rows_of_the_library_read_no_configuration(name: str) -> None:
    @settings(max_examples=max(3, settings().max_examples // 10))
    @given(samples(PRIMITIVES[name]), st.sampled_from(sorted(OPTIONS)))
    def check(sample: Sample[Any], option: str) -> None:
        with widths_of([aval.dtype for aval in sample.avals]):
            jaxpr = traced(PRIMITIVES[name], sample)
        dtypes = [v.aval.dtype for v in (*jaxpr.invars, *jaxpr.outvars)]
        with widths_of(dtypes):
            expected = programs(jaxpr)
        with OPTIONS[option](), widths_of(dtypes, option == "x64"):
            assert programs(jaxpr) == expected

    check()


MATRIX = vnp.array([[4.0, 1.0], [1.0, 3.0]])
LINALG: Mapping[str, Callable[[Any], Any]] = {
    "cholesky": lambda a: vnp.linalg.cholesky(a),
    "qr": lambda a: vnp.linalg.qr(a)[1],
    "svd": lambda a: vnp.linalg.svd(a)[0],
    "eigh": lambda a: vnp.linalg.eigh(a)[1],
    "eigvals": lambda a: vnp.linalg.eigvals(a).real,
    "lu": lambda a: lax.linalg.lu(a)[0],
    "inv": vnp.linalg.inv,
    "det": vnp.linalg.det,
    "triangular_solve": lambda a: lax.linalg.triangular_solve(a, a),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "option"), crossed(LINALG, ["matmul", "promotion", "keys", "mesh"], 4)
)
def test_derivatives_of_factorisations_read_no_configuration(
    name: str, option: str
) -> None:
    def shown() -> list[str]:
        f = LINALG[name]
        made = (verax.jacfwd(f), verax.jacrev(f), verax.vmap(f))
        stacks = (MATRIX, MATRIX, MATRIX[None])
        return [repr(verax.make_jaxpr(g)(x)) for g, x in zip(made, stacks, strict=True)]

    expected = shown()
    verax.clear_caches()
    with OPTIONS[option]():
        assert shown() == expected
    assert shown() == expected


def read_options(x: Any) -> Any:
    """A function whose program, or whose values, show what is in force."""
    matrix = vnp.broadcast_to(x, (2, 2))
    key = verax.random.key(0)
    words = verax.random.key_data(key).size
    try:
        promoted = (x.astype(vnp.float32) + vnp.ones((), vnp.int32)).sum()
    except TypeError:
        promoted = 0.5
    wide = vnp.zeros((), float).dtype.itemsize
    shown = (matrix @ matrix).sum() * 0 + words + promoted + wide
    return x * 0 + shown + sum([1.5**i * tried(f) for i, f in enumerate(READS)])


def twice() -> Any:
    """A key used twice."""
    key = verax.random.key(3)
    return verax.random.uniform(key) * 0 + verax.random.uniform(key) * 0


READS: tuple[Callable[[], Any], ...] = (
    lambda: (vnp.ones(2) + vnp.ones((1, 2))).size,
    lambda: vnp.ones(2)[5],
    lambda: vnp.zeros((), "float64").size,
    lambda: verax.random.uniform(vnp.zeros(2, vnp.uint32)) * 0,
    lambda: verax.random.PRNGKey(0).ndim,
    lambda: verax.random.key_data(verax.random.key(2)).sum() % 97,
    lambda: SCALE.value,
    twice,
)
"""What shows an option by its value, or by an error."""


def tried(read: Callable[[], Any]) -> Any:
    """What is read, or a number that stands for the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return vnp.asarray(read()).astype(vnp.float32)
        except (TypeError, ValueError, IndexError, KeyReuseError):
            return 0.25


def by_jvp() -> Callable[[Any], Any]:
    f = verax.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda p, t: (f(*p), t[0] * read_options(p[0])))
    return verax.grad(f)


def by_vjp() -> Callable[[Any], Any]:
    f = verax.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * read_options(x),))
    return verax.grad(f)


def by_gradient() -> Callable[[Any], Any]:
    f = verax.custom_gradient(lambda x: (x * 2, lambda ct: ct * read_options(x)))
    return verax.grad(f)


def by_vmap() -> Callable[[Any], Any]:
    f = verax.custom_batching.custom_vmap(lambda x: x * 2)
    f.def_vmap(lambda size, batched, x: (x * verax.vmap(read_options)(x), True))
    return lambda x: verax.vmap(f)(vnp.stack([x, x])).sum()


def by_body() -> Callable[[Any], Any]:
    def step(c: Any, _: Any) -> Any:
        return c * read_options(c), None

    return lambda x: lax.scan(step, x, None, length=2)[0]


def by_branch() -> Callable[[Any], Any]:
    return lambda x: lax.cond(x > 0, read_options, lambda y: y, x)


def by_checkpoint() -> Callable[[Any], Any]:
    return verax.grad(verax.checkpoint(lambda x: (x * read_options(x)).sum()))


def by_jit() -> Callable[[Any], Any]:
    return verax.jit(read_options)


MAKERS = (
    *(by_jvp, by_vjp, by_gradient, by_vmap),
    *(by_body, by_branch, by_checkpoint, by_jit),
)
SHOWN = ("nothing", "x64", "matmul", "promotion", "keys")
ALONE = ("ranks", "indices", "raw keys", "typed keys", "seeds", "user")
"""Options that show in the program, each by itself."""


def outcome(f: Callable[[Any], Any]) -> tuple[str, str]:
    """The program of a function, and its value."""
    x = vnp.float32(1.0)
    try:
        value = repr(f(x))
    except (RuntimeError, KeyReuseError) as error:
        value = type(error).__name__
    return repr(verax.make_jaxpr(f)(x)), value


@pytest.mark.slow
@pytest.mark.parametrize("make", by_turns(MAKERS, 2, NIGHTLY))
def test_rules_of_users_mean_what_is_in_force(make: Callable[[], Any]) -> None:
    fresh = {}
    for name in SHOWN:
        verax.clear_caches()
        with OPTIONS[name]():
            fresh[name] = outcome(make())
    assert len(set(fresh.values())) > 2, "the function shows its configuration"
    shared = make()
    for first, second in permutations(SHOWN, 2):
        for name in (first, second):
            with OPTIONS[name]():
                assert outcome(shared) == fresh[name], (first, second)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "option"),
    crossed(MAKERS, [name for name in DRAWN if name not in SHOWN], 8),
)
def test_each_option_is_left_as_if_it_had_never_been(
    make: Callable[[], Any], option: str
) -> None:
    fresh = {}
    for name in ("nothing", option):
        verax.clear_caches()
        with OPTIONS[name]():
            fresh[name] = outcome(make())
    assert option not in ALONE or fresh["nothing"] != fresh[option]
    for order in (("nothing", option), (option, "nothing")):
        shared = make()
        for name in (*order, order[0]):
            with OPTIONS[name]():
                assert outcome(shared) == fresh[name], order


def over_axis(rule: Callable[[Any], Any]) -> list[Callable[[Any], Any]]:
    """Functions with rules of each kind that read the axis, elementwise."""

    def jvp(x: Any) -> Any:
        return first(x)

    first = verax.custom_jvp(lambda x: x * 1)
    first.defjvp(lambda p, t: (first(*p), rule(t[0])))
    second = verax.custom_vjp(lambda x: x * 1)
    second.defvjp(lambda x: (second(x), None), lambda _, ct: (rule(ct),))
    third = verax.custom_gradient(lambda x: (x * 1, rule))
    fourth = verax.custom_batching.custom_vmap(lambda x: x * 1)
    return [verax.grad(jvp), verax.grad(second), verax.grad(third), fourth]


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize(
    "rule",
    [lambda t: t / lax.axis_size("i"), lambda t: t / lax.psum(1, "i")],
    ids=["axis_size", "psum"],
)
def test_rules_divide_by_the_size_of_the_axis(
    which: int, rule: Callable[[Any], Any]
) -> None:
    f = over_axis(rule)[which]
    for wrap in (lambda g: g, verax.jit):
        for size in (4, 8, 2, 8, 4):
            actual = wrap(verax.vmap(f, axis_name="i"))(vnp.ones(size))
            assert actual.tolist() == [1 / size] * size
    nested = verax.vmap(verax.vmap(f, axis_name="i"))(vnp.ones((3, 5)))
    assert nested.shape == (3, 5)
    assert float(nested[0, 0]) == pytest.approx(0.2)


def test_batching_rules_read_the_axis() -> None:
    f = verax.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(lambda size, batched, x: (x / lax.axis_size("j"), True))
    for size in (4, 8, 4):
        inner = verax.vmap(lambda row: verax.vmap(f)(row), axis_name="j")
        actual = inner(vnp.ones((size, 3)))
        assert actual.tolist() == [[1 / size] * 3] * size
