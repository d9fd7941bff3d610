"""Floor 4: lowering, a jaxpr to the text of a StableHLO module.

One idea: the rows write the operations, this file gives them names. Array constants
are collected once per object and passed as leading arguments of every function that
needs them, so the text depends on the program alone and is its own cache key::

    lowered = lower(engine, jaxpr, "f")
    lowered.text
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.backend.host_calls import (
    HostCalls,
    call_attributes,
    ordered_regions,
)
from verax.backend.lowered import (
    Lowered,
    Spread,
    array_constants,
    inner_constants,
    written_constant,
)
from verax.backend.mlir_text import dense, mlir_type, stored_shape, symbol
from verax.backend.module_meshes import Meshes
from verax.backend.portable import renamed
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import stored_dtype
from verax.ir.effects import is_ordered
from verax.ir.jaxpr import Atom, Eqn, Identity, Jaxpr, Literal, Params, Var
from verax.ir.meshes import Layout
from verax.rules.emitter import TOKEN, HostCall, Operand, Region, i64s
from verax.rules.row import Engine, Row, missing


def lower(
    engine: Engine,
    jaxpr: Jaxpr,
    name: str,
    *,
    keep_unused: bool = False,
    donated: Sequence[bool] = (),
    spread: Spread | None = None,
    inline_constants: bool = False,
) -> Lowered:
    """The module of `jaxpr`, without dead code; deterministic.

    `donated[i]` lets XLA reuse the memory of argument i. With `inline_constants` the
    module holds its array constants, and takes none.

    Raises:
        MissingRule: a primitive has no lower rule.
    """
    slim, kept = engine.dce(jaxpr, (True,) * len(jaxpr.outvars))
    if keep_unused:
        slim, kept = jaxpr, (True,) * len(jaxpr.invars)
    module = Module(engine, () if spread is None else spread.order)
    consts = () if inline_constants else array_constants(slim)
    given = [d for d, flag in zip(donated, kept, strict=False) if flag]
    marks, ends = attributes(module, slim, consts, given, kept, spread)
    module.function("main", slim, consts, marks, ends, public=True)
    title = "".join(c if c.isalnum() or c in "_" else "_" for c in f"jit_{name}")
    count = max(1, len(module.meshes.order))
    header = (
        f"module @{title} attributes "
        f"{{mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
    )
    text = header + "".join([*module.meshes.lines(), *module.functions]) + "}\n"
    lent = tuple([i for i, d in enumerate(donated) if d and kept[i]])
    calls = HostCalls(tuple(module.calls), slim.effects)
    ins, outs = slim.in_avals, slim.out_avals
    return Lowered(text, consts, kept, ins, outs, lent, calls, name)


def attributes(
    module: "Module",
    jaxpr: Jaxpr,
    consts: Sequence[Literal],
    donated: Sequence[bool],
    kept: Sequence[bool],
    spread: Spread | None,
) -> tuple[list[str], list[str]]:
    """The attributes of the arguments and of the results of the main function."""
    donations = [*[False] * len(consts), *donated, *[False] * len(jaxpr.invars)]
    marks = ["jax.buffer_donor = true" if flag else "" for flag in donations]
    if spread is None:
        return marks, []
    wanted = [layout for layout, flag in zip(spread.ins, kept, strict=True) if flag]
    places = [*map(spread.of_constant, consts), *wanted]
    avals = [*[c.aval for c in consts], *jaxpr.in_avals]
    placed = [module.meshes.placed(*pair) for pair in zip(places, avals, strict=True)]
    pairs = zip(marks, placed, strict=False)
    outs = zip(spread.outs, jaxpr.out_avals, strict=True)
    ends = [module.meshes.placed(*pair) for pair in outs]
    return [", ".join(filter(None, pair)) for pair in pairs], ends


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

    def shared(self, key: EquationKey) -> str:
        """The symbol of the function for a long equation."""
        found = self.equations.get(key)
        if found is None:
            row, params, avals, outs = key
            found = self.equations[key] = self.fresh(row.name)
            writer = Writer(self)
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
        writer = Writer(self)
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


class Writer:
    """Writes the operations of one function; the `Emitter` that rows speak to."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.lines: list[str] = []
        self.count = 0
        self.constants: dict[bytes | Identity, Operand] = {}
        self.token = self.first_token = Operand("", TOKEN)
        self.scalars: dict[tuple[ShapedArray, bytes], Operand] = {}

    def name(self, aval: ShapedArray) -> Operand:
        """A fresh operand of the given type."""
        self.count += 1
        return Operand(f"%{self.count}", aval)

    def used(self, x: Operand) -> Operand:
        """The operand with a name: a constant is written before its first use."""
        if x.name:
            return x
        value = np.asarray(x.value, stored_dtype(x.aval.dtype))
        key = (x.aval, value.tobytes())
        found = self.scalars.get(key)
        if found is None:
            found = self.scalars[key] = self.name(x.aval)
            text = dense(value, x.aval)
            self.lines.append(f"    {found.name} = stablehlo.constant {text}\n")
        return found

    def op(
        self,
        name: str,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        regions: Sequence[tuple[Sequence[ShapedArray], Region]] = (),
        **attributes: str,
    ) -> tuple[Operand, ...]:
        """See `Emitter.op`."""
        xs = [x if x.name else self.used(x) for x in operands]
        ins = ", ".join([x.name for x in xs])
        types = ", ".join([mlir_type(x.aval) for x in xs])
        bodies = f" ({', '.join(map(self.region, regions))})" if regions else ""
        extra = ""
        if attributes:
            extra = f" {{{', '.join([f'{k} = {v}' for k, v in attributes.items()])}}}"
        if len(results) == 1:
            out = self.name(results[0])
            self.lines.append(
                f'    {out.name} = "{name}"({ins}){bodies}{extra} : '
                f"({types}) -> {mlir_type(out.aval)}\n"
            )
            return (out,)
        self.count += 1
        label = f"%{self.count}"
        made = ", ".join([mlir_type(aval) for aval in results])
        binding = f"{label}:{len(results)} = " if results else ""
        self.lines.append(
            f'    {binding}"{name}"({ins}){bodies}{extra} : ({types}) -> ({made})\n'
        )
        return tuple([Operand(f"{label}#{i}", a) for i, a in enumerate(results)])

    def region(self, region: tuple[Sequence[ShapedArray], Region]) -> str:
        """The text of a region: a block with arguments, ended by a return."""
        avals, body = region
        outer, self.lines = self.lines, []
        # What is written inside cannot be read outside; the reverse holds.
        around, self.scalars = self.scalars, dict(self.scalars)
        arguments = [self.name(aval) for aval in avals]
        outs = [self.used(x) for x in body(arguments)]
        inside, self.lines, self.scalars = "".join(self.lines), outer, around
        heads = ", ".join(f"{x.name}: {mlir_type(x.aval)}" for x in arguments)
        results = ", ".join(x.name for x in outs)
        types = ", ".join(mlir_type(x.aval) for x in outs)
        label = f"  ^bb0({heads}):\n" if arguments else ""
        return (
            f"{{\n{label}{inside}"
            f'    "stablehlo.return"({results}) : ({types}) -> ()\n    }}'
        )

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

    def constant(
        self, value: float | int | bool | complex | np.ndarray, aval: ShapedArray
    ) -> Operand:
        """See `Emitter.constant`."""
        return Operand("", aval, value)

    def broadcast(self, x: Operand, shape: Shape, dimensions: Shape) -> Operand:
        """See `Emitter.broadcast`."""
        if x.aval.shape == shape and dimensions == tuple(range(len(shape))):
            return x
        aval = x.aval.with_shape(shape)
        if not x.name and not x.aval.shape:
            return Operand("", aval, x.value)
        extra = len(stored_shape(x.aval)) - x.aval.ndim
        places = (*dimensions, *(len(shape) + i for i in range(extra)))
        (out,) = self.op(
            "stablehlo.broadcast_in_dim",
            (x,),
            (aval,),
            broadcast_dimensions=i64s(places),
        )
        return out

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
