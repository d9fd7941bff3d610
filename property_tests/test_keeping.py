"""The law of programs in two halves: what one keeps, the other reads.

`kept_apart` asks a verdict of each equation, also inside of loops and choices; here it
is drawn. Together the halves do what the program does, to the bit, and the second one
computes nothing that the first has kept.
"""

from collections.abc import Callable, Iterator
from zlib import crc32

from hypothesis import given, settings, strategies as st

from property_tests.test_nan_finding import NESTED, same_bits
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ir.reports.check import check_jaxpr
from verax.ops.calls.call import inline
from verax.ops.calls.keeping import Keeping, kept_apart
from verax.rules.rows.infer import inferred
from verax.transforms.engine.engine import STANDARD
from verax.verify.cases.case import Case
from verax.verify.random_programs import programs


def drawn(seed: int) -> Callable[[Eqn], bool]:
    """A verdict on equations, which also what was written again keeps."""

    def verdict(eqn: Eqn) -> bool:
        if isinstance(eqn.params, Keeping):
            return False
        text = f"{seed} {eqn.primitive.name} {[a.aval.shape for a in eqn.invars]}"
        return bool(eqn.effects) or crc32(text.encode()) % 3 == 0

    return verdict


def asked(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """The equations of which a verdict is asked."""
    for eqn in jaxpr.eqns:
        yield eqn
        if isinstance(eqn.params, Keeping):
            for body in eqn.params.subjaxprs():
                yield from asked(inline(body))


@settings(max_examples=max(10, settings().max_examples // 2))
@given(programs(NESTED), st.integers(0, 1 << 16))
def test_halves_are_the_program(case: Case, seed: int) -> None:
    jaxpr, verdict = inline(case.jaxpr), drawn(seed)
    both = kept_apart(jaxpr, verdict)
    for half in (both.writer, both.reader):
        check_jaxpr(half, inferred)
    assert not any([verdict(eqn) for eqn in asked(both.reader) if eqn.outvars])
    values = [stack[0] for stack in case.stacks]
    due = STANDARD.evaluate(jaxpr, values)
    outs = STANDARD.evaluate(both.writer, values)
    own, kept = outs[: len(due)], outs[len(due) :]
    assert len(kept) == len(both.verdicts) == len(both.kept)
    again = STANDARD.evaluate(both.reader, [*values, *kept])
    for x, y, z in zip(due, own, again, strict=True):
        assert same_bits(x, y)
        assert same_bits(x, z)
