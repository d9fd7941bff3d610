"""Laws of the stages: a program from a file is the program, and lines change no text.

Random programs with bodies, some of whose inputs are captured arrays.
"""

from typing import Any

from hypothesis import given, settings, strategies as st

import verax
from verax.api.tracing.apply import ENGINE, apply
from verax.backend.eager.interpreter import as_array
from verax.backend.lowering.lower import lower
from verax.backend.lowering.stablehlo_io import parsed
from verax.ops.table import ROWS
from verax.rules.rows.row import NDArray
from verax.stages import deserialize
from verax.verify.cases.case import Case
from verax.verify.random_programs import composable, programs

LOWERED = composable(ROWS, "lower")
few = settings(max_examples=max(4, settings().max_examples // 4))


def same_bits(x: NDArray, y: NDArray) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


@few
@given(programs(LOWERED, most=4), st.integers(0, 2**8 - 1))
def test_a_loaded_program_has_the_same_bits(case: Case, captured: int) -> None:
    jaxpr = case.jaxpr
    pairs = zip(case.values, jaxpr.in_avals, strict=True)
    arrays = [as_array(x, aval) for x, aval in pairs]
    held = [bool(captured >> i % 8 & 1) for i in range(len(arrays))]

    def law(*given: Any) -> Any:
        rest = iter(given)
        xs = [a if h else next(rest) for a, h in zip(arrays, held, strict=True)]
        return tuple(apply(jaxpr, xs))

    args = [a for a, h in zip(arrays, held, strict=True) if not h]
    with verax.enable_x64():  # programs hold types of 64 bits too
        compiled = verax.jit(law).lower(*args).compile()
        if compiled.program.lowered.calls.functions:
            return
        loaded = deserialize(compiled.serialize())
        assert loaded.in_avals == compiled.in_avals
        assert loaded.out_info == compiled.out_info
        expected, actual = compiled(*args), loaded(*args)
    for x, y in zip(actual, expected, strict=True):
        assert x.aval == y.aval
        assert same_bits(x.stored(), y.stored())


@few
@given(programs(LOWERED, most=6))
def test_lines_are_all_that_debug_info_adds(case: Case) -> None:
    plain = lower(ENGINE, case.jaxpr, "law", platforms=("cpu",))
    located = lower(ENGINE, case.jaxpr, "law", platforms=("cpu",), located=True)
    assert located.text.count("\n") == plain.text.count("\n")
    assert str(parsed(located.text)) == str(parsed(plain.text))
    assert (located.constants, located.kept) == (plain.constants, plain.kept)
