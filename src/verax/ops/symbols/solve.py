"""Floor 2: the values of variables from the sizes of arrays.

A program that was traced on shapes with symbols is called with arrays: each size is an
equation for its dimension. Those in which one unknown variable stands alone are solved
one after the other; the rest, and the constraints of the scope, must then hold::

    steps, checks = solving_plan(shapes)
    env = solved(steps, checks, given, name_of)      # {"b": 3}
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from verax.ir.avals import Shape, SymbolicSize
from verax.ir.records import ReprMixin
from verax.ops.symbols.expression import (
    Size,
    SymbolicDim,
    dimension,
    evaluate,
    terms_of,
    variables,
)


@frozen(eq=False, repr=False)
class Step(ReprMixin):
    """How a variable is found: `factor * name + rest` is the size of an axis."""

    name: str
    argument: int
    axis: int
    factor: int
    rest: Size


@frozen(eq=False, repr=False)
class Equation(ReprMixin):
    """A dimension, and the axis of an argument that has its size."""

    dim: Size
    argument: int
    axis: int


@frozen(eq=False, repr=False)
class Plan(ReprMixin):
    """How the variables of some shapes are found, and what must hold of the sizes."""

    steps: tuple[Step, ...]
    equations: tuple[Equation, ...]
    constraints: tuple[Any, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, in the order in which they are found."""
        return tuple([step.name for step in self.steps])


def is_symbolic(shape: Shape) -> bool:
    """Whether a size is a symbol."""
    return any([isinstance(size, SymbolicSize) for size in shape])


def solving_plan(shapes: Sequence[Shape], needed: Sequence[Size] = ()) -> Plan:
    """The plan for arguments of these shapes; `needed` are dimensions beside them.

    Raises:
        ValueError: a variable cannot be found by solving for one at a time.
    """
    equations = [
        Equation(size, i, axis)
        for i, shape in enumerate(shapes)
        for axis, size in enumerate(shape)
    ]
    dims = [e.dim for e in equations if isinstance(e.dim, SymbolicDim)]
    unknown = set().union(*[variables(dim) for dim in (*dims, *needed)])
    steps: list[Step] = []
    while unknown:
        found = next(filter(None, [step_of(e, unknown) for e in equations]), None)
        if found is None:
            names = ", ".join(sorted(unknown))
            shown = ", ".join([f"({', '.join(map(str, s))})" for s in shapes])
            raise ValueError(
                f"Cannot solve for values of dimension variables {{{names!r}}}: each "
                "must stand alone, times an integer, in a size of an argument, when "
                f"those before it are known; the shapes are {shown}"
            )
        steps.append(found)
        unknown.discard(found.name)
    constraints = dims[0].scope.constraints if dims else ()
    known = {step.name for step in steps}
    kept = [one for one in constraints if variables(one.less) <= known]
    return Plan(tuple(steps), tuple(equations), tuple(kept))


def step_of(equation: Equation, unknown: set[str]) -> Step | None:
    """The step that an equation gives, if it has one unknown variable, and linear."""
    dim = equation.dim
    if not isinstance(dim, SymbolicDim) or len(variables(dim) & unknown) != 1:
        return None
    (name,) = variables(dim) & unknown
    terms = terms_of(dim)
    inside = [term for term in terms if name in term.variables()]
    factor = inside[0].factor
    if len(inside) != 1 or factor is None or factor.operands:
        return None
    n = terms.pop(inside[0])
    rest = dimension(terms, dim.scope)
    return Step(name, equation.argument, equation.axis, n, rest)


def solved(
    plan: Plan, shapes: Sequence[Shape], name_of: Callable[[int, int], str]
) -> Mapping[str, Any]:
    """The values of the variables for arguments of these shapes.

    `name_of(argument, axis)` names a size in messages.

    Raises:
        ValueError: a size does not fit.
    """
    env: dict[str, Any] = {}
    for step in plan.steps:
        size = shapes[step.argument][step.axis]
        where = name_of(step.argument, step.axis)
        value, left = divmod(size - evaluate(step.rest, env), step.factor)
        if left != 0:
            raise ValueError(
                f"Division had remainder {left} when computing the value of "
                f"'{step.name}' from {where} (= {size})"
            )
        if not value >= 1:
            raise ValueError(
                f"Expected value >= 1 for dimension variable '{step.name}', but found "
                f"{value} from {where} (= {size})"
            )
        env[step.name] = value
    for equation in plan.equations:
        size, due = (
            shapes[equation.argument][equation.axis],
            evaluate(equation.dim, env),
        )
        if size != due:
            raise ValueError(
                "Found inconsistency between dimension size "
                f"{name_of(equation.argument, equation.axis)} (= {size}) and the "
                f"specification '{equation.dim}' (= {due})"
            )
    for one in plan.constraints:
        value = evaluate(one.less, env)
        if not (value == 0 if one.equal else value >= 0):
            relation = "equal" if one.equal else "greater or equal"
            raise ValueError(
                f"Expected '{one.less}' to be {relation} to 0, but found {value}; the "
                f"program was exported with the constraint {one.text}"
            )
    return env
