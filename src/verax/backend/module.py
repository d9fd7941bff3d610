"""Floor 4: the functions of a module under construction, and who writes their bodies.

One idea: a function is written once per jaxpr and once per long equation, and called
where it occurs again; the rows write the operations, the writer hands them around::

    module = Module(engine)
    module.function("main", jaxpr, (), public=True)
    module.functions          # ['  func.func public @main(...) ...']
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.backend.function_text import FunctionText
from verax.backend.host_calls import call_attributes, ordered_regions
from verax.backend.lowered import (
    array_constants,
    inner_constants,
    written_constant,
)
from verax.backend.mlir_text import mlir_type, symbol
from verax.backend.module_meshes import Meshes
from verax.backend.portable import renamed
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import stored_dtype
from verax.ir.effects import is_ordered
from verax.ir.jaxpr import Atom, Eqn, Identity, Jaxpr, Literal, Params, Var
from verax.ir.meshes import Layout
from verax.rules.emitter import TOKEN, HostCall, Operand, Region
from verax.rules.row import Engine, Row, missing

# Lines of text from which an equation that occurs again becomes a function.
LARGE = 4
type EquationKey = tuple[
    Row[Any], Params, tuple[ShapedArray, ...], tuple[ShapedArray, ...]
]


class Module:
    """The functions of a module; a private function is written once per jaxpr.

    An equation whose lowering is long is written in place the first time, and as a
    function that is called when an equal one occurs again.
    """

    def __init__(self, engine: Engine, order: tuple[int, ...] = ()) -> None:
        self.engine = engine
        self.meshes = Meshes(order)
        self.functions: list[str] = []
        self.calls: dict[tuple[HostCall, bool], int] = {}
        self.names: dict[Jaxpr, str] = {}
        self.taken: dict[str, int] = {}
        self.large: set[EquationKey] = set()
        self.long_rows: set[Row[Any]] = set()
        self.equations: dict[EquationKey, str] = {}
        self.copied: dict[str, str] = {}

    def fresh(self, name: str) -> str:
        """A function name that is not taken yet."""
        return symbol(name, self.taken)

    def writer(self) -> "Writer":
        """What writes the operations of one more function."""
        return Writer(self)

    def shared(self, key: EquationKey) -> str:
        """The symbol of the function for a long equation."""
        found = self.equations.get(key)
        if found is None:
            row, params, avals, outs = key
            found = self.equations[key] = self.fresh(row.name)
            writer = self.writer()
            consts = inner_constants(params)
            given = [writer.name(c.aval) for c in consts]
            writer.constants = {c.key: x for c, x in zip(consts, given, strict=True)}
            inputs = [writer.name(aval) for aval in avals]
            assert row.lower is not None
            results = row.lower(writer, params, inputs, outs)
            self.write(found, writer, [*given, *inputs], results)
        return f"@{found}"

    def private(self, jaxpr: Jaxpr, name: str) -> str:
        """The name of the function for `jaxpr`, which is written now if it is new."""
        found = self.names.get(jaxpr)
        if found is not None:
            return found
        found = self.names[jaxpr] = self.fresh(name)
        self.function(found, jaxpr, array_constants(jaxpr))
        return found

    def copy(self, text: str) -> str:
        """The symbol of `main` of another module, copied into this one if it is new."""
        found = self.copied.get(text)
        if found is None:
            functions, found = renamed(text, self.fresh)
            self.copied[text] = found
            self.functions.append(functions)
        return found

    def function(
        self,
        name: str,
        jaxpr: Jaxpr,
        consts: Sequence[Literal],
        marks: Sequence[str] = (),
        ends: Sequence[str] = (),
        *,
        public: bool = False,
    ) -> None:
        """Write one function: constants, then inputs, to outputs."""
        writer = self.writer()
        inputs = [writer.name(c.aval) for c in consts]
        writer.constants = {c.key: x for c, x in zip(consts, inputs, strict=True)}
        if public and not consts:
            written = array_constants(jaxpr)
            writer.constants = {c.key: written_constant(c) for c in written}
        inputs += [writer.name(v.aval) for v in jaxpr.invars]
        ordered = is_ordered(jaxpr.effects)
        if ordered:
            writer.start_order(public=public)
        outs = writer.inline(jaxpr, inputs[len(consts) :])
        if ordered and not public:
            inputs, outs = [writer.first_token, *inputs], (writer.token, *outs)
        self.write(name, writer, inputs, outs, marks, ends, public=public)

    def write(
        self,
        name: str,
        writer: "Writer",
        inputs: Sequence[Operand],
        outs: Sequence[Operand],
        marks: Sequence[str] = (),
        ends: Sequence[str] = (),
        *,
        public: bool = False,
    ) -> None:
        """The text of a function whose body `writer` has written.

        `marks` are the attributes of the arguments, `ends` those of the results.
        """
        params = ", ".join(
            f"{x.name}: {mlir_type(x.aval)}" + (f" {{{mark}}}" if mark else "")
            for x, mark in zip(inputs, [*marks, *[""] * len(inputs)], strict=False)
        )
        named = [writer.used(x) for x in outs]
        types = ", ".join(mlir_type(x.aval) for x in named)
        heads = types
        if any(ends):
            heads = ", ".join(
                mlir_type(x.aval) + (f" {{{end}}}" if end else "")
                for x, end in zip(named, ends, strict=True)
            )
        results = ", ".join(x.name for x in named)
        body = "".join(writer.lines)
        ending = f"    return {results} : {types}\n" if named else "    return\n"
        kind = "public" if public else "private"
        self.functions.append(
            f"  func.func {kind} @{name}({params}) -> ({heads}) {{\n"
            f"{body}{ending}  }}\n"
        )


class Writer(FunctionText):
    """Writes the operations of one function; the `Emitter` that rows speak to."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.module = module
        self.constants: dict[bytes | Identity, Operand] = {}
        self.token = self.first_token = Operand("", TOKEN)

    def threaded(
        self,
        name: str,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        regions: Sequence[tuple[Sequence[ShapedArray], Region]],
    ) -> tuple[Operand, ...]:
        """See `Emitter.threaded`."""
        return ordered_regions(self, name, operands, results, regions)

    def start_order(self, *, public: bool) -> None:
        """Begin the order of effects: `main` at once, a function where it is called."""
        if public:
            (self.token,) = self.op("stablehlo.create_token", (), (TOKEN,))
        else:
            self.token = self.first_token = self.name(TOKEN)

    def callback(
        self,
        function: HostCall,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        *,
        effect: bool,
        ordered: bool,
    ) -> tuple[Operand, ...]:
        """See `Emitter.callback`."""
        calls = self.module.calls
        index = calls.setdefault((function, ordered), len(calls))
        ins, outs = list(operands), list(results)
        if ordered:
            ins, outs = [self.token, *ins], [TOKEN, *outs]
        attributes = call_attributes(index, [x.aval for x in ins], outs, effect)
        if effect:
            attributes |= self.module.meshes.on_first_device(len(outs))
        found = self.op("stablehlo.custom_call", ins, outs, (), **attributes)
        if ordered:
            self.token, *rest = found
            return tuple(rest)
        return found

    def call(
        self, jaxpr: Jaxpr, operands: Sequence[Operand], name: str
    ) -> tuple[Operand, ...]:
        """See `Emitter.call`."""
        callee = f"@{self.module.private(jaxpr, name)}"
        consts = [self.constants[c.key] for c in array_constants(jaxpr)]
        ins, outs = [*consts, *operands], jaxpr.out_avals
        if not is_ordered(jaxpr.effects):
            return self.op("func.call", ins, outs, callee=callee)
        self.token, *found = self.op(
            "func.call", [self.token, *ins], (TOKEN, *outs), callee=callee
        )
        return tuple(found)

    def embed(
        self, text: str, operands: Sequence[Operand], results: Sequence[ShapedArray]
    ) -> tuple[Operand, ...]:
        """See `Emitter.embed`."""
        callee = f"@{self.module.copy(text)}"
        return self.op("func.call", operands, results, callee=callee)

    def inline(self, jaxpr: Jaxpr, operands: Sequence[Operand]) -> tuple[Operand, ...]:
        """See `Emitter.inline`."""
        env = list(operands)
        for eqn in jaxpr.eqns:
            env += self.equation(eqn, env)
        return tuple([self.read(a, env) for a in jaxpr.outvars])

    def layout(self, layout: Layout, aval: ShapedArray) -> str | None:
        """See `Emitter.layout`."""
        return self.module.meshes.layout(layout, aval)

    def batch(
        self, jaxpr: Jaxpr, size: int, axes: tuple[int | None, ...]
    ) -> tuple[Jaxpr, tuple[int | None, ...]]:
        """See `Emitter.batch`."""
        return self.module.engine.batch(jaxpr, size, axes)

    def equation(self, eqn: Eqn, env: Sequence[Operand]) -> Sequence[Operand]:
        """One equation, by the rule of its row."""
        row = self.module.engine.rules[eqn.primitive]
        if row.lower is None:
            raise missing(row, "lower", f"give its row lower=...; met at {eqn.source}")
        operands = [
            env[a.index] if type(a) is Var else self.read(a, env) for a in eqn.invars
        ]
        outs = tuple([v.aval for v in eqn.outvars])
        module = self.module
        if row in module.long_rows:
            key = (row, eqn.params, tuple([x.aval for x in operands]), outs)
            if key in module.large:
                consts = [self.constants[c.key] for c in inner_constants(eqn.params)]
                ins = [*consts, *operands]
                return self.op("func.call", ins, outs, callee=module.shared(key))
        start = len(self.lines)
        results = row.lower(self, eqn.params, operands, outs)
        written = self.lines[start:]
        short = len(written) == 1 and written[0].count("\n") == 1
        if short or is_ordered(eqn.effects):
            return results
        if sum([line.count("\n") for line in written]) >= LARGE:
            key = (row, eqn.params, tuple([x.aval for x in operands]), outs)
            module.large.add(key)
            module.long_rows.add(row)
        return results

    def read(self, atom: Atom, env: Sequence[Operand]) -> Operand:
        if type(atom) is Var:
            return env[atom.index]
        assert isinstance(atom, Literal)
        if atom.aval.shape:
            return self.constants[atom.key]
        return Operand(
            "", atom.aval, np.asarray(atom.value, stored_dtype(atom.aval.dtype))
        )
