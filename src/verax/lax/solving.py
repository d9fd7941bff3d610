"""Floor 6: solves and roots by functions of the user's own.

One idea: how a solution is found is up to the user, its derivative follows from the
equation that it solves; so `solve` may be any code, loops of unknown length included::

    x = lax.custom_linear_solve(lambda x: a @ x, b, conjugate_gradients, symmetric=True)
    x = lax.custom_root(lambda x: x * x - y, y, newton, lambda g, z: z / g(1.0))
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

from attrs import frozen

from verax import numpy as vnp
from verax.api.autodiff.jvp_vjp import linearize
from verax.api.tracing.apply import ENGINE, apply
from verax.api.tracing.trace import leaf_avals
from verax.api.tracing.wrapping import function_name
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_inexact
from verax.ir.records import ReprMixin
from verax.lax.agreement import mismatch, paths
from verax.lax.branching import (
    Body,
    as_operand,
    cond,
    trace_body,
    with_common_consts,
    with_out_types,
)
from verax.lax.looping import while_loop
from verax.numpy.arguments.arguments import ArrayLike
from verax.ops.custom.solve import (
    CustomLinearSolveParams,
    CustomRootParams,
    custom_root_p,
    linear_solve_p,
)
from verax.ops.linalg.qr import qr
from verax.ops.linalg.triangular import adjoint, cholesky, triangular_solve
from verax.rules.rows.infer import filled
from verax.rules.values.array import Array
from verax.rules.values.conversions import check_callable
from verax.rules.values.sizes import ShapeError


@frozen(eq=False, repr=False)
class System(ReprMixin):
    """A tree of arrays, and functions from such trees to such trees.

    `what` is how messages call the tree.
    """

    name: str
    what: str
    leaves: list[object]
    tree: PyTreeDef
    avals: list[ShapedArray]

    def arguments(self, count: int) -> PyTreeDef:
        """The structure of the arguments of a function of `count` such trees."""
        tree = self.tree.unflatten(range(len(self.leaves)))
        return pytrees.flatten(((tree,) * count, {}))[1]

    def traced(
        self, fun: Callable[..., object], called: object, role: str, count: int = 1
    ) -> Body:
        """A function of `count` such trees to one, given as the argument `role`."""
        body = trace_body(
            fun, self.arguments(count), self.avals * count, self.name, called
        )
        self.check(body.out_tree, body.out_avals, called, role)
        return with_out_types(body, self.avals)

    def traced_with_aux(
        self, fun: Callable[..., Any], called: object, role: str, has_aux: bool
    ) -> tuple[Body, PyTreeDef]:
        """A function to one such tree, or a pair of it and more; the tree of that."""
        trees: list[PyTreeDef] = []

        def flat(x: object) -> list[Any]:
            out = fun(x)
            if has_aux and not (isinstance(out, tuple | list) and len(out) == 2):
                raise TypeError(
                    f"{self.name}: with has_aux, {function_name(called)} must return a "
                    f"pair (solution, aux), not {type(out).__name__}"
                )
            solution, aux = out if has_aux else (out, None)
            parts = [pytrees.flatten(solution), pytrees.flatten(aux)]
            trees[:] = [tree for _, tree in parts]
            return [leaf for leaves, _ in parts for leaf in leaves]

        body = trace_body(flat, self.arguments(1), self.avals, self.name, called)
        result = body.out_avals[: trees[0].num_leaves]
        self.check(trees[0], result, called, role)
        return with_out_types(body, self.avals), trees[1]

    def check(
        self, tree: PyTreeDef, avals: Sequence[ShapedArray], called: object, role: str
    ) -> None:
        """Raise an error unless a function, the argument `role`, gives such a tree."""
        who = function_name(called)
        if tree != self.tree:
            difference = mismatch(self.tree, tree, "output")
            raise ShapeError(
                f"{role}() output pytree structure must match {self.what}, but at "
                f"{difference}. In this {self.name} {role} is {who}, which returns "
                f"{tree}, and {self.what} is {self.tree}"
            )
        lines = [
            f"  output{path} is {given} and {self.what}{path} is {due}"
            for path, due, given in zip(paths(tree), self.avals, avals, strict=True)
            if due.strong() is not given.strong()
        ]
        if lines:
            shapes = any(
                [a.shape != b.shape for a, b in zip(self.avals, avals, strict=True)]
            )
            kind, error = ("shapes", ShapeError) if shapes else ("types", TypeError)
            raise error(
                f"{role}() output {kind} must match {self.what}; in this {self.name} "
                f"{role} is {who}:\n"
                + "\n".join(lines)
                + f"\nConvert {self.what}, or what the function returns (astype)"
            )

    def operands(self) -> list[object]:
        """The tree as operands of an equation."""
        pairs = zip(self.leaves, self.avals, strict=True)
        return [as_operand(x, aval) for x, aval in pairs]


def system(name: str, what: str, tree: object) -> System:
    leaves, structure = pytrees.flatten(tree)
    avals = leaf_avals(
        leaves, lambda: [f"{what}{p} of {name}" for p in paths(structure)]
    )
    return System(name, what, leaves, structure, list(avals))


@overload
def custom_linear_solve[T](
    matvec: Callable[[T], T],
    b: T,
    solve: Callable[[Callable[[T], T], T], T],
    transpose_solve: Callable[[Callable[[T], T], T], T] | None = None,
    symmetric: bool = False,
    has_aux: Literal[False] = False,
) -> T: ...
@overload
def custom_linear_solve[T, A](
    matvec: Callable[[T], T],
    b: T,
    solve: Callable[[Callable[[T], T], T], tuple[T, A]],
    transpose_solve: Callable[[Callable[[T], T], T], tuple[T, A]] | None = None,
    symmetric: bool = False,
    *,
    has_aux: Literal[True],
) -> tuple[T, A]: ...
@overload
def custom_linear_solve(
    matvec: Callable[[Any], object],
    b: object,
    solve: Callable[[Callable[[Any], Any], Any], object],
    transpose_solve: Callable[[Callable[[Any], Any], Any], object] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any: ...
def custom_linear_solve(
    matvec: Callable[[Any], object],
    b: object,
    solve: Callable[[Callable[[Any], Any], Any], object],
    transpose_solve: Callable[[Callable[[Any], Any], Any], object] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The x with `matvec(x) = b`, found by `solve(matvec, b)`.

    Derivatives in b, and in what `matvec` closes over, are further solves: those of
    reverse mode are solved by `transpose_solve(vecmat, c)`, or by `solve` if the matrix
    is symmetric.

    Args:
        matvec: a linear function of a tree like `b` to another one.
        b: the right-hand side, a tree of arrays.
        solve: a function of `matvec` and b to the solution, a tree like `b`, or to (x,
            aux).
        transpose_solve: the same for the transpose of `matvec`; None for `solve` where
            the matrix is symmetric, and else for no reverse mode.
        symmetric: whether `matvec` is its own transpose.
        has_aux: whether both solves return (x, aux); aux has no derivative.

    Returns:
        The solution, a tree of the structure, shapes and dtypes of `b`; with `has_aux`
        the pair (x, aux).

    Raises:
        TypeError: a function returns another structure or other types than b has.
        NotImplementedError: reverse mode without a `transpose_solve`, later.

    >>> import verax, verax.numpy as vnp
    >>> def diagonal(matvec, b):
    ...     return b / matvec(vnp.ones_like(b))
    >>> def f(d):
    ...     x = verax.lax.custom_linear_solve(
    ...         lambda x: d * x, vnp.ones(2), diagonal, symmetric=True)
    ...     return x.sum()
    >>> verax.grad(f)(vnp.array([1.0, 2.0])).tolist()
    [-1.0, -0.25]
    """
    name = "custom_linear_solve"
    functions = {"matvec": matvec, "solve": solve}
    if transpose_solve is not None:
        functions["transpose_solve"] = transpose_solve
    for label, fun in functions.items():
        check_callable(f"{name}, as {label},", fun)
    right = system(name, "b", b)
    product = right.traced(matvec, matvec, "matvec")
    solution, aux_tree = right.traced_with_aux(
        lambda b: solve(matvec, b), solve, "solve", has_aux
    )
    bodies = [product, solution]
    back = solve if symmetric and transpose_solve is None else transpose_solve
    if back is not None:
        vecmat = matvec if symmetric else transpose_of(right, product)
        role = "transpose_solve" if transpose_solve is not None else "solve"
        pulled = right.traced_with_aux(lambda c: back(vecmat, c), back, role, has_aux)[
            0
        ]
        bodies.append(pulled)
    jaxprs, consts = with_common_consts(bodies)
    params = CustomLinearSolveParams(
        len(consts),
        jaxprs[0],
        jaxprs[1],
        jaxprs[2] if back is not None else None,
        bool(symmetric),
    )
    outs = linear_solve_p.bind(params, *consts, *right.operands())
    return with_aux(right, outs, aux_tree, has_aux)


