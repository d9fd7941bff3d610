"""Floor 4: modules that name for each operation the user's line that made it.

One idea: an equation knows its source, and what its row writes is marked with it after
the fact, so that neither rows nor the ordinary text know of locations::

    lower(engine, jaxpr, "f", located=True).text
    # ... %1 = "stablehlo.sine"(%0) : ... loc("sin"("/home/me/model.py":12:1))
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from verax.backend.lowering.function_writer import EquationText, Platforms
from verax.backend.lowering.meshes import Meshes
from verax.backend.lowering.mlir_text import escaped
from verax.backend.lowering.module_writer import Env, Module, Writer
from verax.ir.jaxpr import Eqn
from verax.rules.rows.row import Engine

type Locate = Callable[[Eqn], str]
"""The location of an equation; empty if it has that of what is around it."""
QUOTED = r'"(?:[^"\\]|\\.)*"'
MARKED: Final = re.compile(rf" loc\({QUOTED}(?:\({QUOTED}:\d+:1\))?\)\n$")


class LocatedModule(Module):
    """A module whose operations have locations, which `locate` makes of equations."""

    def __init__(
        self,
        engine: Engine,
        platforms: Platforms,
        meshes: Meshes | None = None,
        locate: Locate | None = None,
    ) -> None:
        super().__init__(engine, platforms, meshes)
        self.locate = locate or location

    def writer(self) -> Writer:
        return LocatedWriter(self, self.locate)


class LocatedWriter(Writer):
    """Writes operations, each with the location of its equation."""

    def __init__(self, module: Module, locate: Locate) -> None:
        super().__init__(module)
        self.locate = locate

    def write_filled(self, text: EquationText, names: Sequence[str]) -> None:
        """Write a text operation by operation, since each has a location."""
        for template, order in text.operations:
            self.lines.append(template % tuple([names[i] for i in order]))

    def equation(self, eqn: Eqn, env: Env) -> None:
        start = len(self.lines)
        super().equation(eqn, env)
        place = self.locate(eqn)
        if not place:  # it belongs to the equation around this one
            return
        mark = f" {place}\n"
        for i in range(start, len(self.lines)):
            line = self.lines[i]
            if not MARKED.search(line):  # by an equation inside this one
                self.lines[i] = line.removesuffix("\n") + mark


def location(eqn: Eqn) -> str:
    """The location of an equation: the primitive, what derived it, the user's line.

    >>> from verax.ir.jaxpr import UNKNOWN_SOURCE, NO_PARAMS, Eqn
    >>> from verax.ops.elementwise.trig import sin_p
    >>> location(Eqn(sin_p, NO_PARAMS, (), (), UNKNOWN_SOURCE.derived("jvp")))
    'loc("jvp/sin")'
    """
    source = eqn.source
    name = f"{source.origin}/{eqn.primitive.name}" if source.origin else eqn.primitive
    text = f'"{escaped(str(name))}"'
    if not source.line:
        return f"loc({text})"
    return f'loc({text}("{escaped(source.file)}":{source.line}:1))'
