"""Floor 2: eigenvalues and eigenvectors.

One idea: in the basis of the eigenvectors a perturbation is a matrix whose diagonal
moves the values and whose other elements, divided by gaps, turn the vectors::

    v, w = eigh(a)                      # dw = diag(Vᴴ dA V)
    w, vl, vr = eig(a)                  # dw = diag(V⁻¹ dA V)

Sources: M. Giles, Collected matrix derivative results for forward and reverse mode
algorithmic differentiation, 2008, section 3.1; C. Boeddeker et al., On the computation
of complex-valued gradients with application to statistically optimum beamforming,
arXiv:1701.00392, section 4.
"""

from collections.abc import Collection, Sequence

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import complex_dtype, is_complex
from verax.ir.jaxpr import Params
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    complex as to_complex,
    div,
    imag,
    mul,
    sub,
)
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.select import select
from verax.ops.linalg.lu import solve
from verax.ops.linalg.triangular import (
    adjoint,
    along_columns,
    along_rows,
    as_operand,
    conjugate,
    diagonal,
    eye_like,
    from_triangle,
    like,
    matmul,
    real_part,
    real_type,
    symmetrized,
    times_columns,
)
from verax.ops.reductions.reduce import argmax, reduce_sum
from verax.ops.structure.create import broadcasted_iota, full_like
from verax.rules.families.lapack import (
    SOLVING,
    by_dtype,
    host_routine,
    hybrid,
    info_type,
    letter,
    matrix_row,
    nan_like,
    or_nan,
    routine,
    solver,
    square,
    turned_columns,
)
from verax.rules.families.linear import Pushed, one_pushed
from verax.rules.rows.emitter import Emitter, Operand, flag
from verax.rules.rows.row import NDArray, Row, Rows, Traits
from verax.rules.values.array import Array

# Algorithms for Hermitian matrices, as cuSOLVER numbers them.
ALGORITHMS = {"DEFAULT": 0, "QR": 1, "JACOBI": 2}
# Libraries for general matrices, and whether the plugin of a GPU takes MAGMA.
LIBRARIES = {"DEFAULT": "auto", "LAPACK": "off", "MAGMA": "on"}


@frozen(eq=False, repr=False)
class EighParams(Params):
    """The triangle that is read, and the algorithm: a key of `ALGORITHMS`."""

    lower: bool
    algorithm: str = "DEFAULT"