def with_aux(
    given: System, outs: Sequence[Array], aux_tree: PyTreeDef, has_aux: bool
) -> object:
    """The solution, or the pair of it and aux."""
    count = len(given.leaves)
    x = given.tree.unflatten(outs[:count])
    return (x, aux_tree.unflatten(outs[count:])) if has_aux else x


def transpose_of(given: System, product: Body) -> Callable[[Any], object]:
    """The transpose of a traced linear function."""
    count = len(given.leaves)
    linear = (*[False] * len(product.consts), *[True] * count)

    def vecmat(x: object) -> object:
        jaxpr, mask = ENGINE.transpose(product.jaxpr, linear, (True,) * count)
        leaves, tree = pytrees.flatten(x)
        avals = leaf_avals(leaves, lambda: ["the vector"] * count)
        given.check(tree, avals, vecmat, "vecmat")
        cts = [
            ENGINE.core.convert(leaf, aval.dtype, aval.weak_type)
            for leaf, aval in zip(leaves, product.out_avals, strict=True)
        ]
        out = filled(mask, apply(jaxpr, [*product.consts, *cts]), given.avals)
        return given.tree.unflatten(
            [x if isinstance(x, Array) else ENGINE.core.zeros(x.aval) for x in out]
        )

    return vecmat


@overload
def custom_root[T](
    f: Callable[[T], T],
    initial_guess: T,
    solve: Callable[[Callable[[T], T], T], T],
    tangent_solve: Callable[[Callable[[T], T], T], T],
    has_aux: Literal[False] = False,
) -> T: ...
@overload
def custom_root[T, A](
    f: Callable[[T], T],
    initial_guess: T,
    solve: Callable[[Callable[[T], T], T], tuple[T, A]],
    tangent_solve: Callable[[Callable[[T], T], T], T],
    has_aux: Literal[True],
) -> tuple[T, A]: ...
@overload
def custom_root(
    f: Callable[[Any], object],
    initial_guess: object,
    solve: Callable[[Callable[[Any], Any], Any], object],
    tangent_solve: Callable[[Callable[[Any], Any], Any], object],
    has_aux: bool = False,
) -> Any: ...
def custom_root(
    f: Callable[[Any], object],
    initial_guess: object,
    solve: Callable[[Callable[[Any], Any], Any], object],
    tangent_solve: Callable[[Callable[[Any], Any], Any], object],
    has_aux: bool = False,
) -> Any:
    """The x with `f(x) = 0`, found by `solve(f, initial_guess)`.

    The derivative in what `f` closes over is that of the implicit function: the z with
    `g(z) = y`, found by `tangent_solve(g, y)`, where g is the derivative of `f` at x.

    Args:
        f: a function of a tree like the guess to another one.
        initial_guess: a tree of arrays of real or complex numbers; it has no
            derivative.
        solve: a function of `f` and the guess to the root, a tree like the guess, or to
            (x, aux).
        tangent_solve: a function of g and y to z, linear in y; a scalar one is `lambda
            g, y: y / g(1.0)`, others may use the Jacobian of g or
            `custom_linear_solve`.
        has_aux: whether `solve` returns (x, aux).

    Returns:
        The root, a tree of the structure, shapes and dtypes of the guess; with
        `has_aux` the pair (x, aux).

    Raises:
        TypeError: a function returns another structure or other types than the guess,
            or that is made of integers.

    >>> import verax
    >>> def newton(f, x):
    ...     step = lambda x: x - f(x) / verax.grad(f)(x)
    ...     return verax.lax.while_loop(lambda x: abs(f(x)) > 1e-5, step, x)
    >>> def root(y):
    ...     return verax.lax.custom_root(
    ...         lambda x: x * x - y, y, newton, lambda g, z: z / g(1.0))
    >>> round(float(root(9.0)), 4), round(float(verax.grad(root)(9.0)), 4)
    (3.0, 0.1667)
    """
    name = "custom_root"
    for label, fun in (("f", f), ("solve", solve), ("tangent_solve", tangent_solve)):
        check_callable(f"{name}, as {label},", fun)
    guess = system(name, "initial_guess", initial_guess)
    for path, aval in zip(paths(guess.tree), guess.avals, strict=True):
        if not is_inexact(aval.dtype):
            raise TypeError(
                f"{name} takes a guess of real or complex numbers, but "
                f"initial_guess{path} is {aval}; convert it (astype)"
            )

    def tangent(x: object, y: object) -> Any:
        return tangent_solve(linearize(f, x)[1], y)

    function = guess.traced(f, f, "f")
    solution, aux_tree = guess.traced_with_aux(
        lambda x: solve(f, x), solve, "solve", has_aux
    )
    moved = guess.traced(tangent, tangent_solve, "tangent_solve", 2)
    jaxprs, consts = with_common_consts([function, solution, moved])
    params = CustomRootParams(len(consts), *jaxprs)
    outs = custom_root_p.bind(params, *consts, *guess.operands())
    return with_aux(guess, outs, aux_tree, has_aux)


