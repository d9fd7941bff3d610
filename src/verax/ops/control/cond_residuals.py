"""Floor 2: where the branches of a split `cond` keep their residuals.

One idea: only one branch runs, so residuals of one type share a place, what a branch
does not fill holds anything, and an operand that is saved as it is needs no place::

    plan = slots.plan(half)           # for each residual: an operand, or a place
"""

from collections.abc import Sequence

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.subjaxprs import Halves, blank, inlined, positions
from verax.rules.rows.builder import program
from verax.rules.values.array import Array

type Plan = list[tuple[bool, int]]


class Slots:
    """Places for the residuals of all branches; branches share places of one type.

    `forwarded` are the known operands that a branch saves as they are.
    """

    def __init__(self) -> None:
        self.types: list[ShapedArray] = []
        self.forwarded: dict[int, None] = {}

    def plan(self, half: Halves) -> Plan:
        """For each residual of a branch: whether it is an operand, and its place."""
        inputs, taken, plan = positions(half.first), set[int](), []
        for atom in half.residuals():
            if atom in inputs:
                self.forwarded[inputs[atom]] = None
                plan.append((True, inputs[atom]))
                continue
            place = self.free(atom.aval, taken)  # type: ignore[attr-defined]  # an atom
            taken.add(place)
            plan.append((False, place))
        return plan

    def free(self, aval: ShapedArray, taken: set[int]) -> int:
        """A place of this type that the branch does not use yet."""
        for i, found in enumerate(self.types):
            if found is aval and i not in taken:
                return i
        self.types.append(aval)
        return len(self.types) - 1

    def first(self, half: Halves, plan: Plan) -> Jaxpr:
        """The known part of a branch: its results, then something for each place."""
        count = len(half.first.outvars) - half.count

        def body(*xs: Array) -> Sequence[object]:
            outs = inlined(half.first, xs)
            places = {
                place: x
                for (is_input, place), x in zip(plan, outs[count:], strict=True)
                if not is_input
            }
            rest = [places.get(i) for i in range(len(self.types))]
            return outs[:count] + [
                blank(aval) if x is None else x
                for x, aval in zip(rest, self.types, strict=True)
            ]

        return program(half.first.in_avals, body)

    def second(self, half: Halves, plan: Plan) -> Jaxpr:
        """The rest of a branch, on forwarded operands, places, unknown operands."""
        order = list(self.forwarded)
        count, total = len(order), len(order) + len(self.types)

        def body(*xs: Array) -> Sequence[object]:
            saved = [
                xs[order.index(place)] if is_input else xs[count + place]
                for is_input, place in plan
            ]
            return inlined(half.second, [*saved, *xs[total:]])

        avals = half.first.in_avals
        unknown = half.second.in_avals[half.count :]
        return program([*[avals[i] for i in order], *self.types, *unknown], body)
