"""Floor 4: the functions of a module under construction, and writers of their bodies.

One idea: a function is written once per jaxpr and once per long equation, and called
where it occurs again; the rows write the operations, the writer hands them around::

    module = Module(engine)
    module.function("main", jaxpr, (), public=True)
    module.functions          # ['  func.func public @main(...) ...']
"""

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, Final

from verax.backend.lowering.function_writer import (
    EquationText,
    FunctionText,
    Needed,
    NeedsModule,
    Platforms,
    SeveralPlatforms,
    Summed,
    call_text,
    common_rule,
    empty_text,
    equation_text,
    is_empty,
    only,
)
from verax.backend.lowering.mlir_text import (
    PARTITIONED_TARGETS,
    Memories,
    Meshes,
    PartitionCall,
    array_constants,
    call_attributes,
    composite_attributes,
    inner_constants,
    mlir_type,
    ordered_regions,
    partition_attributes,
    symbol,
    written_constant,
)
from verax.backend.lowering.stablehlo_io import renamed
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import device_value, int32
from verax.ir.effects import is_ordered
from verax.ir.jaxpr import Atom, Eqn, Identity, Jaxpr, Literal, Params, Var
from verax.ir.meshes import Explicit, Layout, terms_of
from verax.ops.structure.reshard import DEVICE, moved
from verax.rules.rows.emitter import (
    TOKEN,
    Composite,
    HostCall,
    Operand,
    Partitioner,
    Region,
    View,
    constrained,
)
from verax.rules.rows.infer import Mask
from verax.rules.rows.row import (
    Engine,
    MissingRule,
    SomeRow,
    as_typed,
    is_split,
    stripped,
)
from verax.rules.rows.type_shardings import common_mesh
from verax.rules.values.memo import recall
from verax.transforms.engine.engine import literal_value
from verax.transforms.engine.partial_eval import variables
from verax.transforms.engine.templates import Avals, types
from verax.transforms.pipeline import Body, body_of

# Lines of text from which an equation that occurs again becomes a function.
LARGE = 4
type EquationKey = tuple[
    SomeRow, Params, tuple[ShapedArray, ...], tuple[ShapedArray, ...]
]
type Kind = tuple[Hashable, ...]
type Value = str | Operand | Literal
"""The name of what is written already, or a constant that may still be written."""
type Env = list[Value]
PLATFORM: Final = Operand("%platform", ShapedArray((), int32))
"""The argument that says which of its platforms a module for several runs on."""
OF_PLATFORM: Final = 'jax.global_constant = "_platform_index"'
UNSEEN: Final = EquationText("", (), (), 0, (), 0)