# -----------------------------------------------------------------------------
# The polar decomposition of a matrix by iteration.
#
# Halley's iteration brings all singular values to 1 and keeps the singular vectors. Its
# weights follow a lower bound of the singular values, so that six steps are enough for
# every matrix whose condition is finite (Nakatsukasa, Bai and Gygi, "Optimizing
# Halley's iteration for computing the matrix polar decomposition", 2010)::
#
#     u, h, steps, converged = qdwh(x)    # x = u h


STEPS = 10
"""The most steps, unless somebody says otherwise: rounding may cost some."""
STEEP = 100.0
"""Up to this weight a step by Cholesky factors loses no digits, and is cheaper."""

CLOSE = 10
"""The distance of the bound from 1 at the end, in units of the precision."""


class Weights(NamedTuple):
    """The weights of a step, and the bound of the singular values after it."""

    a: Array
    b: Array
    c: Array
    bound: Array


def weights(bound: Array) -> Weights:
    """The best weights where the singular values are between `bound` and 1."""
    square = bound * bound
    root = vnp.sqrt(1 + vnp.cbrt(4 * (1 - square) / (square * square)))
    rest = 8 - 4 * (root * root - 1) + 8 * (2 - square) / (square * root)
    a = root + vnp.sqrt(rest) / 2
    b = (a - 1) ** 2 / 4
    c = a + b - 1
    after = bound * (a + b * square) / (1 + c * square)
    return Weights(a, b, c, vnp.minimum(after, 1))


