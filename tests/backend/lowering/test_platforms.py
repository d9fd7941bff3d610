"""A row may lower differently on each platform; a module is for one, or for several."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import verax
import verax.numpy as vnp
from verax import lax
from verax.api.tracing.apply import ENGINE
from verax.backend.lowering.lower import lower
from verax.backend.lowering.stablehlo_io import parsed
from verax.extend import MissingRule, Row, composed, composite, elementwise
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.rules.rows.emitter import PLATFORMS, Emitter, Operand, by_platform

X = np.arange(4, dtype=np.float32)
type Avals = Sequence[ShapedArray]


def writes(operation: str) -> Any:
    """A rule that writes one operation on its operand, twice."""

    def rule(
        e: Emitter, p: Any, xs: Sequence[Operand], outs: Avals
    ) -> Sequence[Operand]:
        return e.op(f"stablehlo.{operation}", (xs[0], xs[0]), outs)

    return rule


def reads_platform(
    e: Emitter, p: Any, xs: Sequence[Operand], outs: Avals
) -> Sequence[Operand]:
    """On a GPU the product with itself, elsewhere the sum."""
    name = "multiply" if e.platform == "cuda" else "add"
    return e.op(f"stablehlo.{name}", (xs[0], xs[0]), outs)


def doubling(**columns: Any) -> Row[NoParams]:
    """A row that doubles, with these columns for its lowering."""
    return Row(
        "doubling",
        NoParams,
        typing=lambda p, avals: avals,
        evaluate=lambda engine, p, xs: (xs[0] + xs[0],),
        **columns,
    )


def text_of(row: Row[NoParams], *platforms: str, around: Any = None) -> str:
    """The module of two equal calls of a row, checked by MLIR."""

    def f(x: Any) -> Any:
        return row.call(NO_PARAMS, row.call(NO_PARAMS, x))

    traced = verax.jit(around(f) if around else f).trace(X)
    lowered = traced.lower(lowering_platforms=platforms)
    lowered.compiler_ir()
    return lowered.module.text


def test_rules_by_platform() -> None:
    assert dict(by_platform({"gpu": 1, "cuda": 2, "cpu": 0})) == {
        "cuda": 2,
        "rocm": 1,
        "cpu": 0,
    }
    with pytest.raises(ValueError, match=r"lower_on takes rules for cpu.*not 'abacus'"):
        doubling(lower_on={"abacus": writes("add")})
    rules = {"cpu": writes("add")}
    row = doubling(lower_on=rules)
    rules["cuda"] = writes("add")
    assert list(row.lower_on) == ["cpu"]
    with pytest.raises(TypeError):
        row.lower_on["cuda"] = rules["cuda"]  # type: ignore[index]  # read-only


def test_a_platform_has_its_own_rule_or_the_common_one() -> None:
    row = doubling(lower=writes("add"), lower_on={"gpu": writes("multiply")})
    for platform in PLATFORMS:
        text = text_of(row, platform)
        counts = text.count("stablehlo.add"), text.count("stablehlo.multiply")
        assert counts == ((0, 2) if platform in ("cuda", "rocm") else (2, 0))


@pytest.mark.parametrize("first", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "row",
    [
        doubling(lower=writes("add"), lower_on={"cuda": writes("multiply")}),
        doubling(lower=reads_platform),
    ],
)
def test_equal_jaxprs_for_two_platforms_in_one_process(
    row: Row[NoParams], first: str
) -> None:
    other = {"cpu": "cuda", "cuda": "cpu"}[first]
    texts = {p: text_of(row, p) for p in (first, other, first, other)}
    assert "multiply" not in texts["cpu"]
    assert "stablehlo.add" not in texts["cuda"]
    swapped = texts["cuda"].replace("stablehlo.multiply", "stablehlo.add")
    assert swapped == texts["cpu"]


def test_no_lowering_for_a_platform() -> None:
    row = doubling(lower_on={"cpu": writes("add")})
    assert verax.jit(lambda x: row.call(NO_PARAMS, x))(X).tolist() == [0, 2, 4, 6]
    message = r"doubling has no lowering for tpu; .*lower_on=\{'tpu': .*test_platforms"
    with pytest.raises(MissingRule, match=message):
        text_of(row, "tpu")
    with pytest.raises(MissingRule, match="for cuda"):
        text_of(row, "cpu", "cuda")
    # Without any lowering, the host is called where a program can do that.
    assert "xla_ffi_python_cpu_callback" in text_of(doubling(), "cpu")
    assert "xla_ffi_python_gpu_callback" in text_of(doubling(), "rocm")
    with pytest.raises(MissingRule, match="doubling has no lowering for tpu"):
        text_of(doubling(), "tpu")


def test_what_a_composition_serves() -> None:
    row = composite("thrice", NoParams, lambda p, x: x + x + x)
    row = evolve(row, lower_on={"cuda": writes("multiply")})
    assert text_of(row, "tpu").count("stablehlo.add") == 4
    assert text_of(row, "cuda").count("stablehlo.multiply") == 2


def test_elementwise_rows_take_rules_by_platform() -> None:
    row = elementwise(
        "square_of",
        np.square,
        lower=composed(vnp.square),
        lower_on={"gpu": composed(lambda x: x**3.0)},
    )
    assert text_of(row, "cpu") != text_of(row, "cuda") == text_of(row, "rocm")
    assert verax.jit(lambda x: row.call(NO_PARAMS, x))(X).tolist() == [0, 1, 4, 9]


def looped(f: Any) -> Any:
    """`f` in a scan, a loop, a branch and a function of its own."""

    def around(x: Any) -> Any:
        x, _ = lax.scan(lambda c, _: (f(c), None), x, None, length=2)
        x = lax.while_loop(lambda c: c.sum() < 9, lambda c: f(c) + 1, x)
        return lax.cond(x.sum() > 0, verax.jit(f), lambda y: y, x)

    return around


ROWS = [
    doubling(lower=writes("add"), lower_on={"cuda": writes("multiply")}),
    doubling(lower=reads_platform),
    doubling(),
]


@pytest.mark.parametrize("around", [None, looped, verax.grad])
@pytest.mark.parametrize("row", ROWS)
def test_a_module_for_several_platforms(row: Row[NoParams], around: Any) -> None:
    if around is verax.grad:
        derived: Any = evolve(
            row, jvp=lambda engine, p, xs, ts: (row.bind(p, *xs), row.bind(p, *ts))
        )
        derived = evolve(derived, transpose=lambda engine, p, cts, xs: (cts[0] * 2,))
        row = derived
        around = lambda f: lambda x: verax.vjp(f, x)[1](x)[0] + f(x)  # noqa: E731
    both = text_of(row, "cuda", "tpu" if row.lower else "cpu", around=around)
    head = both[both.index("@main(") :]
    assert head.startswith('@main(%platform: tensor<i32> {jax.global_constant = "_plat')
    assert "stablehlo.case" in both
    for platform in ("cuda", "tpu" if row.lower else "cpu"):
        assert "%platform" not in text_of(row, platform, around=around)


def test_several_platforms_that_lower_alike_have_one_module() -> None:
    traced = verax.jit(vnp.sin).trace(X)
    texts = [
        traced.lower(lowering_platforms=platforms).as_text()
        for platforms in (("cpu",), ("cpu", "cuda", "rocm", "tpu"), ("tpu", "tpu"))
    ]
    assert len(set(texts)) == 1


@pytest.mark.parametrize("row", ROWS)
def test_a_program_for_several_platforms_runs_here(row: Row[NoParams]) -> None:
    traced = verax.jit(looped(lambda x: row.call(NO_PARAMS, x))).trace(X)
    compiled = traced.lower(lowering_platforms=("cuda", "cpu")).compile()
    assert compiled(X).tolist() == looped(lambda x: x + x)(vnp.asarray(X)).tolist()


def test_ordered_effects_in_a_module_for_several_platforms() -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            verax.experimental.io_callback(
                lambda v: seen.append(float(v)), None, c, ordered=True
            )
            return c + 1, None

        return lax.scan(body, lax.scan(body, x, None, length=2)[0], None, length=2)[0]

    lowered = verax.jit(f).trace(0.0).lower(lowering_platforms=("cuda", "cpu"))
    lowered.compiler_ir()
    assert float(lowered.compile()(0.0)) == 4
    verax.effects_barrier()
    assert seen == [0, 1, 2, 3]


def test_the_lines_of_the_user_in_a_module_for_several_platforms() -> None:
    traced = verax.jit(looped(lambda x: ROWS[0].call(NO_PARAMS, x))).trace(X)
    both = traced.lower(lowering_platforms=("cpu", "cuda"))
    marked = both.as_text(debug_info=True)
    assert "test_platforms.py" in marked
    assert str(parsed(marked)) == str(both.compiler_ir())


def test_lowering_says_its_platforms() -> None:
    jaxpr = verax.make_jaxpr(lambda x: ROWS[0].call(NO_PARAMS, x))(X).jaxpr
    one = lower(ENGINE, jaxpr, "f", platforms=("cuda",))
    assert (one.platforms, one.takes_platform) == (("cuda",), False)
    two = lower(ENGINE, jaxpr, "f", platforms=("cuda", "cpu"))
    assert (two.platforms, two.takes_platform) == (("cuda", "cpu"), True)
    assert two.text.index("multiply") < two.text.index("stablehlo.add")
