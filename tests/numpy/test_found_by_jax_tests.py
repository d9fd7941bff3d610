"""What JAX's own tests found in verax: `make jax-tests`."""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, nn
from verax.errors import ConcretizationTypeError
from verax.scipy import linalg, special
from verax.scipy.ndimage import map_coordinates
from verax.scipy.optimize import minimize


class Wrapped:
    """An object that is no array, but says how it becomes one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __jax_array__(self) -> Any:
        return vnp.asarray(self.value)


def test_the_largest_of_numpy_arrays_along_an_axis() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    values, places = lax.top_k(x, 2, axis=0)
    assert values.tolist() == [[8, 9, 10, 11], [4, 5, 6, 7]]
    assert places.tolist() == [[2] * 4, [1] * 4]
    with pytest.raises(
        ValueError, match=r"no larger than size along axis; got k=4 .* axis=0"
    ):
        lax.top_k(x, 4, axis=0)


def test_gradients_of_pseudo_inverses_with_equal_singular_values() -> None:
    # Those of jax 0.12; by singular vectors they would be NaN.
    slope = verax.jacobian(vnp.linalg.pinv)(vnp.eye(2))
    assert slope.tolist() == (-np.eye(4).reshape(2, 2, 2, 2)).tolist()
    curvature = verax.hessian(lambda x: vnp.linalg.pinv(x).sum())(2.0 * vnp.eye(2))
    assert np.allclose(np.asarray(curvature)[0, 0], [[0.25, 0.125], [0.125, 0]])
    singular = np.array([[1, 2], [2, 4]], np.float32)
    t = np.array([[1, 2], [3, 4.5]], np.float32)
    _, tangent = verax.jvp(vnp.linalg.pinv, (singular,), (t,))
    assert np.allclose(tangent, [[-0.0432, -0.0704], [-0.1104, -0.1888]], atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2, 2, 3), (20000, 1), (1, 20000)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_tangents_of_pseudo_inverses(shape: tuple[int, ...], dtype: str) -> None:
    random = np.random.default_rng(0)
    x, t = random.normal(size=(2, *shape)).astype(dtype)
    if dtype == "complex128":
        x, t = x + 1j * random.normal(size=shape), t + 1j * random.normal(size=shape)
    with verax.enable_x64():
        _, tangent = verax.jvp(vnp.linalg.pinv, (x,), (t,))
    step = 1e-6
    slope = (np.linalg.pinv(x + step * t) - np.linalg.pinv(x - step * t)) / (2 * step)
    assert np.allclose(tangent, slope, rtol=1e-6, atol=1e-6)


def adjugate(x: Any) -> Any:
    """The transposed matrix of cofactors: d det A / d A, transposed."""
    n = len(x)
    minors = [[np.delete(np.delete(x, i, 0), j, 1) for j in range(n)] for i in range(n)]
    signs = (-1.0) ** np.add.outer(np.arange(n), np.arange(n))
    return signs * np.linalg.det(np.array(minors))


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 5])
def test_gradients_of_determinants_of_singular_matrices(n: int) -> None:
    random = np.random.default_rng(n)
    matrices = [np.zeros((n, n)), np.diag(np.ones(n - 1), 1), np.eye(n)]
    matrices[2][0, 0] = 0
    for rank in range(n + 1):
        parts = random.integers(-2, 3, (2, n, rank)).astype(float)
        matrices += [parts[0] @ parts[1].T, random.normal(size=(n, n))]
        matrices[-1][:, : n - rank] = 0
    stack = np.stack(matrices)
    with verax.enable_x64():
        slope = verax.jit(verax.grad(lambda x: vnp.linalg.det(x).sum()))(stack)
    assert np.allclose(slope, [adjugate(x) for x in stack], atol=1e-9)


def test_the_upper_diagonal_of_hermitian_tridiagonal_matrices() -> None:
    d, e = np.arange(1, 4, dtype=np.float32), np.array([1 + 2j, 0.5 - 1j], np.complex64)
    w, v = map(np.asarray, linalg.eigh_tridiagonal(d, e))
    full = np.diag(d) + np.diag(e, 1) + np.diag(e.conj(), -1)
    assert np.allclose(full @ v, v * w, atol=1e-5)


@pytest.mark.slow
def test_schur_forms_of_stacks_beside_one_matrix() -> None:
    t, z = np.array([[0, 1], [-1, 0]], np.float32), np.eye(2, dtype=np.float32)
    one = linalg.rsf2csf(t, z)

    def twice(x: Any) -> Any:
        return np.stack([x, x])

    for stacked in (
        linalg.rsf2csf(np.stack([t, t]), z),
        linalg.rsf2csf(t, np.stack([z, z])),
    ):
        for x, y in zip(stacked, one, strict=True):
            assert np.allclose(x[0], y)
            assert np.allclose(x[1], y)


def test_reductions_are_weak_where_all_operands_are() -> None:
    x = lax.full_like(vnp.ones(3), 1.0) * 1.0
    assert not lax.reduce(x, 0.0, lax.add, (0,)).weak_type
    loose = vnp.asarray(1.0)[None]
    assert loose.weak_type
    assert lax.reduce(loose, 0.0, lax.add, (0,)).weak_type
    assert not lax.reduce(loose, np.float32(0), lax.add, (0,)).weak_type


def test_a_transform_of_no_dimension_changes_nothing() -> None:
    x = np.arange(3).astype(np.complex64)
    assert lax.fft(x, "FFT", ()).tolist() == x.tolist()


def test_objects_that_become_arrays_stand_for_shifts_and_places() -> None:
    x = vnp.arange(4)
    five: Any = Wrapped(5)
    three: Any = Wrapped(3.0)
    assert vnp.roll(x, Wrapped(1)).tolist() == [3, 0, 1, 2]
    assert vnp.insert(x, Wrapped(1), five).tolist() == [0, 5, 1, 2, 3]
    assert vnp.delete(x, Wrapped(-3)).tolist() == [0, 2, 3]
    assert vnp.full_like(Wrapped([1.0, 2.0]), three).tolist() == [3, 3]
    assert vnp.iscomplexobj(Wrapped([1j]))
    assert not vnp.iscomplexobj(Wrapped([1.0]))


def test_masked_arrays_without_a_masked_element() -> None:
    assert vnp.array(np.ma.array([1, 2], mask=[False, False])).tolist() == [1, 2]
    with pytest.raises(ValueError, match="the mask would be lost"):
        vnp.array(np.ma.array([1, 2], mask=[True, False]))


@pytest.mark.parametrize(
    "call",
    [
        vnp.sin,
        vnp.sum,
        lax.exp,
        verax.device_put,
        verax.jit(lambda x: x),
        verax.grad(lambda x: x.sum()),
        verax.vmap(lambda x: x),
        lambda x: vnp.ones(2) + x,
        lambda x: x + vnp.ones(2),
        lambda x: vnp.stack([x, x]),
        lambda x: vnp.ones(2).at[:].set(x),
        lambda x: lax.scan(lambda carry, y: (carry, y), 0.0, x),
        lambda x: verax.jit(lambda y: y + x)(1.0),
    ],
)
def test_no_function_loses_a_mask(call: Callable[[Any], Any]) -> None:
    whole = np.ones(2, np.float32)
    call(whole)  # What is kept for arrays of this type is not for masked ones.
    with pytest.raises(ValueError, match="the mask would be lost"):
        call(np.ma.array(whole, mask=[True, False]))


def test_the_cosine_integral_at_minus_infinity_is_that_of_scipy() -> None:
    _, cosine = special.sici(np.array([-np.inf, np.inf], np.float32))
    assert np.isnan(cosine[0])
    assert cosine[1] == 0


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_cotangents_of_backward_rules_in_wider_floats(dtype: str) -> None:
    @verax.custom_vjp
    def total(x: Any) -> Any:
        return x.astype("float32").sum()

    def pulled(shape: Any, g: Any) -> Any:
        return (vnp.full(shape, g, "float32"),)

    total.defvjp(lambda x: (total(x), x.shape), pulled)
    x = vnp.ones((3, 2), dtype)
    out = verax.grad(lambda t: total(t[np.array([1, 2, 1])]))(x)
    assert out.dtype == x.dtype
    assert out.tolist() == [[0, 0], [2, 2], [1, 1]]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_factors_of_one_triangle(lower: bool, dtype: str) -> None:
    random = np.random.default_rng(0)
    parts = random.normal(size=(2, 4, 4))
    root = parts[0] + (1j * parts[1] if dtype == "complex128" else 0)
    whole = root @ root.conj().T + np.eye(4)
    part = np.tril(whole) if lower else np.triu(whole)
    b = random.normal(size=(4, 2)).astype(dtype)
    with verax.enable_x64():
        factor = linalg.cholesky(part, lower=lower)
        assert np.allclose(factor, linalg.cholesky(whole, lower=lower))
        assert np.allclose(linalg.cho_factor(part, lower)[0], factor)
        solved = linalg.solve(part, b, lower=lower, assume_a="pos")
        assert np.allclose(solved, np.linalg.solve(whole, b))
        _, pull = verax.vjp(lambda x: linalg.cholesky(x, lower=lower), part)
        (slope,) = pull(b @ b.conj().T)
        other = np.triu(slope, 1) if lower else np.tril(slope, -1)
        assert not other.any()


def test_a_minimum_of_a_steep_function() -> None:
    result = minimize(lambda x: vnp.mean((1e4 * x) ** 2), vnp.ones(2), method="BFGS")
    assert result.success
    assert result.x.tolist() == [0, 0]


def test_complex_sinc_at_the_ends_of_the_real_line() -> None:
    x = np.array([np.inf, -np.inf, 0, 0.5, np.inf - 2j, -np.inf + 1.5j], np.complex64)
    assert np.allclose(vnp.sinc(x), [0, 0, 1, 2 / np.pi, 0, 0])
    assert np.isnan(vnp.sinc(vnp.array(complex(0, np.inf))))


class Scaled(NamedTuple):
    """A tuple that has products with arrays."""

    value: Any

    def __rmul__(self, other: Any) -> "Scaled":
        return Scaled(other * self.value)


def test_named_tuples_may_have_operators_of_their_own() -> None:
    x = vnp.arange(3.0)
    for f in (operator.mul, verax.jit(operator.mul)):
        out = f(x, Scaled(x))
        assert isinstance(out, Scaled)
        assert out.value.tolist() == [0, 1, 4]
    for other in ([1, 2, 3], (1, 2, 3)):
        with pytest.raises(TypeError, match="unsupported operand"):
            operator.mul(x, other)


def test_results_of_callbacks_in_lists_for_tuples() -> None:
    due = (np.zeros(2, np.float32),)
    out = verax.jit(lambda x: verax.pure_callback(lambda v: [v], due, x))(due[0] + 1)
    assert isinstance(out, tuple)
    assert out[0].tolist() == [1, 1]


def test_coordinates_are_an_array_or_a_sequence() -> None:
    image, places = np.arange(9.0).reshape(3, 3), np.array([[0.5, 1.0], [1.0, 2.0]])
    givens: list[Any] = [places, list(places), vnp.asarray(places), tuple(places)]
    for given in givens:
        assert map_coordinates(image, given, order=1).tolist() == [2.5, 5.0]
    wrong = [list(places), list(places), list(places)]
    with pytest.raises(ValueError, match="must be a sequence of length 2, not 3"):
        map_coordinates(image, wrong, order=1)  # type: ignore[arg-type]  # that is it


def test_errors_of_the_classes_that_jax_raises() -> None:
    with pytest.raises(NotImplementedError, match="requires order<=1"):
        map_coordinates(np.ones((3, 3)), list(np.ones((2, 3))), order=2)
    with pytest.raises(ValueError, match="cannot have None"):
        verax.ShapeDtypeStruct((None, 3), np.float32)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Only non-negative"):
        lax.broadcast_shapes((2, -1), (2, 3))


@pytest.mark.parametrize("name", ["mgrid", "ogrid", "r_", "c_"])
def test_traced_slices_between_brackets_are_named(name: str) -> None:
    brackets = getattr(vnp, name)
    for part, f in (
        ("start", lambda n: brackets[n:3]),
        ("stop", lambda n: brackets[0:n]),
        ("step", lambda n: brackets[0:3:n]),
    ):
        words = f"slice {part} of jnp.{name}: the shape of the result"
        with pytest.raises(ConcretizationTypeError, match=words):
            verax.jit(f)(2)


def test_axes_of_tensordot_that_are_none() -> None:
    x, y = np.ones((3, 2, 2)), np.ones(2)
    wrong: list[tuple[Any, str]] = [
        (([0], [0, 1]), "requires axes lists to have equal length, got axes="),
        ((0, [0, 1]), "requires axes lists to have equal length, got axes="),
        (("bad", "axes"), "either ints, tuples or lists, not 'bad'"),
        ("badaxes", "must be an int, a pair of ints, or a pair of lists, not 'badax"),
    ]
    for axes, words in wrong:
        with pytest.raises(TypeError, match=words):
            vnp.tensordot(x, y, axes=axes)


def test_sizes_that_disagree() -> None:
    x = np.arange(5)
    with pytest.raises(ValueError, match="Sum of sizes 6 must be equal to dimension 0"):
        lax.split(x, [2, 4])
    words = r"`length` argument of 3 which disagrees with leading axis sizes \[5\]"
    with pytest.raises(ValueError, match=words):
        lax.scan(lambda c, x: (c, x), 0, x, length=3)
    with pytest.raises(ValueError, match=r"sizes \[4, 5\]"):
        lax.scan(lambda c, x: (c, x), 0, (x, x[1:]), length=3)
    with pytest.raises(ValueError, match="the same first dimension, not xs"):
        lax.scan(lambda c, x: (c, x), 0, (x, x[1:]))


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "a shape that is a string": (
        lambda: lax.broadcast_shapes("ab"),  # type: ignore[arg-type]  # the error is what is tested
        TypeError,
        "Shapes must be 1D sequences of concrete values of integer type, .* got 'ab'",
    ),
    "a shape that is a number": (
        lambda: lax.broadcast_shapes(2),  # type: ignore[arg-type]  # the error is what is tested
        TypeError,
        "Shapes must be 1D sequences",
    ),
    "a scalar": (
        lambda: linalg.convolution_matrix(np.float32(1), 3),
        ValueError,
        "must be at least 1-dimensional",
    ),
    "distances": (
        lambda: vnp.fft.fftfreq(4, np.ones(2)),
        ValueError,
        r"d argument of verax.numpy.fft.fftfreq only takes a single value. Got d = \[",
    ),
    "real distances": (
        lambda: vnp.fft.rfftfreq(4, [1, 2]),  # type: ignore[arg-type]  # the error is what is tested
        ValueError,
        r"fft.rfftfreq only takes a single value. Got d = \[1, 2\]",
    ),
    "too short signals": (
        lambda: lax.fft(np.ones((2, 3), np.float32), "rfft", (4,)),
        ValueError,
        r"RFFT input shape \(2, 3\) minor dimensions must be equal to fft_lengths",
    ),
    "too short spectra": (
        lambda: lax.fft(np.ones((2, 3), np.complex64), "irfft", (3,)),
        ValueError,
        r"IRFFT input shape .* all except the last fft_length, got fft_lengths=\(3,\)",
    ),
    "signals of half precision": (
        lambda: lax.fft(np.ones(3, np.float16), "rfft", (3,)),
        ValueError,
        "RFFT input must be float32 or float64, got float16",
    ),
    "complex numbers in order": (
        lambda: vnp.top_k(np.ones(3, np.complex64), 1),
        ValueError,
        "not compatible with complex inputs, which have no order",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_messages_begin_as_those_of_jax(name: str) -> None:
    make, kind, words = WRONG[name]
    with pytest.raises(kind, match=words):
        make()


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "bool"])
@pytest.mark.parametrize("product", [vnp.convolve, vnp.correlate])
def test_integers_are_summed_as_integers_where_that_is_preferred(
    product: Any, dtype: str
) -> None:
    x, kernel = np.array([1, 0, 1, 1], dtype), np.array([1, 1], dtype)
    whole = x.astype(int), kernel.astype(int)
    expected = getattr(np, product.__name__)(*whole, "full")
    for wide in (dtype, "int32", "float32"):
        actual = product(x, kernel, "full", preferred_element_type=wide)
        assert actual.dtype == wide
        np.testing.assert_array_equal(actual, expected.astype(wide))
    large = np.array([2**24 + 1, 2**24 + 3], np.int32)
    exact = product(large, np.ones(1, np.int32), "full", preferred_element_type="int32")
    assert exact.tolist() == large.tolist()


@pytest.mark.parametrize("p", [None, 2, -2, 1, np.inf, "fro", "nuc"])
def test_condition_numbers_of_zeros_are_infinite(p: Any) -> None:
    stack = np.stack([np.zeros((2, 2)), np.eye(2), np.full((2, 2), np.nan)])
    out = np.asarray(vnp.linalg.cond(stack.astype(np.float32), p))
    assert out[0] == np.inf
    assert np.isfinite(out[1])
    assert np.isnan(out[2])
    with pytest.raises(ValueError, match="not empty"):
        vnp.linalg.cond(np.zeros((0, 3) if p in (None, 2, -2) else (0, 0)), p)


@pytest.mark.parametrize("f", [special.i1, special.i1e, special.erfinv])
def test_odd_functions_keep_the_sign_of_zero(f: Any) -> None:
    x = np.array([-0.0, 0.0, -0.5, 0.5])
    for dtype in ("float16", "float32"):
        for g in (f, verax.jit(f)):
            out = np.asarray(g(x.astype(dtype)))
            assert np.signbit(out).tolist() == [True, False, True, False]


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float32"])
def test_squareplus_of_arrays_that_are_not_weak(dtype: str) -> None:
    y = nn.squareplus(vnp.ones(2, dtype))
    assert y.dtype == np.float32
    assert not y.weak_type
    assert nn.squareplus(vnp.asarray(1.0)).weak_type


@pytest.mark.slow
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("copies", [1, 40])
def test_places_of_complex_numbers_are_those_of_their_order(
    side: Any, copies: int
) -> None:
    nan = np.nan
    z = [1 + 2j, complex(1, nan), 2, complex(nan, 1), -1j, complex(nan, 0), 1 - 1j]
    line = vnp.sort(np.array(z * copies, np.complex64))
    shown = [str(x) for x in line.tolist()]
    last = len(shown) - 1
    for f in (vnp.searchsorted, verax.jit(vnp.searchsorted, static_argnames="side")):
        for place, x in zip(f(line, line, side=side).tolist(), shown, strict=True):
            first, behind = shown.index(x), last - shown[::-1].index(x) + 1
            assert place == (first if side == "left" else behind)
    assert vnp.digitize(np.complex64(1 + 1j), np.array([0, 1, 2], np.float32)) == 2
    with pytest.raises(ValueError, match="complex x values"):
        vnp.interp(1j, np.arange(2.0), np.arange(2.0))


@pytest.mark.parametrize("convert", [int, float, complex])
def test_only_scalars_are_numbers_of_python(convert: Callable[[Any], Any]) -> None:
    for run in (convert, verax.jit(convert)):
        for x in (vnp.arange(1), vnp.arange(3), vnp.arange(0), vnp.ones((1, 1))):
            with pytest.raises(TypeError, match="Only scalar arrays can be converted"):
                run(x)
    assert convert(vnp.asarray(3)) == 3
    assert vnp.arange(1).item() == 0


def test_the_truth_of_no_element() -> None:
    for run in (bool, verax.jit(bool)):
        with pytest.raises(ValueError, match="empty array is ambiguous"):
            run(vnp.arange(0))
        with pytest.raises(ValueError, match="more than one element is ambiguous"):
            run(vnp.arange(2))
    assert not vnp.zeros((1, 1))


def test_what_jax_has_deprecated_warns() -> None:
    z = vnp.asarray([1 + 2j])
    casts: list[Callable[[], Any]] = [
        lambda: z.astype("float32"),
        lambda: vnp.astype(z, int),
    ]
    for cast in casts:
        with pytest.warns(DeprecationWarning, match="Casting from complex to real"):
            assert cast().tolist() == [1]
    assert z.astype(bool).tolist() == [True]
    plane = vnp.asarray([1.0, 2.0])
    for pair in ((plane, plane), (plane, vnp.ones(3)), (vnp.ones(3), plane)):
        for _ in range(2):
            with pytest.warns(DeprecationWarning, match="Support for 2-dimensional"):
                vnp.cross(*pair)
    assert vnp.cross(vnp.ones((3, 2)), vnp.ones((3, 2)), axis=0).shape == (3, 2)


@pytest.mark.parametrize("padding", [3, (3, 3), ((1, 1), 2)])
def test_padding_is_a_name_or_pairs(padding: Any) -> None:
    x = vnp.ones((1, 5, 5, 2))
    with pytest.raises(ValueError, match="padding argument should be a string or"):
        lax.conv_general_dilated_patches(x, (2, 2), (1, 1), padding)
    with pytest.raises(ValueError, match=r"reduce_window.*\(low, high\) pairs, got"):
        lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), padding)


def test_what_transformations_say_of_their_functions() -> None:
    def f(x: Any) -> Any:
        """Twice x."""
        return 2 * x

    mapped, slope = verax.vmap(f), verax.grad(f, argnums=0)
    assert (mapped.__doc__ or "").startswith("Vectorized version of f. ")
    assert (mapped.__doc__ or "").endswith("\n\nOriginal documentation:\n\nTwice x.")
    assert "Gradient of f with respect to positional argument(s) 0" in str(
        slope.__doc__
    )
    assert verax.jacfwd(f, (0,)).__doc__ != verax.jacrev(f).__doc__
    assert "documentation" not in str(verax.value_and_grad(lambda x: x).__doc__)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"left": "nearest"}, "value of `left` is 'extrapolate', but got: 'nearest'"),
        ({"right": "nearest"}, "value of `right` is 'extrapolate'"),
        ({"period": np.ones(1)}, "period must be a scalar; got"),
    ],
)
def test_what_interp_does_not_take(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        vnp.interp(0.5, np.arange(2.0), np.arange(2.0), **given)


def test_a_shape_may_be_a_sequence_without_an_iterator() -> None:
    class Sizes:
        def __init__(self, *sizes: int) -> None:
            self.sizes = sizes

        def __getitem__(self, i: int) -> int:
            return self.sizes[i]

    x = vnp.arange(6)
    assert x.reshape(Sizes(2, -1)).shape == (2, 3)
    assert vnp.reshape(x[:1], Sizes()).shape == ()