def step_by_qr(u: Array, w: Weights) -> Array:
    """A step that is stable for any weights."""
    rows, size = u.shape
    root = vnp.sqrt(w.c)
    both = vnp.concatenate([root.astype(u.dtype) * u, vnp.eye(size, dtype=u.dtype)])
    q, _ = qr(both, full_matrices=False)
    factor = ((w.a - w.b / w.c) / root).astype(u.dtype)
    return (w.b / w.c).astype(u.dtype) * u + factor * (q[:rows] @ adjoint(q[rows:]))


def step_by_cholesky(u: Array, w: Weights) -> Array:
    """A step for small weights."""
    eye = vnp.eye(u.shape[1], dtype=u.dtype)
    factor = cholesky(eye + w.c.astype(u.dtype) * (adjoint(u) @ u))
    half = triangular_solve(factor, adjoint(u), left_side=True, lower=True)
    whole = triangular_solve(
        factor, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )
    ratio = w.b / w.c
    return ratio.astype(u.dtype) * u + (w.a - ratio).astype(u.dtype) * adjoint(whole)


def lower_bound(x: Array, eps: float) -> Array:
    """A lower bound of the singular values, which are 1 at most."""
    _, r = qr(x, full_matrices=False)
    eye = vnp.eye(x.shape[1], dtype=x.dtype)
    inverse = triangular_solve(r, eye, left_side=True, lower=False)
    array = 0.9 / vnp.linalg.norm(inverse)
    return vnp.where(vnp.isfinite(array), vnp.clip(array, eps, 1), eps)


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition x = u h of a matrix of full rank, by iteration.

    Args:
        x: an array of shape (m, n), m >= n.
        is_hermitian: changes nothing.
        max_iterations: the most steps, by default 10.
        eps: the iteration ends when a step changes u by less than the part
            (4 eps)^(1/3) of it, by default the precision of the dtype.
        dynamic_shape: the shape of the matrix in the upper left corner of `x` that is
            decomposed; outside of it, u and h are zeros.

    Returns:
        u of shape (m, n) with orthonormal columns, the Hermitian positive semidefinite
        h of shape (n, n), the number of steps, and whether they were enough.

    Raises:
        ValueError: x is not a matrix, or has more columns than rows.

    >>> import numpy as np
    >>> u, h, _, converged = qdwh(np.float32([[0, -2], [2, 0]]))
    >>> (u @ h).round(3).tolist(), bool(converged)
    ([[0.0, -2.0], [2.0, 0.0]], True)
    """
    mat = vnp.asarray(x)
    if mat.ndim != 2 or mat.shape[0] < mat.shape[1]:
        raise ShapeError(
            "The input matrix of shape M x N must have M >= N: qdwh takes one matrix, "
            f"not an array of shape {mat.shape}"
        )
    if not vnp.issubdtype(mat.dtype, vnp.inexact):
        mat = mat.astype(vnp.result_type(mat, 1.0))
    if dynamic_shape is not None:
        rows, columns = (vnp.arange(n) for n in mat.shape)
        inside = (rows < dynamic_shape[0])[:, None] & (columns < dynamic_shape[1])[None]
        mat = vnp.where(inside, mat, 0)
    if not mat.size:
        size = mat.shape[1]
        done = vnp.zeros((size, size), mat.dtype), vnp.int32(0), vnp.bool_(True)
        return (mat, *done)
    epsilon = float(vnp.finfo(mat.dtype).eps) if eps is None else eps
    most = STEPS if max_iterations is None else max_iterations
    u, steps, converged = iterated(mat, epsilon, most)
    # One step of Newton's iteration, which loses no digits near the end.
    u = 1.5 * u - 0.5 * (u @ (adjoint(u) @ u))
    h = adjoint(u) @ mat
    return u, (h + adjoint(h)) / 2, steps, converged


def iterated(mat: Array, eps: float, most: int) -> tuple[Array, Array, Array]:
    """The unitary factor, the number of steps, and whether they were enough."""
    size = vnp.sqrt(vnp.linalg.norm(mat, 1) * vnp.linalg.norm(mat, vnp.inf))
    start = mat / vnp.where(size == 0, 1, size).astype(mat.dtype)
    norm = vnp.linalg.norm
    tolerance = (4 * eps) ** (1 / 3)

    def step(
        state: tuple[Array, Array, Array, Array],
    ) -> tuple[Array, Array, Array, Array]:
        u, bound, count, _ = state
        w = weights(bound)
        new = cond(w.c > STEEP, step_by_qr, step_by_cholesky, u, w)
        still = norm(new - u) <= tolerance * norm(new)
        return new, w.bound, count + 1, still & (1 - w.bound <= CLOSE * eps)

    begin = (start, lower_bound(start, eps), vnp.int32(0), vnp.bool_(False))
    u, _, steps, converged = while_loop(
        lambda state: (state[2] < most) & ~state[3], step, begin
    )
    return u, steps, converged