class Module:
    """The functions of a module; a private function is written once per jaxpr.

    An equation whose lowering is long is written in place the first time, and as a
    function that is called when an equal one occurs again. A module is for `platforms`;
    where a rule differs between them, there is a choice of one `part` for each, and the
    functions of which such a choice is part, named in `choosing`, take the platform.
    """

    def __init__(
        self, engine: Engine, platforms: Platforms, meshes: Meshes | None = None
    ) -> None:
        self.engine = engine
        self.platforms = platforms
        self.choosing: set[str] = set()
        self.parts: dict[str, Module] = {}
        self.meshes = meshes or Meshes()
        self.functions: list[str] = []
        self.calls: dict[tuple[HostCall, bool], int] = {}
        self.partitions: dict[PartitionCall, dict[str, str]] = {}
        self.names: dict[Jaxpr, str] = {}
        self.taken: dict[str, int] = {}
        self.kinds: dict[Kind, EquationText | None] = {}
        self.large: set[EquationKey] = set()
        self.equations: dict[EquationKey, str] = {}
        self.copied: dict[str, str] = {}

    def part(self, platform: str) -> "Module":
        """The same module, as code is written that runs on one of its platforms."""
        entry = self.parts.get(platform)
        if entry is None:
            entry = self.parts[platform] = copy(self)
            entry.platforms, entry.parts = (platform,), {}
            entry.names, entry.kinds = {}, {}
            entry.large, entry.equations = set(), {}
        return entry

    def fresh(self, name: str) -> str:
        """A function name that is not taken yet."""
        return symbol(name, self.taken)

    def writer(self) -> "Writer":
        """A writer of the operations of one more function."""
        return Writer(self)

    def begin(
        self, writer: "Writer", arguments: Sequence[Operand], *, public: bool
    ) -> None:
        """Write what a function begins with that has these arguments."""

    def parameters(
        self, writer: "Writer", *, public: bool
    ) -> list[tuple[Operand, str]]:
        """The parameters of a function before its arguments, with attributes."""
        return [(PLATFORM, OF_PLATFORM)] if writer.choosing else []

    def passed(self, writer: "Writer", symbol: str) -> list[Operand]:
        """The operands that a call of a function passes before its arguments."""
        if symbol not in self.choosing:
            return []
        writer.choosing = True
        return [PLATFORM]

    def row_of(self, eqn: Eqn) -> SomeRow:
        """The row of an equation.

        Raises:
            MissingRule: it has no lowering for a platform of the module.
        """
        row = self.engine.rules[eqn.primitive]
        try:
            for platform in self.platforms:
                row.lowering(platform)
        except MissingRule as error:
            raise MissingRule(f"{error}; met at {eqn.source}") from None
        return row

    def text_for(self, eqn: Eqn, kind: Kind, scalars: Mask) -> EquationText | None:
        """The text of the equations of a kind, None if their rule is to be asked."""
        row = self.row_of(eqn)
        key = (row, eqn.params, types(eqn.invars), types(eqn.outvars))
        text = None
        if is_split((*key[2], *key[3])):
            self.kinds[kind] = None
            return None
        if is_empty(row, eqn.params, key[3]):
            text = empty_text(key[3])
        elif key in self.large and not any(eqn.params.subjaxprs()):
            text = call_text(
                self.engine, f"@{self.shared(key)}", key[2], key[3], scalars
            )
        elif not any(eqn.params.subjaxprs()):
            with suppress(NeedsModule):
                text = recall(
                    equation_text, key[1], self.engine, self.platforms, *key, scalars
                )
        if text is not None and text.size >= LARGE and key not in self.large:
            self.large.add(key)
        else:
            self.kinds[kind] = text
        return text

    def shared(self, key: EquationKey) -> str:
        """The symbol of the function for a long equation."""
        entry = self.equations.get(key)
        if entry is None:
            row, params, avals, outs = key
            entry = self.equations[key] = self.fresh(row.name)
            writer = self.writer()
            consts = inner_constants(params)
            given = [writer.name(c.aval) for c in consts]
            writer.constants = {c.key: x for c, x in zip(consts, given, strict=True)}
            inputs = [writer.name(aval) for aval in avals]
            results = lowered(writer, row, params, inputs, outs)
            self.write(entry, writer, [*given, *inputs], results)
        return entry

    def private(self, jaxpr: Jaxpr, name: str) -> str:
        """The name of the function for `jaxpr`, which is written now if it is new."""
        entry = self.names.get(jaxpr)
        if entry is not None:
            return entry
        entry = self.names[jaxpr] = self.fresh(name)
        body = body_of(jaxpr)
        self.function(entry, body, body.consts)
        return entry

    def copy(self, text: str) -> str:
        """The symbol of `main` of another module, copied into this one if it is new."""
        entry = self.copied.get(text)
        if entry is None:
            functions, entry = renamed(text, self.fresh)
            self.copied[text] = entry
            self.functions.append(functions)
        return entry

    def function(
        self,
        name: str,
        body: Body,
        consts: Sequence[Literal],
        marks: Sequence[str] = (),
        ends: Sequence[str] = (),
        public: bool = False,
        memories: Memories | None = None,
        summed: Sequence[Layout | None] = (),
    ) -> None:
        """Write one function: constants, then inputs, to outputs.

        With `memories`, inputs come from them and outputs go there: what is computed
        is in the device's own. On the CPU all memories are one. Outputs are brought to
        where `summed` says.
        """
        writer = self.writer()
        inputs = [writer.name(c.aval) for c in consts]
        writer.constants = {c.key: x for c, x in zip(consts, inputs, strict=True)}
        if public and not consts:
            writer.constants = {c.key: written_constant(c) for c in body.consts}
        env: Env = [""] * body.size
        for var in body.invars:
            inputs.append(writer.name(var.aval))
            env[var.index] = inputs[-1].name
        self.begin(writer, inputs[len(consts) :], public=public)
        far = None if self.platforms == ("cpu",) else memories
        if far is not None:
            given = [writer.operand(env[v.index], v.aval) for v in body.invars]
            for var, x in zip(body.invars, fetched(writer, given, far), strict=True):
                env[var.index] = x.name
        ordered = is_ordered(body.effects)
        if ordered:
            writer.start_order(public=public)
        writer.run(body.eqns, env)
        outs = [writer.read(a, env) for a in body.outvars]
        if summed:
            outs = [brought(writer, *x) for x in zip(outs, summed, strict=True)]
        if far is not None:
            outs = sent(writer, outs, far)
        if ordered and not public:
            inputs, outs = [writer.first_token, *inputs], [writer.token, *outs]
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
        if writer.choosing:
            self.choosing.add(name)
        first = self.parameters(writer, public=public)
        if first:
            inputs = [*[x for x, _ in first], *inputs]
            marks = [*[mark for _, mark in first], *marks]
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


