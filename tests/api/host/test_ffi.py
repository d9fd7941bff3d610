"""`verax.ffi`: functions in other languages, compiled and called."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jaxlib import lapack

import verax
import verax.numpy as vnp
from docs.examples import rms_norm as example
from verax import ShapeDtypeStruct, ffi
from verax.errors import JaxRuntimeError

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(4, 3, 5)).astype(np.float32)
MATRICES = (lambda a: a @ a.swapaxes(1, 2) + 3 * np.eye(3, dtype=np.float32))(
    RANDOM.normal(size=(4, 3, 3)).astype(np.float32)
)
LOWER = np.uint8(ord("L"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("the example is in C++, and there is no compiler here")
    path = example.compiled(tmp_path_factory.mktemp("library"), compiler)
    example.load(path)
    return path


@pytest.mark.slow(jaxlib=True)
def test_a_function_in_cpp(library: Path) -> None:
    x = vnp.asarray(X)
    want = example.reference(x)
    for f in (example.rms_norm, verax.jit(example.rms_norm)):
        np.testing.assert_allclose(f(x), want, rtol=1e-5)
    mapped = verax.jit(verax.vmap(example.rms_norm, in_axes=1, out_axes=1))
    np.testing.assert_allclose(mapped(x), want, rtol=1e-5)


@pytest.mark.slow(jaxlib=True)
def test_its_own_derivative(library: Path) -> None:
    x, weights = vnp.asarray(X), vnp.arange(5.0)

    def loss(f: Any) -> Any:
        return lambda x: (f(x) ** 2 * weights).sum()

    actual = verax.jit(verax.grad(loss(example.rms_norm)))(x)
    want = verax.grad(loss(example.reference))(x)
    np.testing.assert_allclose(actual, want, rtol=1e-4, atol=1e-5)


@pytest.mark.slow(jaxlib=True)
def test_what_a_function_refuses_is_an_error(library: Path) -> None:
    one = ShapeDtypeStruct((3,), np.float32)
    scalar = ShapeDtypeStruct((), np.float32)
    eps = np.float32(1e-5)
    wrong: list[tuple[Any, Any, dict[str, Any], str]] = [
        (one, vnp.ones(3), {"eps": eps}, "Wrong number of results"),
        ((one, scalar), vnp.ones(3), {}, "Wrong number of attributes"),
        ((one, scalar), vnp.ones(3), {"eps": 1e-5}, "Wrong scalar data type"),
        ((one, scalar), vnp.arange(3), {"eps": eps}, "expected F32 but got S32"),
        ((scalar, scalar), vnp.ones(()), {"eps": eps}, "RmsNorm takes a vector"),
    ]
    for results, x, attributes, message in wrong:
        with pytest.raises(JaxRuntimeError, match=message):
            ffi.ffi_call("rms_norm", results)(x, **attributes)


@pytest.fixture(scope="module")
def potrf() -> str:
    """A routine that jaxlib brings: Cholesky factors in place, stored by columns."""
    name = "verax_test_potrf"
    lapack.prepare_lapack_call("potrf", np.float32)  # finds SciPy's routines
    for target, routine, version in lapack.registrations()["cpu"]:
        if target == "lapack_spotrf_ffi":
            ffi.register_ffi_target(name, routine, api_version=version)
    return name


def cholesky(target: str, method: str | None = None) -> Any:
    def f(x: Any) -> Any:
        stack = tuple(range(x.ndim - 2))
        columns = (*stack, x.ndim - 1, x.ndim - 2)
        call = ffi.ffi_call(
            target,
            [
                ShapeDtypeStruct(x.shape, x.dtype),
                ShapeDtypeStruct(x.shape[:-2], np.int32),
            ],
            vmap_method=method,
            input_layouts=[columns],
            output_layouts=[columns, None],
            input_output_aliases={0: 0},
        )
        return vnp.tril(call(x, uplo=LOWER)[0])

    return f


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize(
    "method",
    [
        "sequential",
        "sequential_unrolled",
        "expand_dims",
        "broadcast_all",
        "legacy_vectorized",
    ],
)
def test_layouts_aliases_and_batches(potrf: str, method: str) -> None:
    want = np.linalg.cholesky(MATRICES)
    f = cholesky(potrf, method)
    np.testing.assert_allclose(f(MATRICES[0]), want[0], rtol=1e-5)
    np.testing.assert_allclose(verax.vmap(f)(MATRICES), want, rtol=1e-5)
    twice = verax.jit(verax.vmap(verax.vmap(f), in_axes=1, out_axes=1))
    pairs = MATRICES.reshape(2, 2, 3, 3)
    np.testing.assert_allclose(twice(pairs), want.reshape(2, 2, 3, 3), rtol=1e-5)


def test_operands_that_are_overwritten_keep_their_values(potrf: str) -> None:
    x = vnp.asarray(MATRICES[0])
    cholesky(potrf)(x)
    np.testing.assert_array_equal(x, MATRICES[0])


def test_containers_of_results(potrf: str) -> None:
    avals = (ShapeDtypeStruct((3, 3), np.float32), ShapeDtypeStruct((), np.int32))
    for kind in (tuple, list):
        assert type(ffi.ffi_call(potrf, kind(avals))(MATRICES[0], uplo=LOWER)) is kind


def test_effects_are_kept_and_others_dropped(potrf: str) -> None:
    avals = [ShapeDtypeStruct((3, 3), np.float32), ShapeDtypeStruct((), np.int32)]

    def f(x: Any, effect: bool) -> Any:
        ffi.ffi_call(potrf, avals, has_side_effect=effect)(x, uplo=LOWER)
        return x

    for effect in (False, True):
        text = verax.jit(f, static_argnums=1).lower(MATRICES[0], effect).as_text()
        assert (potrf in text) == effect


def test_attributes_of_each_type() -> None:
    call = ffi.ffi_call("f", ShapeDtypeStruct((), np.float32))

    def f(x: Any) -> Any:
        return call(
            x,
            number=1,
            real=2.5,
            small=np.float32(1e-5),
            byte=np.uint8(3),
            flag=True,
            word='a "b"\n',
            vector=np.array([1, 2], np.int32),
            matrix=np.array([[0.5, 1.5]]),
            nested={"x": np.int16(1), "y": [1, np.float32(2)]},
        )

    text = str(verax.jit(f).lower(1.0).as_text())
    for actual in (
        "number = 1 : i64",
        "real = 2.500000e+00 : f64",
        "small = 9.99999974E-6 : f32",
        "byte = 3 : ui8",
        "flag = true",
        'word = "a \\22b\\22\\0A"',
        "vector = dense<[1, 2]> : tensor<2xi32>",
        "matrix = dense<[[5.000000e-01, 1.500000e+00]]> : tensor<1x2xf64>",
        "nested = {x = 1 : i16, y = [1, 2.000000e+00 : f32]}",
    ):
        assert actual in text


def test_old_interfaces() -> None:
    one = ShapeDtypeStruct((), np.float32)
    call = ffi.ffi_call(
        "f", one, custom_call_api_version=1, legacy_backend_config="opaque"
    )
    text = str(verax.jit(call).lower(1.0).as_text())
    assert 'backend_config = "opaque"' in text
    with pytest.raises(ValueError, match="attributes requires a custom call API"):
        call(1.0, n=1)
    with pytest.raises(ValueError, match="legacy_backend_config"):
        ffi.ffi_call("f", one, legacy_backend_config="opaque")


def test_no_derivative_and_no_batch_of_its_own() -> None:
    call = ffi.ffi_call("f", ShapeDtypeStruct((), np.float32))
    with pytest.raises(ValueError, match=r"cannot be differentiated.*custom_vjp"):
        verax.grad(call)(1.0)
    with pytest.raises(NotImplementedError, match="vmap_method"):
        verax.vmap(call)(vnp.ones(3))


def test_a_target_that_nobody_registered() -> None:
    call = ffi.ffi_call("nobody_s", ShapeDtypeStruct((), np.float32))
    for f in (call, verax.jit(call)):
        with pytest.raises(JaxRuntimeError, match="nobody_s"):
            f(1.0)


ONE = ShapeDtypeStruct((3, 3), np.float32)


@pytest.mark.parametrize(
    ("results", "options", "message"),
    [
        (3.0, {}, "'shape' and 'dtype'"),
        (ONE, {"vmap_method": "fast"}, "vmap_method must be one of"),
        (ONE, {"input_layouts": []}, "The number of inputs"),
        (ONE, {"output_layouts": (0,)}, "the layout of output 0"),
        (ONE, {"input_layouts": [(0, 0)]}, "the layout of input 0"),
        (ONE, {"input_output_aliases": {1: 0}}, "input index 1 outside the range"),
        (ONE, {"input_output_aliases": {0: -1}}, "output index -1 outside the range"),
        ([ONE], {"output_layouts": [None, None]}, "The number of outputs"),
        (
            ShapeDtypeStruct((3,), np.float32),
            {"input_output_aliases": {0: 0}},
            "different abstract value",
        ),
        (
            ONE,
            {"input_output_aliases": {0: 0}, "input_layouts": [(1, 0)]},
            "a different layout",
        ),
    ],
)
def test_wrong_calls(results: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ffi.ffi_call("f", results, **options)(vnp.ones((3, 3)))


SWAP = """
#include <cstdint>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
using Words = ffi::Buffer<ffi::U32>;
static ffi::Error Run(Words x, ffi::ResultBuffer<ffi::U32> y) {
  if (x.dimensions().back() != 2) return ffi::Error::InvalidArgument("not keys");
  for (size_t i = 0; i < x.element_count(); i += 2) {
    uint32_t first = x.typed_data()[i], second = x.typed_data()[i + 1];
    y->typed_data()[i] = second;  // perhaps where the first one was
    y->typed_data()[i + 1] = first;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Swap, Run, ffi::Ffi::Bind().Arg<Words>().Ret<Words>());
"""
"""A target that swaps the two words of each key."""


@pytest.fixture(scope="module")
def swap(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("the target is in C++, and there is no compiler here")
    folder = tmp_path_factory.mktemp("swap")
    source, library = folder / "swap.cc", folder / "swap.so"
    source.write_text(SWAP)
    flags = ["-std=c++17", "-fPIC", "-shared", f"-I{ffi.include_dir()}"]
    subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
    capsule = ffi.pycapsule(ctypes.CDLL(str(library)).Swap)
    ffi.register_ffi_target("verax_test_swap", capsule)
    return "verax_test_swap"


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize("layout", [None, (1, 0)])
def test_keys_are_words_to_a_target(swap: str, layout: Any) -> None:
    keys = verax.random.split(verax.random.key(0), (2, 3))
    like = ShapeDtypeStruct(keys.shape, keys.dtype)
    f = ffi.ffi_call(
        swap,
        like,
        input_layouts=[layout],
        output_layouts=layout,
        input_output_aliases={0: 0},
    )
    want = np.asarray(verax.random.key_data(keys))[..., ::-1]
    for actual in (f(keys), verax.jit(f)(keys)):
        assert actual.aval == keys.aval
        np.testing.assert_array_equal(verax.random.key_data(actual), want)


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize("method", ["sequential", "broadcast_all", "legacy_vectorized"])
def test_batches_of_keys(swap: str, method: str) -> None:
    keys = verax.random.split(verax.random.key(0), (2, 3))
    f = ffi.ffi_call(swap, ShapeDtypeStruct((2,), keys.dtype), vmap_method=method)
    actual = verax.vmap(f, in_axes=1, out_axes=1)(keys)
    want = np.asarray(verax.random.key_data(keys))[..., ::-1]
    np.testing.assert_array_equal(verax.random.key_data(actual), want)


def test_wrong_attributes_and_targets() -> None:
    call = ffi.ffi_call("f", ShapeDtypeStruct((), np.float32))
    with pytest.raises(TypeError, match=r"the attribute a\[1\] of ffi_call"):
        call(1.0, a=[1, object()])
    with pytest.raises(TypeError, match="strings as names"):
        call(1.0, a={1: 2})
    with pytest.raises(TypeError, match="must be a capsule"):
        ffi.register_ffi_target("f", lambda x: x)
    with pytest.raises(TypeError, match="ctypes"):
        ffi.pycapsule(None)
    with pytest.raises(ValueError, match="null"):
        ffi.pycapsule(0)


@pytest.mark.slow(jaxlib=True)
def test_random_signatures_are_errors() -> None:
    """In a process of its own: a routine that believed them could end it."""
    done = subprocess.run(
        [sys.executable, "-c", WRONG_SIGNATURES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refused, called = map(int, done.stdout.split())
    assert refused > 10
    assert called > 0


WRONG_SIGNATURES = """
import random
import numpy as np
from jaxlib import lapack
import verax
from verax import ShapeDtypeStruct, ffi
lapack.prepare_lapack_call("getrf", np.float32)
names = []
for name, routine, version in lapack.registrations()["cpu"]:
    if version == 1 and name.startswith("lapack_s"):
        ffi.register_ffi_target(name, routine, api_version=version)
        names.append(name)
draw = random.Random(0)
shape = lambda: tuple(draw.choices([0, 1, 2, 3], k=draw.randint(0, 3)))
dtype = lambda: draw.choice([np.float32, np.int32, np.uint8, np.complex64, np.bool_])
values = [np.uint8(76), 5, 2.0, "x", True, np.float32(1)]
options = ["uplo", "diag", "trans_x", "side", "mode", "computation_mode"]
counts = [0, 0]
for _ in range(40):
    args = [np.zeros(shape(), dtype()) for _ in range(draw.randint(0, 3))]
    outs = [ShapeDtypeStruct(shape(), dtype()) for _ in range(draw.randint(0, 3))]
    chosen = {k: draw.choice(values) for k in draw.sample(options, draw.randint(0, 3))}
    try:
        found = ffi.ffi_call(draw.choice(names), outs)(*args, **chosen)
        verax.block_until_ready(found)
        counts[1] += 1
    except verax.errors.ExecutionError:
        counts[0] += 1
print(*counts)
"""
