"""Floor 6: solves and roots by functions of the user's own.

One idea: how a solution is found is up to the user, its derivative follows from the
equation that it solves; so `solve` may be any code, loops of unknown length included::

    x = lax.custom_linear_solve(lambda x: a @ x, b, conjugate_gradients, symmetric=True)
    x = lax.custom_root(lambda x: x * x - y, y, newton, lambda g, z: z / g(1.0))
"""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from verax.api.autodiff.jvp_vjp import linearize
from verax.api.tracing.apply import ENGINE, apply
from verax.api.tracing.argument_names import function_name
from verax.api.tracing.trace import leaf_avals
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_inexact
from verax.ir.records import ReprMixin
from verax.lax.bodies import (
    Body,
    as_operand,
    mismatch,
    paths,
    trace_body,
    with_common_consts,
    with_out_types,
)
from verax.ops.custom.solve import (
    CustomLinearSolveParams,
    CustomRootParams,
    custom_root_p,
    linear_solve_p,
)
from verax.rules.rows.masks import filled
from verax.rules.values.array import Array
from verax.rules.values.sizes import ShapeError
from verax.rules.values.typed import check_callable


@frozen(eq=False, repr=False)
class System(ReprMixin):
    """A tree of arrays, and functions from such trees to such trees.

    `what` is how messages call the tree.
    """

    name: str
    what: str
    leaves: list[Any]
    tree: PyTreeDef
    avals: list[ShapedArray]

    def arguments(self, count: int) -> PyTreeDef:
        """The structure of the arguments of a function of `count` such trees."""
        tree = self.tree.unflatten(range(len(self.leaves)))
        return pytrees.flatten(((tree,) * count, {}))[1]

    def traced(self, fun: Callable[..., Any], called: object, count: int = 1) -> Body:
        """A function of `count` such trees to one."""
        body = trace_body(
            fun, self.arguments(count), self.avals * count, self.name, called
        )
        self.check(body.out_tree, body.out_avals, called)
        return with_out_types(body, self.avals)

    def traced_with_aux(
        self, fun: Callable[..., Any], called: object, has_aux: bool
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
        found = body.out_avals[: trees[0].num_leaves]
        self.check(trees[0], found, called)
        return with_out_types(body, self.avals), trees[1]

    def check(
        self, tree: PyTreeDef, avals: Sequence[ShapedArray], called: object
    ) -> None:
        """Raise TypeError unless a function gives such a tree."""
        who = function_name(called)
        if tree != self.tree:
            at, difference = mismatch(self.tree, tree, "output")
            raise ShapeError(
                f"{self.name}: {who} must return the structure of {self.what}, but at "
                f"{at}: {difference}. It returns {tree}, and {self.what} is {self.tree}"
            )
        lines = [
            f"  output{path} is {found} and {self.what}{path} is {due}"
            for path, due, found in zip(paths(tree), self.avals, avals, strict=True)
            if due.strong() is not found.strong()
        ]
        if lines:
            raise TypeError(
                f"{self.name}: {who} must return the types of {self.what}:\n"
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


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: object,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The x with `matvec(x) = b`, found by `solve(matvec, b)`.

    `matvec` is linear, and x, b and `matvec(x)` are trees of the same structure and of
    the same types. Derivatives in b, and in what `matvec` closes over, are further
    solves: those of reverse mode are solved by `transpose_solve(vecmat, c)`, or by
    `solve` if the matrix is `symmetric`. With `has_aux` both solves return (x, aux),
    and so does this function; aux has no derivative.

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
    product = right.traced(matvec, matvec)
    solution, aux_tree = right.traced_with_aux(
        lambda b: solve(matvec, b), solve, has_aux
    )
    bodies = [product, solution]
    back = solve if symmetric and transpose_solve is None else transpose_solve
    if back is not None:
        vecmat = matvec if symmetric else transpose_of(right, product)
        pulled = right.traced_with_aux(lambda c: back(vecmat, c), back, has_aux)[0]
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
) -> Any:
    """The solution, or the pair of it and aux."""
    count = len(given.leaves)
    x = given.tree.unflatten(outs[:count])
    return (x, aux_tree.unflatten(outs[count:])) if has_aux else x


def transpose_of(given: System, product: Body) -> Callable[[Any], Any]:
    """The transpose of a traced linear function."""
    count = len(given.leaves)
    linear = (*[False] * len(product.consts), *[True] * count)

    def vecmat(x: object) -> Any:
        jaxpr, mask = ENGINE.transpose(product.jaxpr, linear, (True,) * count)
        leaves, tree = pytrees.flatten(x)
        given.check(tree, leaf_avals(leaves, lambda: ["the vector"] * count), vecmat)
        cts = [
            ENGINE.core.convert(leaf, aval.dtype, aval.weak_type)
            for leaf, aval in zip(leaves, product.out_avals, strict=True)
        ]
        found = filled(mask, apply(jaxpr, [*product.consts, *cts]), given.avals)
        return given.tree.unflatten(
            [x if isinstance(x, Array) else ENGINE.core.zeros(x.aval) for x in found]
        )

    return vecmat


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: object,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """The x with `f(x) = 0`, found by `solve(f, initial_guess)`.

    The guess, x and `f(x)` are trees of the same structure and of the same types. The
    derivative in what `f` closes over is that of the implicit function: the z with
    `g(z) = y`, found by `tangent_solve(g, y)`, where g is the derivative of `f` at x.
    `tangent_solve` is linear in y; a scalar one is `lambda g, y: y / g(1.0)`, others
    may use the Jacobian of g or `custom_linear_solve`. The guess has no derivative.
    With `has_aux`, `solve` returns (x, aux), and so does this function.

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

    function = guess.traced(f, f)
    solution, aux_tree = guess.traced_with_aux(lambda x: solve(f, x), solve, has_aux)
    moved = guess.traced(tangent, tangent_solve, 2)
    jaxprs, consts = with_common_consts([function, solution, moved])
    params = CustomRootParams(len(consts), *jaxprs)
    outs = custom_root_p.bind(params, *consts, *guess.operands())
    return with_aux(guess, outs, aux_tree, has_aux)
