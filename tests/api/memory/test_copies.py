"""The copies that are counted on a CPU: layouts of convolutions, operands of sums."""

from typing import Any

import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.ir.jaxpr import Jaxpr
from verax.transforms.memory.alive import program_on_cpu
from verax.transforms.memory.copies import timeline_on_cpu
from verax.transforms.memory.storage import Timeline, flat

IMAGE = verax.ShapeDtypeStruct((4, 16, 16, 8), vnp.float32)
KERNEL = verax.ShapeDtypeStruct((3, 3, 8, 8), vnp.float32)
BYTES = 4 * 16 * 16 * 8 * 4


def program(f: Any, *types: Any) -> Jaxpr:
    jaxpr: Jaxpr = verax.jit(f).trace(*types).traced.jaxpr
    return flat(jaxpr)


def convolved(x: Any, k: Any, names: tuple[str, str, str]) -> Any:
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=names)


def peaks(jaxpr: Jaxpr) -> tuple[int, int]:
    """The bytes without copies, and with those for other layouts."""
    return Timeline.of(jaxpr).peak, timeline_on_cpu(jaxpr, sums=False).peak


def test_channels_last_are_not_copied() -> None:
    def f(x: Any, k: Any) -> Any:
        return vnp.exp(convolved(x * 2, k, ("NHWC", "HWIO", "NHWC")))

    before, after = peaks(program(f, IMAGE, KERNEL))
    assert before == after


def test_an_operand_in_another_layout_is_copied() -> None:
    """The copy of an input is made at the start, and takes its bytes."""

    def f(x: Any, k: Any) -> Any:
        return convolved(x, k, ("CHWN", "HWIO", "NHWC"))

    given = verax.ShapeDtypeStruct((8, 16, 16, 4), vnp.float32)
    jaxpr = program(f, given, KERNEL)
    before, after = peaks(jaxpr)
    assert (before, after) == (0, BYTES)
    (copy,) = timeline_on_cpu(jaxpr, sums=False).steps[0].writes
    assert copy not in {v for eqn in jaxpr.eqns for v in eqn.outvars}
    held = program_on_cpu(jaxpr, sums=False).held(0)
    assert [one.bytes for one in held] == [BYTES]


def test_a_copy_waits_for_the_gradient_of_a_kernel() -> None:
    """The operand is read by others too, so that it and its copy are kept."""

    def loss(kernels: Any, x: Any) -> Any:
        for k in kernels:
            x = vnp.tanh(x + convolved(x, k, ("NHWC", "HWIO", "NHWC")))
        return vnp.sum(x**2)

    before, after = peaks(program(verax.grad(loss), [KERNEL] * 6, IMAGE))
    assert after >= before + 5 * BYTES


@pytest.mark.parametrize("barrier", [False, True])
def test_copies_behind_a_barrier_are_late(barrier: bool) -> None:
    """Right after the operand is made, or right before the convolution."""

    def f(x: Any, k: Any) -> Any:
        early = x @ vnp.ones((4, 4))
        total = vnp.sum(vnp.sin(early @ vnp.ones((4, 64))) @ vnp.ones((64, 4)))
        late = lax.optimization_barrier((early, total))[0] if barrier else early
        return total, convolved(late, k, ("CHWN", "HWIO", "NHWC"))

    given = verax.ShapeDtypeStruct((8, 16, 16, 4), vnp.float32)
    jaxpr = program(f, given, KERNEL)
    steps = timeline_on_cpu(jaxpr, sums=False).steps
    known = {v for eqn in jaxpr.eqns for v in eqn.outvars}
    (copy,) = [i for i, step in enumerate(steps) if step.writes[0] not in known]
    names = [step.eqn.primitive.name for step in steps]
    if barrier:
        assert copy == len(steps) - 2
    else:
        assert copy == names.index("dot_general") + 1
    assert names[-1] == "conv_general_dilated"


def test_numbers_and_deviations_are_arrays_for_sums() -> None:
    def loss(x: Any) -> Any:
        for _ in range(3):
            centred = x - vnp.mean(x, -1, keepdims=True)
            x = vnp.tanh(centred * lax.rsqrt(vnp.mean(centred**2, -1, keepdims=True)))
        return vnp.sum(x**2)

    jaxpr = program(verax.grad(loss), IMAGE)
    without, with_sums = (timeline_on_cpu(jaxpr, sums=s).peak for s in (False, True))
    assert with_sums >= without + 2 * BYTES