def eigh_results(p: EighParams, xs: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (a,) = xs
    size = square("eigh", a)
    return a, real_type(a).with_shape((size,))


def check_algorithm(p: EighParams) -> None:
    """Raise if LAPACK does not have the algorithm."""
    if p.algorithm == "JACOBI":
        raise NotImplementedError(
            "eigh: the implementation JACOBI is one of GPUs; on CPU there is QR"
        )


def evaluate_eigh(p: EighParams, a: NDArray) -> Sequence[NDArray]:
    check_algorithm(p)
    if not a.size:
        return a, np.zeros((0,), a.real.dtype)
    eigh_of = host_routine(by_dtype(a.dtype, "syevd", "heevd"), a.dtype)
    values, vectors, info = eigh_of(a, compute_v=1, lower=p.lower)
    if info:
        return nan_like(vectors), nan_like(values)
    return vectors, values


def lower_eigh(
    e: Emitter, p: EighParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    types = *outs, info_type(outs[0].shape[:-2])
    if e.platform == "cpu":
        check_algorithm(p)
        vectors, values, info = routine(
            e,
            by_dtype(outs[0].dtype, "?syevd", "?heevd"),
            xs,
            types,
            {0: 0},
            mode=letter("V"),
            uplo=letter("L" if p.lower else "U"),
        )
    else:
        algorithm = f"{ALGORITHMS[p.algorithm]} : ui8"
        vectors, values, info = solver(
            e, "syevd", xs, types, lower=flag(p.lower), algorithm=algorithm
        )
    return or_nan(e, info, (vectors, values))


def inverse_gaps(values: Array, matrix: Array) -> Array:
    """1 / (w_j - w_i), zero on the diagonal, in the shape and dtype of `matrix`."""
    gaps = sub(
        along_rows(like(values, matrix), matrix),
        along_columns(like(values, matrix), matrix),
    )
    return off_diagonal(gaps)


def off_diagonal(gaps: Array) -> Array:
    """1 / gaps, zero on the diagonal."""
    same = eye_like(gaps)
    return sub(div(full_like(gaps, 1), add(gaps, same)), same)


def jvp_eigh(p: EighParams, a: Array, t: Array) -> Pushed:
    vectors, values = eigh_p.bind(p, a)
    inner = matmul(adjoint(vectors), matmul(from_triangle(t, p.lower), vectors))
    turn = mul(inverse_gaps(values, vectors), inner)
    return (vectors, values), (matmul(vectors, turn), real_part(diagonal(inner)))


def turned_vectors(
    p: EighParams, outs: Sequence[np.ndarray], exact: Sequence[np.ndarray]
) -> Sequence[np.ndarray]:
    """Exact eigenvectors with the phases of the given ones."""
    phases = turned_columns(outs[0], exact[0])
    return exact[0] * phases[..., None, :], *exact[1:]


eigh_p: Row[EighParams] = matrix_row(
    "eigh",
    EighParams,
    results=eigh_results,
    evaluate=evaluate_eigh,
    jvp=one_pushed(jvp_eigh),
    lower_on=dict.fromkeys(SOLVING, lower_eigh),
    traits=Traits(turned=turned_vectors),
    multiple_results=True,
)


@frozen(eq=False, repr=False)
class EigParams(Params):
    """The eigenvectors to compute, how, and whether they may be differentiated.

    The library is a key of `LIBRARIES`.
    """

    compute_left_eigenvectors: bool
    compute_right_eigenvectors: bool
    enable_eigvec_derivs: bool = False
    library: str = "DEFAULT"


def check_library(p: EigParams) -> None:
    """Raise if LAPACK, the library of CPUs, is not what is asked for."""
    if p.library == "MAGMA":
        raise ValueError("eig: on CPU there is only the implementation LAPACK")


def eig_results(p: EigParams, xs: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (a,) = xs
    size = square("eig", a)
    vectors = a.with_dtype(complex_dtype(a.dtype))
    count = p.compute_left_eigenvectors + p.compute_right_eigenvectors
    return vectors.with_shape((size,)), *(vectors,) * count


def evaluate_eig(p: EigParams, a: NDArray) -> Sequence[NDArray]:
    check_library(p)
    flags = p.compute_left_eigenvectors, p.compute_right_eigenvectors
    kind = np.result_type(a.dtype, np.complex64)
    if not a.size or not np.isfinite(a).all():
        # LAPACK would write beyond its memory where numbers are infinite.
        none = nan_like(a.astype(kind))
        return none.diagonal(), *(none,) * sum(flags)
    result = host_routine("geev", a.dtype)(a, compute_vl=flags[0], compute_vr=flags[1])
    *values, left, right, info = result
    w = np.asarray(values[0]).astype(kind)
    if len(values) == 2:
        w.imag = values[1]
        left, right = (
            unpacked(values[1], v) if flag else v
            for v, flag in zip((left, right), flags, strict=True)
        )
    outs = (w, *(v for v, flag in zip((left, right), flags, strict=True) if flag))
    return [nan_like(x) for x in outs] if info else outs


def unpacked(imaginary: NDArray, vectors: NDArray) -> NDArray:
    """Complex vectors from the real and imaginary columns that a pair has."""
    out = vectors.astype(np.result_type(vectors.dtype, np.complex64))
    for j in np.flatnonzero(imaginary > 0):
        out[:, j] = vectors[:, j] + 1j * vectors[:, j + 1]
        out[:, j + 1] = np.conj(out[:, j])
    return out


def general_eigen(
    e: Emitter,
    p: EigParams,
    flags: tuple[bool, bool],
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> tuple[Operand, ...]:
    """Values, left and right vectors as the flags ask, and what the routine says."""
    if e.platform == "cpu":
        check_library(p)
        left, right = [letter("NV"[asked]) for asked in flags]
        return routine(e, "?geev", xs, outs, {}, compute_left=left, compute_right=right)
    name = by_dtype(xs[0].aval.dtype, "eig_real", "eig_comp")
    left, right = map(flag, flags)
    magma = f'"{LIBRARIES[p.library]}"'
    return hybrid(e, name, xs, outs, {}, magma=magma, left=left, right=right)


def lower_eig(
    e: Emitter, p: EigParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    (a,) = xs
    flags = p.compute_left_eigenvectors, p.compute_right_eigenvectors
    vectors = a.aval.with_dtype(outs[0].dtype)
    parts: tuple[ShapedArray, ...] = (outs[0],)
    if not is_complex(a.aval.dtype):
        parts = (outs[0].with_dtype(a.aval.dtype),) * 2
    types = *parts, vectors, vectors, info_type(vectors.shape[:-2])
    result = general_eigen(e, p, flags, xs, types)
    *values, left, right, info = result
    w = (
        values[0]
        if len(values) == 1
        else e.op("stablehlo.complex", values, outs[:1])[0]
    )
    chosen = [v for v, asked in zip((left, right), flags, strict=True) if asked]
    return or_nan(e, info, (w, *chosen))


def jvp_eig(p: EigParams, a: Array, t: Array) -> Pushed:
    outs = eig_p.bind(p, a)
    left, right = p.compute_left_eigenvectors, p.compute_right_eigenvectors
    if (left or right) and not p.enable_eigvec_derivs:
        raise ValueError(
            "derivatives of the eigenvectors of a general matrix depend on how they "
            "are scaled; differentiate only eigenvalues (verax.numpy.linalg.eigvals), "
            "or vectors with verax.lax.linalg.eig(..., enable_eigvec_derivs=True)"
        )
    right_only = EigParams(False, True, True, p.library)
    vectors = outs[-1] if right else eig_p.bind(right_only, a)[1]
    moved, turn = vectors_moved(outs[0], vectors, t)
    tangents = [diagonal(moved)]
    if left:
        # The left vectors are the right ones of Aᴴ, with conjugate values.
        other = vectors_moved(conjugate(outs[0]), outs[1], adjoint(t))[1]
        tangents.append(scaled_as_lapack(outs[1], other))
    if right:
        tangents.append(scaled_as_lapack(vectors, turn))
    return outs, tangents


def vectors_moved(values: Array, vectors: Array, t: Array) -> tuple[Array, Array]:
    """V⁻¹ dA V, and the tangents of the vectors but for multiples of themselves."""
    inner = solve(vectors, matmul(like(t, vectors), vectors))
    return inner, matmul(vectors, mul(inverse_gaps(values, vectors), inner))


def scaled_as_lapack(vectors: Array, turn: Array) -> Array:
    """The tangent that keeps what LAPACK fixes: length 1, the largest element real."""
    rows = turn.ndim - 2
    growth = reduce_sum(real_part(mul(conjugate(vectors), turn)), (rows,))
    sizes = magnitude(vectors)
    largest = eq(
        along_rows(argmax(sizes, rows, np.int32), vectors),
        broadcasted_iota(np.int32, vectors.shape, rows),
    )
    element = reduce_sum(select(largest, vectors, 0.0), (rows,))
    moved = reduce_sum(select(largest, turn, 0.0), (rows,))
    phase = div(imag(moved), real_part(element))
    return sub(turn, times_columns(vectors, to_complex(growth, phase)))


eig_p: Row[EigParams] = matrix_row(
    "eig",
    EigParams,
    results=eig_results,
    evaluate=evaluate_eig,
    jvp=one_pushed(jvp_eig),
    lower_on=dict.fromkeys(SOLVING, lower_eig),
    multiple_results=True,
)


def named_choice(
    function: str, asked: object, choices: Collection[str], others: str
) -> str:
    """The name of what an argument `implementation` asks for."""
    name = "DEFAULT" if asked is None else str(asked).split(".")[-1].upper()
    if name not in choices:
        known = ", ".join(n for n in choices if n != "DEFAULT")
        raise NotImplementedError(
            f"{function}: implementation must be None or one of {known}, not {asked} "
            f"({others})"
        )
    return name


def eigh(
    x: object,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: object = None,
) -> tuple[Array, Array]:
    """Eigenvectors, as columns, and eigenvalues of Hermitian matrices, ascending.

    The vectors come first, unlike in `verax.numpy.linalg.eigh`. NaN where LAPACK fails.

    Args:
        x: matrices of shape (..., n, n), of floats or complex numbers.
        lower: whether the lower triangle is read, not the upper one; it matters only
            without `symmetrize_input`.
        symmetrize_input: whether `x` is replaced by (x + xᴴ) / 2; if not, one triangle
            is read.
        sort_eigenvalues: of no effect: the values are always sorted.
        subset_by_index: None or (0, n), for all values; parts are not available.
        implementation: an `EighImplementation` or its name: "QR", and on GPUs "JACOBI";
            None for the device's own choice.

    Returns:
        The vectors (..., n, n), of the dtype of `x`, and the values (..., n), which are
        real.

    Raises:
        TypeError: LAPACK does not have the dtype.
        ValueError: the matrices are not square, or a part of the values is requested.
        NotImplementedError: there is no such implementation on the device.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([[2.0, 1.0], [1.0, 2.0]])
    >>> vectors, values = lax.linalg.eigh(x)
    >>> values.round(3)
    Array([1., 3.], dtype=float32)
    """
    a = as_operand(x)
    if subset_by_index is not None and subset_by_index != (0, a.shape[-1]):
        raise ValueError(
            f"eigh: subset_by_index={subset_by_index} is not available on CPU and GPU; "
            "slice the results"
        )
    algorithm = named_choice("eigh", implementation, ALGORITHMS, "QDWH is for TPUs")
    array = symmetrized(a) if symmetrize_input else a
    vectors, values = eigh_p.bind(EighParams(lower, algorithm), array)
    return vectors, values


def eig(
    x: object,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: object = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Eigenvalues of general matrices, then left and right eigenvectors as asked.

    NaN where LAPACK fails. Derivatives of the values exist; those of vectors with
    `enable_eigvec_derivs`, if the values are distinct.

    Args:
        x: matrices of shape (..., n, n), of floats or complex numbers.
        compute_left_eigenvectors: whether to return the u with uᴴ A = λ uᴴ.
        compute_right_eigenvectors: whether to return the v with A v = λ v.
        enable_eigvec_derivs: whether derivatives of the vectors are wanted.
        implementation: an `EigImplementation` or its name: "LAPACK", and on GPUs
            "MAGMA". None for LAPACK on CPUs; on GPUs the plugin takes MAGMA where that
            is installed and the matrix large.
        use_magma: the older form of `implementation`: True for "MAGMA", False for
            "LAPACK"; None says nothing.

    Returns:
        A list of complex arrays: the values (..., n), then the vectors asked for, left
        ones first, as columns of (..., n, n). Vectors have length 1, and their largest
        elements are real.

    Raises:
        TypeError: LAPACK does not have the dtype.
        ValueError: the matrices are not square, or MAGMA is asked for on a CPU.
        NotImplementedError: the implementation is CUSOLVER, which has not been tried.

    A quarter turn of the plane has no real eigenvalues:

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> turn = vnp.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> values, left, right = lax.linalg.eig(turn)
    >>> values
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    if use_magma is not None and implementation is None:
        implementation = "MAGMA" if use_magma else "LAPACK"
    library = named_choice(
        "eig", implementation, LIBRARIES, "CUSOLVER has not been tried"
    )
    p = EigParams(
        compute_left_eigenvectors,
        compute_right_eigenvectors,
        enable_eigvec_derivs,
        library,
    )
    return list(eig_p.bind(p, as_operand(x)))


ROWS: Rows = (eigh_p, eig_p)
