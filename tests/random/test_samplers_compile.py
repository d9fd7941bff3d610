"""Samplers compile, in whatever way their samples are used."""

from collections.abc import Callable
from threading import Event

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import random
from verax.ops.random.threefry import threefry2x32
from verax.rules.values.array import Array
from verax.verify.checking.report import (
    CompiledTooLarge,
    CompilesTooLong,
    check_rotations,
    check_size,
    in_time,
)

type Draw = Callable[[Array], Array]

DRAWS: dict[str, Draw] = {
    "normal": lambda key: random.normal(key, (2,)),
    "truncated": lambda key: random.truncated_normal(key, -1.0, 1.0, (2,)),
    "of 8 bits": lambda key: random.normal(key, (2,), vnp.float8_e4m3fn),
    "complex": lambda key: random.normal(key, (2,), vnp.complex64),
    "folded": lambda key: random.normal(random.fold_in(key, 3), (2,)),
    "split again": lambda key: random.normal(random.split(random.split(key)[0])[1], 2),
    "uniform": lambda key: random.uniform(key, (2,)),
    "bits of 8": lambda key: random.bits(key, (2,), vnp.uint8),
    "randint": lambda key: random.randint(key, (2,), 0, 1000),
    "laplace": lambda key: random.laplace(key, (2,)),
    "gumbel": lambda key: random.gumbel(key, (2,)),
    "bernoulli": lambda key: random.bernoulli(key, 0.3, (2,)),
}
USES: dict[str, Callable[[Draw], Draw]] = {
    "slices": lambda draw: lambda key: verax.vmap(draw)(random.split(key, 8))[:, 0],
    "inner": lambda draw: verax.vmap(lambda key: draw(key)[0]),
    "gathers": lambda draw: lambda key: draw(key)[vnp.array([1, 0, 1])],
}


def optimised(f: Callable[..., Array], *args: Array) -> str:
    """The optimised program, in one piece; without LLVM's part, which might not end."""
    lowered = verax.jit(f, calls="inline").lower(*args)
    return lowered.compile({"xla_backend_optimization_level": 0}).as_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWS)
def test_one_loop_holds_one_hash(name: str) -> None:
    draw = USES["slices"](DRAWS[name])
    check_rotations(optimised(draw, random.key(0)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "uniform", "folded", "bits of 8"])
def test_a_longer_hash_takes_two_loops(name: str) -> None:
    key = random.key(0, impl="threefry4x32")
    check_rotations(optimised(USES["slices"](DRAWS[name]), key))


def test_hashes_of_words_stay_apart() -> None:
    def f(x: Array) -> Array:
        a, b = threefry2x32(x, x, x, x)
        return vnp.log1p(threefry2x32(a, b, b, a)[0].astype(float))[::2]

    check_rotations(optimised(f, vnp.arange(8, dtype=vnp.uint32)))


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", ["normal", "truncated", "of 8 bits", "folded"])
def test_samples_are_the_same_however_they_are_used(name: str, use: str) -> None:
    draw, key = USES[use](DRAWS[name]), random.key(5)
    given = random.split(key, 8) if use == "inner" else key
    compiled = verax.jit(draw)(given)
    np.testing.assert_allclose(
        np.asarray(compiled, np.float32), np.asarray(draw(given), np.float32), 1e-5
    )


def test_large_draws_of_8_bits_compile() -> None:
    def draw(key: Array) -> Array:
        return random.normal(key, (3, 128, 64), vnp.float8_e4m3fn)

    eager, compiled = (np.asarray(f(random.key(0))) for f in (draw, verax.jit(draw)))
    np.testing.assert_array_equal(eager.view(np.uint8), compiled.view(np.uint8))


def chained(x: Array) -> Array:
    """As many rounds as two hashes have, in one loop."""
    a, b = x, x + 1
    for _ in range(40):
        a = a + b
        b = ((b << 13) | (b >> 19)) ^ a
    return a ^ b


def test_what_may_not_end_is_found_without_compiling_it() -> None:
    text = optimised(chained, vnp.arange(64, dtype=vnp.uint32))
    with pytest.raises(CompiledTooLarge, match="40 shifts in one loop"):
        check_rotations(text)


def test_what_fusions_repeat_is_found() -> None:
    text = optimised(lambda x: vnp.sin(x) + 1, vnp.ones(3))
    check_size(2, text)
    with pytest.raises(CompiledTooLarge, match="1 operations became 2000 instructions"):
        check_size(1, "  %a = f32[] add(%b, %c)\n" * 2000)


def test_a_clock_says_what_does_not_end() -> None:
    waits = Event()
    with pytest.raises(CompilesTooLong, match="not compiled within"):
        in_time(lambda: waits.wait(), seconds=0.0)
    waits.set()
    assert in_time(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        in_time(lambda: 1 // 0)
    with verax.enable_x64(True):
        assert in_time(lambda: vnp.ones(()).dtype) == np.float64
