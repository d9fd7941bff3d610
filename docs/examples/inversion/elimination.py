"""Elimination: the equations of a program, solved for its inputs one at a time.

One idea: a variable is a cell that becomes known, whole or by slices, and each equation
is used exactly once, forwards or backwards::

    inverted(jaxpr, (False, True), table)    # (a, y) -> (x, log |det dy/dx|)
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from attrs import Factory, define, evolve, frozen
from pyrsistent import PMap

import verax.numpy as vnp
from verax import Array, lax
from verax.extend import STANDARD, MissingRule, Row
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Primitive, Var
from verax.ir.walk import defined_variables
from verax.rules.rows.builder import program
from verax.rules.rows.infer import chosen, others
from verax.transforms.engine.partial_eval import dce
from verax.transforms.passes.cse import cse


class NotInvertible(ValueError):
    """The program is no bijection, or not one that can be solved step by step."""


@frozen
class Known:
    """An equation whose results are known, and those operands that are.

    `missing` marks the others. `avals` are the types of the operands.
    """

    table: "Inverses"
    row: Row[Any]
    params: Any
    results: tuple[Array, ...]
    operands: tuple[Array | None, ...]
    avals: tuple[ShapedArray, ...]

    @property
    def missing(self) -> tuple[bool, ...]:
        return tuple([x is None for x in self.operands])

    @property
    def place(self) -> int:
        """Where the one unknown operand stands."""
        return self.missing.index(True)

    @property
    def other(self) -> Array:
        """The known operand of two."""
        actual = self.operands[1 - self.place]
        assert actual is not None
        return actual


type Rule = Callable[[Known], tuple[Sequence[Array], Array | float]]
"""The missing operands, and log |det of d results / d missing|."""


@frozen(eq=False)
class Inverses:
    """The table: `alone` has rules for one missing operand, `any_number` for more."""

    alone: PMap[Primitive, Rule]
    any_number: PMap[Primitive, Rule]

    def __or__(self, rules: Mapping[Primitive, Rule]) -> "Inverses":
        return evolve(self, alone=self.alone.update(rules))

    def rule(self, eqn: Eqn, missing: int) -> Rule | None:
        """The rule for an equation with so many operands missing, if it is solvable."""
        actual = self.any_number.get(eqn.primitive)
        if actual is not None or missing != 1:
            return actual
        if eqn.primitive not in self.alone:
            name = eqn.primitive.name
            raise MissingRule(
                f"the primitive {name} has no rule in the table 'inverses'; join one: "
                f"INVERSES | {{{name}_p: elementwise(...)}}; met at {eqn.source}"
            )
        return self.alone[eqn.primitive]


@define(eq=False)
class Cell:
    """What is known of a variable: some elements, or all."""

    value: Array | None
    mask: Any

    @property
    def whole(self) -> Array | None:
        return self.value if self.mask.all() else None


type Where = tuple[slice, ...]


def places(eqn: Eqn) -> list[Where]:
    """Where in its operand each result of a slice or a split stands."""
    p: Any = eqn.params
    if eqn.primitive is lax.split_p:
        before = (slice(None),) * p.axis
        ends = list(accumulate(p.sizes, initial=0))
        return [(*before, slice(*bound)) for bound in pairwise(ends)]
    strides = p.strides or (1,) * len(p.start_indices)
    bounds = zip(p.start_indices, p.limit_indices, strides, strict=True)
    return [tuple([slice(*bound) for bound in bounds])]


@define(eq=False)
class Elimination:
    """The state of one solution; it is born and dies inside `inverted`."""

    table: Inverses
    cells: list[Cell]
    log_det: Array | float = 0.0
    used: set[Var] = Factory(set)
    """Results of slices and splits that have been used."""

    def read(self, atom: Atom) -> Array | None:
        if isinstance(atom, Literal):
            return vnp.asarray(atom.value).astype(atom.aval.dtype)
        return self.cells[atom.index].whole

    def learn(self, atom: Atom, value: Array, where: Any = ...) -> None:
        """Note the value of a variable, or of some of its elements.

        Raises:
            NotInvertible: it has been found in another way already.
        """
        if isinstance(atom, Literal) or self.cells[atom.index].mask[where].any():
            raise NotInvertible(
                "a value is determined twice: the program maps to too few points"
            )
        cell = self.cells[atom.index]
        cell.mask[where] = True
        if cell.mask.all() and where is ...:
            cell.value = value
            return
        if cell.value is None:
            cell.value = vnp.zeros(atom.aval.shape, value.dtype)
        cell.value = cell.value.at[where].set(value)

    def try_part(self, x: Var, y: Var, where: Where) -> bool:
        """A part says as much of its operand as the operand says of it."""
        cell, known = self.cells[x.index], self.read(y)
        if cell.mask[where].all() and cell.value is not None:
            self.learn(y, cell.value[where])
        elif known is not None:
            self.learn(x, known, where)
        else:
            return False
        return True

    def try_eqn(self, eqn: Eqn) -> bool:
        """Use an equation in one direction or the other, if it is ready."""
        if eqn.primitive in (lax.slice_p, lax.split_p) and isinstance(
            operand := eqn.invars[0], Var
        ):
            for part, where in zip(eqn.outvars, places(eqn), strict=True):
                if part not in self.used and self.try_part(operand, part, where):
                    self.used.add(part)
            return self.used.issuperset(eqn.outvars)
        row = eqn.primitive
        assert isinstance(row, Row)
        operands = tuple([self.read(a) for a in eqn.invars])
        unknown = sum([x is None for x in operands])
        if not unknown:
            outs = row.bind(eqn.params, *operands)
            for var, out in zip(eqn.outvars, outs, strict=True):
                self.learn(var, out)
            return True
        results = [y for y in [self.read(v) for v in eqn.outvars] if y is not None]
        rule = None
        if len(results) == len(eqn.outvars):
            rule = self.table.rule(eqn, unknown)
        if rule is None:
            return False
        avals = tuple([a.aval for a in eqn.invars])
        known = Known(self.table, row, eqn.params, tuple(results), operands, avals)
        actual, log_det = rule(known)
        for atom, x in zip(chosen(known.missing, eqn.invars), actual, strict=True):
            self.learn(atom, x)
        self.log_det = self.log_det + log_det
        return True


@lru_cache(maxsize=1024)
def inverted(jaxpr: Jaxpr, unknown: tuple[bool, ...], table: Inverses) -> Jaxpr:
    """The program (known inputs, outputs) -> (unknown inputs, log |det d out / d in|).

    Raises:
        NotInvertible: the equations do not determine the unknown inputs.
        MissingRule: an equation could, if its primitive had a rule.
    """
    every = (True,) * len(jaxpr.outvars)
    slim = cse(dce(STANDARD, jaxpr, every, keep=len(jaxpr.invars))[0])
    sizes = [v.aval.shape for v in defined_variables(slim)]
    given = others(unknown, slim.invars)
    dtype = vnp.promote_types(slim.out_avals[0].dtype, float) if slim.outvars else float

    def body(*args: Array) -> list[Array]:
        cells = [Cell(None, np.zeros(shape, bool)) for shape in sizes]
        state = Elimination(table, cells)
        for atom, x in zip([*given, *slim.outvars], args, strict=True):
            state.learn(atom, x)
        pending = list(slim.eqns)
        while left := [eqn for eqn in pending if not state.try_eqn(eqn)]:
            if len(left) == len(pending):
                break
            pending = left
        actual = [state.read(v) for v in chosen(unknown, slim.invars)]
        if any(x is None for x in actual):
            raise stuck(left)
        return [
            *[x for x in actual if x is not None],
            vnp.asarray(state.log_det, dtype),
        ]

    inputs = [v.aval for v in given]
    return program([*inputs, *[a.strong() for a in slim.out_avals]], body)


def stuck(left: Sequence[Eqn]) -> NotInvertible:
    """The error for equations that have too many unknowns."""
    places = "; ".join([f"{eqn.primitive.name} at {eqn.source}" for eqn in left[:4]])
    return NotInvertible(
        "the outputs do not determine the inputs step by step: two unknowns meet, or "
        f"some are never used. Not solved: {places or 'an input that nothing uses'}"
    )