def laid_out(
    writer: "Writer", values: Sequence[Operand], layouts: Sequence[Layout | None]
) -> tuple[Operand, ...]:
    """The values, brought to where layouts over positions of devices say."""
    if not any(layouts):
        return tuple(values)
    meshes, placed = writer.module.meshes, list(values)
    for i, (x, layout) in enumerate(zip(values, layouts, strict=True)):
        here = meshes.numbered(layout)
        text = None if here is None else meshes.layout(here, x.aval)
        if text is not None:
            (placed[i],) = writer.op(
                "sdy.sharding_constraint", (x,), (x.aval,), sharding=text
            )
    return tuple(placed)


class Writer(FunctionText):
    """Writes the operations of one function; the `Emitter` that rows speak to."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.module = module
        # See `Emitter`: what is said of meshes.
        self.layout, self.meeting = module.meshes.layout, module.meshes.meeting
        self.typed_layout = module.meshes.typed_layout
        self.num_devices = max(1, len(module.meshes.order))
        self.constants: dict[bytes | Identity, Operand] = {}
        self.token = self.first_token = Operand("", TOKEN)
        self.choosing = False

    @property
    def platform(self) -> str:
        """See `Emitter.platform`."""
        return only(self.module.platforms)

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
        everywhere: bool = False,
        partitioned: bool = False,
    ) -> tuple[Operand, ...]:
        """See `Emitter.callback`."""
        calls = self.module.calls
        index = calls.setdefault((function, ordered), len(calls))
        ins, outs = list(operands), list(results)
        if ordered:
            ins, outs = [self.token, *ins], [TOKEN, *outs]
        types = [x.aval for x in ins]
        attributes = call_attributes(index, types, outs, effect, self.platform)
        if partitioned and len(self.module.meshes.order) > 1:
            attributes["call_target_name"] = PARTITIONED_TARGETS[self.platform]
        elif not everywhere:
            attributes |= self.module.meshes.on_first_device(len(outs))
        out = self.op("stablehlo.custom_call", ins, outs, (), **attributes)
        if ordered:
            self.token, *rest = out
            return tuple(rest)
        return out

    def partitioned(
        self,
        rule: Partitioner,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
    ) -> tuple[Operand, ...] | None:
        """See `Emitter.partitioned`."""
        module, meshes = self.module, self.module.meshes
        mesh = meshes.mesh if len(meshes.order) > 1 else None
        number, view = len(module.partitions), isinstance(rule, View)
        place = number if view else None
        call = PartitionCall(rule, mesh, module.engine, self.platform, place)
        if mesh is None:
            if view:
                module.partitions[call] = {}
            return None
        attributes = module.partitions.get(call)
        if attributes is None:
            attributes = partition_attributes(number, rule.factors(mesh), effect=view)
            module.partitions[call] = attributes
        return self.op("stablehlo.custom_call", operands, results, (), **attributes)

    def call(
        self,
        jaxpr: Jaxpr,
        operands: Sequence[Operand],
        name: str,
        composite: Composite | None = None,
    ) -> tuple[Operand, ...]:
        """See `Emitter.call`."""
        symbol = self.module.private(jaxpr, name)
        consts = [constant_array(self, c) for c in array_constants(jaxpr)]
        ins, outs = [*consts, *operands], jaxpr.out_avals
        if not is_ordered(jaxpr.effects):
            return called(self, symbol, ins, outs, composite)
        self.token, *out = called(self, symbol, [self.token, *ins], (TOKEN, *outs))
        return tuple(out)

    def embed(
        self,
        text: str,
        operands: Sequence[Operand],
        results: Sequence[ShapedArray],
        ins: Sequence[Layout | None] = (),
        outs: Sequence[Layout | None] = (),
    ) -> tuple[Operand, ...]:
        """See `Emitter.embed`."""
        callee = f"@{self.module.copy(text)}"
        operands = laid_out(self, operands, ins)
        values = self.op("func.call", operands, results, callee=callee)
        return laid_out(self, values, outs)

    def inline(self, jaxpr: Jaxpr, operands: Sequence[Operand]) -> tuple[Operand, ...]:
        """See `Emitter.inline`."""
        operands = held_terms(self, operands, [v.aval for v in jaxpr.invars])
        env: Env = [x.name or x for x in operands]
        env += [""] * (variables(jaxpr) - len(env))
        self.run(jaxpr.eqns, env)
        return tuple([self.read(a, env) for a in jaxpr.outvars])

    def batch(
        self, jaxpr: Jaxpr, size: int, axes: tuple[int | None, ...]
    ) -> tuple[Jaxpr, tuple[int | None, ...]]:
        """See `Emitter.batch`."""
        return self.module.engine.batch(jaxpr, size, axes)

    def run(self, eqns: Iterable[Eqn | None], env: Env) -> None:
        """Write equations in order; `env` gets their results."""
        for eqn in eqns:
            if eqn is not None:
                self.equation(eqn, env)

    def equation(self, eqn: Eqn, env: Env) -> None:
        """One equation: its text filled in, or else written by the rule of its row."""
        invars, outvars = eqn.invars, eqn.outvars
        given = [env[a.index] if type(a) is Var else self.literal(a) for a in invars]
        if self.told:
            value = self.by_rule(eqn, given)
            for var, result in zip(outvars, value, strict=True):
                env[var.index] = result
            return
        kind: Kind = (
            eqn.primitive,
            eqn.params,
            tuple([a.aval for a in invars]),
            tuple([v.aval for v in outvars]),
        )
        scalars: Mask | None = None
        for x in given:
            if type(x) is not str:
                scalars = tuple([type(x) is not str for x in given])
                kind = (*kind, scalars)
                break
        text = self.module.kinds.get(kind, UNSEEN)
        if text is UNSEEN:
            scalars = (False,) * len(given) if scalars is None else scalars
            text = self.module.text_for(eqn, kind, scalars)
        if text is not None and text.simple:
            self.count += 1
            env[outvars[0].index] = name = f"%{self.count}"
            self.lines.append(text.template % (name, *given))
            return
        results = self.by_rule(eqn, given) if text is None else self.fill(text, given)
        for var, result in zip(outvars, results, strict=True):
            env[var.index] = result

    def fill(self, text: EquationText, given: list[Value]) -> list[Value]:
        """Write a text on operands; what its results are here."""
        names: list[Any] = given
        if text.needed:
            names = given + [self.written(needed, given) for needed in text.needed]
        first = self.count + 1
        self.count += text.fresh
        names += [f"%{i}" for i in range(first, self.count + 1)]
        self.write_filled(text, names)
        return [
            self.constant_of(x, given) if isinstance(x, Needed) else names[x[0]] + x[1]
            for x in text.results
        ]

    def write_filled(self, text: EquationText, names: Sequence[str]) -> None:
        """Write a text with names in it."""
        self.lines.append(text.template % tuple([names[i] for i in text.order]))

    def constant_of(self, needed: Needed, given: Sequence[Value]) -> Operand:
        """A constant of a text, not yet written."""
        if needed.place is None:
            return Operand("", needed.aval, needed.value)
        x = given[needed.place]
        assert not isinstance(x, str)
        value = x.value if isinstance(x, Operand) else literal_value(x)
        return Operand("", needed.aval, value)

    def written(self, needed: Needed, given: Sequence[Value]) -> str:
        """The name of a constant that stands before a text."""
        key: Kind = (needed,)
        if needed.place is not None:
            x = given[needed.place]
            if type(x) is not Literal:
                return self.used(self.constant_of(needed, given)).name
            key = (needed.aval, x.aval, x.key)
        entry = self.scalars.get(key)
        if entry is None:
            entry = self.used(self.constant_of(needed, given))
            self.scalars[key] = entry
        return entry.name

    def by_rule(self, eqn: Eqn, given: Sequence[Value]) -> Sequence[Value]:
        """An equation whose rule speaks of more than its operands."""
        module = self.module
        row = module.row_of(eqn)
        avals, outs = lowered_types(row, types(eqn.invars), types(eqn.outvars))
        operands = [self.operand(x, aval) for x, aval in zip(given, avals, strict=True)]
        key = (row, eqn.params, avals, outs)
        terms = summed_operands(self, row, eqn, operands)
        alike = not self.told and terms is None  # a function knows of no terms
        if key in module.large and alike:
            consts = [constant_array(self, c) for c in inner_constants(eqn.params)]
            ins = [*consts, *operands]
            out = called(self, module.shared(key), ins, outs)
            return [x.name for x in split_as_typed(self, row, eqn, out)]
        start, ordered = len(self.lines), is_ordered(eqn.effects)
        self.terms = terms
        results = lowered(self, row, eqn.params, operands, outs, ordered=ordered)
        self.terms = None
        size = sum([line.count("\n") for line in self.lines[start:]])
        if size >= LARGE and not ordered and alike:
            module.large.add(key)
        results = split_as_typed(self, row, eqn, results)
        return [x.name or x for x in results]

    def literal(self, atom: Atom) -> Value:
        """The operand for a literal: the array that is an argument, or the scalar."""
        assert isinstance(atom, Literal)
        if not atom.aval.shape:
            return atom
        out = constant_array(self, atom)
        return out.name or out

    def operand(self, x: Value, aval: ShapedArray) -> Operand:
        """A value as rules take it."""
        if isinstance(x, str):
            return Operand(x, aval)
        if isinstance(x, Operand):
            return x
        value = device_value(literal_value(x), aval.dtype)
        return Operand("", aval, value)

    def read(self, atom: Atom, env: Env) -> Operand:
        value = env[atom.index] if type(atom) is Var else self.literal(atom)
        return self.operand(value, atom.aval)


def lowered_types(row: SomeRow, avals: Avals, outs: Avals) -> tuple[Avals, Avals]:
    """The types of operands and results as a rule sees them: nothing splits them.

    Rules that say how values lie see all.
    """
    if row.sharding is as_typed or not is_split((*avals, *outs)):
        return avals, outs
    return tuple(stripped(avals)), tuple(stripped(outs))


def split_as_typed(
    writer: Writer, row: SomeRow, eqn: Eqn, results: Sequence[Operand]
) -> Sequence[Operand]:
    """Results of an equation, which lie as explicit mesh axes in its types say."""
    avals, outs = types(eqn.invars), types(eqn.outvars)
    if row.sharding is as_typed:
        return held_terms(writer, results, outs)
    if not is_split((*avals, *outs)):
        return results
    mesh = common_mesh((*avals, *outs))
    assert mesh is not None
    return constrained(writer, results, outs, mesh)


def summed_operands(
    writer: Writer, row: SomeRow, eqn: Eqn, operands: Sequence[Operand]
) -> Summed | None:
    """Flags of a linear row's operands that have terms, if some do.

    What the rule makes of them is split as what has the same shape, or the same but for
    dimensions of one element.
    """
    if row.sharding is as_typed:
        return None
    avals = types(eqn.invars)
    known = [x for a in avals if (x := a.explicit) is not None and x.terms.unreduced]
    if not known:
        return None
    outs = types(eqn.outvars)
    typed = [(a.shape, x) for a in (*avals, *outs) if (x := a.explicit) in known]
    typed += [(a.shape, x) for a in outs if (x := a.explicit) is not None]
    same = {shape: x.splits for shape, x in typed if x is not None}
    alike = {several(s, s): several(s, splits) for s, splits in same.items()}
    whole, meshes = known[0], writer.module.meshes

    def text(aval: ShapedArray) -> str | None:
        splits = same.get(aval.shape)
        if splits is None:
            rest = iter(alike.get(several(aval.shape, aval.shape), ()))
            splits = tuple([() if n == 1 else next(rest, ()) for n in aval.shape])
        return meshes.typed_layout(
            whole.mesh, aval.with_explicit(Explicit(whole.mesh, splits, whole.terms))
        )

    names = {
        x.name
        for x, aval in zip(operands, avals, strict=True)
        if terms_of(aval.explicit).unreduced
    }
    return Summed(names, text)


def several[T](shape: Shape, items: Sequence[T]) -> tuple[T, ...]:
    """Items, one for a dimension, without those of dimensions of one element."""
    return tuple([x for n, x in zip(shape, items, strict=True) if n != 1])


def held_terms(
    writer: Writer, xs: Sequence[Operand], avals: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """The values; of those of which devices hold terms, XLA is told so.

    It does not find that out for what enters and leaves regions.
    """
    out = list(xs)
    for i, aval in enumerate(avals):
        explicit = aval.explicit
        if explicit is not None and explicit.terms.unreduced:
            (out[i],) = constrained(writer, xs[i : i + 1], [aval], explicit.mesh)
    return out


def constant_array(writer: Writer, literal: Literal) -> Operand:
    """An array constant, which is an argument of the function.

    One that only a batching rule of the user's knows, asked for a choice that is
    lowered element by element, is written here.
    """
    entry = writer.constants.get(literal.key)
    return written_constant(literal) if entry is None else entry


def lowered(
    writer: Writer,
    row: SomeRow,
    params: Params,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
    *,
    ordered: bool = False,
) -> Sequence[Operand]:
    """The operands that the rule of a row writes, or a choice of them by platform."""
    module = writer.module
    if len(module.platforms) == 1:
        return row.lowering(module.platforms[0])(writer, params, operands, outs)
    lines, count, scalars = writer.lines, len(writer.lines), writer.scalars
    before = writer.count, writer.token, writer.choosing, dict(scalars)
    try:
        return common_rule(row, module.platforms)(writer, params, operands, outs)
    except SeveralPlatforms:
        writer.lines, writer.scalars, writer.module = lines, scalars, module
        del lines[count:]
        scalars.clear()
        writer.count, writer.token, writer.choosing, known = before
        scalars.update(known)
    return choice(writer, row, params, operands, outs, ordered)


def choice(
    writer: Writer,
    row: SomeRow,
    params: Params,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
    ordered: bool,
) -> tuple[Operand, ...]:
    """A choice by platform of what a rule writes for each."""
    module = writer.module

    def on(platform: str) -> Region:
        def region(_: Sequence[Operand]) -> Sequence[Operand]:
            writer.module = module.part(platform)
            try:
                return row.lowering(platform)(writer, params, operands, outs)
            finally:
                writer.module = module

        return region

    writer.choosing = True
    op = writer.threaded if ordered else writer.op
    regions = [((), on(platform)) for platform in module.platforms]
    return op("stablehlo.case", (PLATFORM,), outs, regions)


def brought(writer: Writer, x: Operand, layout: Layout | None) -> Operand:
    """A value that lies so, its terms summed where they are to be."""
    text = None if layout is None else writer.layout(layout, x.aval)
    if text is None:
        return x
    return writer.op("sdy.sharding_constraint", (x,), (x.aval,), sharding=text)[0]


def fetched(writer: Writer, xs: Sequence[Operand], memories: Memories) -> list[Operand]:
    """Arguments in the device's own memory."""
    return [
        x if kind is None else moved(writer, x, DEVICE)
        for x, kind in zip(xs, memories.ins, strict=True)
    ]


def sent(writer: Writer, xs: Sequence[Operand], memories: Memories) -> list[Operand]:
    """Results in the memories where they shall lie."""
    return [
        x if kind is None else moved(writer, x, kind)
        for x, kind in zip(xs, memories.outs, strict=True)
    ]


def called(
    writer: Writer,
    symbol: str,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
    composite: Composite | None = None,
) -> tuple[Operand, ...]:
    """A call of a function of the module, which may ask for the platform."""
    operands = [*writer.module.passed(writer, symbol), *operands]
    if composite is not None:
        attributes = composite_attributes(composite, symbol)
        return writer.op("stablehlo.composite", operands, outs, (), **attributes)
    return writer.op("func.call", operands, outs, callee=f"@{symbol}")
