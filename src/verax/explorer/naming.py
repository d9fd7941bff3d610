"""The names of what programs take: arguments, and what functions close over (floor 6).

A traced program takes first what its function closes over from the traces around it,
then the leaves of its arguments. The former have the names that they have there::

    scopes.add(jaxpr, inputs)
    scopes.names(jaxpr)      # ("tokens", "params['embed']")
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

from verax.ir.jaxpr import Jaxpr, Var
from verax.ir.records import ReprMixin

DESCRIBED: Final = re.compile(r"(?:keyword )?argument (.*) of [^ ]*", re.DOTALL)


@frozen(eq=False, repr=False)
class Inputs(ReprMixin):
    """What a trace knows of its inputs; see `Observer.traced`."""

    scope: object
    describe: Callable[[], Sequence[str]] | None
    captured: Sequence[tuple[object, object]]


class Scopes:
    """The programs of several traces, one inside another."""

    def __init__(self) -> None:
        self.inputs: dict[int, tuple[Jaxpr, Inputs]] = {}
        self.programs: dict[int, Jaxpr] = {}

    def add(self, jaxpr: Jaxpr, inputs: Inputs) -> None:
        """Keep what is known of the inputs of a program."""
        self.inputs[id(jaxpr)] = jaxpr, inputs
        self.programs[id(inputs.scope)] = jaxpr

    def names(self, jaxpr: Jaxpr) -> tuple[str, ...]:
        """The names of the inputs of a program; those that are not known are empty."""
        count = len(jaxpr.constvars) + len(jaxpr.invars)
        if id(jaxpr) not in self.inputs:
            return ("",) * count
        _, inputs = self.inputs[id(jaxpr)]
        around = [self.name(scope, atom) for scope, atom in inputs.captured]
        own = [] if inputs.describe is None else map(short, inputs.describe())
        names = (*around, *own)
        return names if len(names) == count else ("",) * count

    def name(self, scope: object, atom: object) -> str:
        """The name of a value of a trace, if it is one of its inputs."""
        jaxpr = self.programs.get(id(scope))
        if jaxpr is None or not isinstance(atom, Var):
            return ""
        places = {v: i for i, v in enumerate((*jaxpr.constvars, *jaxpr.invars))}
        return self.names(jaxpr)[places[atom]] if atom in places else ""


def short(described: str) -> str:
    """The name of a leaf in messages, as it stands in the function.

    >>> short("argument params['w'] of loss"), short("argument 2 of <lambda>")
    ("params['w']", 'argument 2')
    """
    match = DESCRIBED.fullmatch(described)
    name = described if match is None else match[1]
    return f"argument {name}" if name[:1].isdigit() else name
