"""The rows of XLA's optimised program (floor 6).

Each instruction that has metadata names the row of the StableHLO operation that it came
from; a fusion came from all that its computation came from::

    rows, names = hlo_rows(executable.hlo_text(), stablehlo)
    rows[names["%add_reduce_fusion"]].origins
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import define, field, frozen

from verax.explorer.rows.costs import Array, Operation, Types, arrays, fill_costs
from verax.explorer.rows.jaxpr import MOST, shortened
from verax.explorer.rows.row import EQUATION, HEAD, INPUT, NEW, OUTPUT, SAME, Row
from verax.ir.records import ReprMixin

COMPUTATION: Final = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
RESULT: Final = re.compile(r"^\s*(ROOT )?%?([\w.\-]+) = (.*)$")
OPCODE: Final = re.compile(r"^([\w\-]+)\((.*)$")
METADATA: Final = re.compile(r',? ?metadata=\{(?:[^{}"]|"[^"]*")*\}')
NAMED: Final = re.compile(r'op_name="([^"]*)"')
ROW: Final = re.compile(r"(?:^|/)r(\d+)/")
CALLED: Final = re.compile(
    r"\b(calls|to_apply|condition|body|true_computation|false_computation)"
    r"=%?([\w.\-]+)"
)
SEVERAL: Final = re.compile(r"\b(branch_computations|called_computations)=\{([^}]*)\}")
TRIPS: Final = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
SAME_BYTES: Final = frozenset(["bitcast", "reshape"])
PICKING: Final = frozenset(["slice", "dynamic-slice", "gather"])
UPDATE: Final = "dynamic-update-slice"
ALIASES: Final = frozenset(
    ["bitcast", "tuple", "get-tuple-element", "while", "dynamic-update-slice"]
)
"""Operations that are another view of memory that is there."""
IN_MEMORY: Final = frozenset(["while", "conditional", "call"])
"""Operations that run computations whose values are stored."""
FUSION: Final = "fusion"
PRODUCTS: Final = frozenset(
    ["dot", "convolution", "stablehlo.dot_general", "stablehlo.convolution"]
)
THROUGH: Final = frozenset(["", "bitcast", "reshape"])
"""Arguments and views: rows behind which is what they show."""
OPERAND: Final = re.compile(r"%([\w.\-]+)")


@frozen(eq=False, repr=False)
class Instruction(ReprMixin):
    """One instruction of a computation."""

    name: str
    kind: str
    opcode: str
    operands: tuple[str, ...]
    rest: str
    called: tuple[tuple[str, str], ...]
    origin: int | None
    root: bool


@define(eq=False, repr=False)
class Computation(ReprMixin):
    """A computation, as it stands in the text."""

    name: str
    instructions: list[Instruction] = field(factory=list)

    def root(self) -> str:
        """The instruction that makes the result, behind other views of it."""
        named = {one.name: one for one in self.instructions}
        out = next(one for one in self.instructions if one.root)
        while out.opcode in SAME_BYTES and out.operands[0] in named:
            out = named[out.operands[0]]
        return out.opcode


def computations(text: str) -> tuple[dict[str, Computation], str]:
    """The computations by name, and the name of the first one to run."""
    out: dict[str, Computation] = {}
    current: Computation | None = None
    entry = ""
    for line in text.splitlines():
        if current is None:
            match = COMPUTATION.match(line)
            if match is not None:
                current = out[match[2]] = Computation(match[2])
                entry = match[2] if match[1] else entry
        elif line.startswith("}"):
            current = None
        else:
            one = instruction(line)
            if one is not None:
                current.instructions.append(one)
    return out, entry


def instruction(line: str) -> Instruction | None:
    """The instruction in a line."""
    result = RESULT.match(line)
    if result is None:
        return None
    kind, rest = split_type(result[3])
    match = OPCODE.match(rest)
    if match is None:
        return None
    named = METADATA.search(rest)
    origin = row_named(named[0]) if named is not None else None
    plain = METADATA.sub("", match[2])
    operands, attributes = split_operands(plain)
    called = [(key, name) for key, name in CALLED.findall(attributes)]
    for key, names in SEVERAL.findall(attributes):
        called += [(key, name) for name in OPERAND.findall(names)]
    return Instruction(
        result[2],
        kind,
        match[1],
        tuple(OPERAND.findall(operands)),
        f"{operands}{attributes}".rstrip(", "),
        tuple(called),
        origin,
        result[1] is not None,
    )


def row_named(metadata: str) -> int | None:
    """The row of StableHLO that metadata names."""
    named = NAMED.search(metadata)
    rows = ROW.findall(named[1]) if named is not None else []
    return int(rows[-1]) if rows else None


def split_type(text: str) -> tuple[str, str]:
    """The type at the start of a text, and the rest."""
    if not text.startswith("("):
        kind, _, rest = text.partition(" ")
        return kind, rest
    end = closing(text)
    return text[: end + 1], text[end + 1 :].lstrip()


def split_operands(text: str) -> tuple[str, str]:
    """The text before the parenthesis that closes, and the text that follows it."""
    end = closing(f"({text}") - 1
    return text[:end], text[end + 1 :]


def closing(text: str) -> int:
    """The place of the closing parenthesis of a text."""
    depth = 0
    for place, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if not depth:
                return place
    return len(text) - 1


def size_of(kind: str) -> int:
    """The bytes of a type: those of its arrays."""
    return sum([one.bytes for one in arrays(kind)])


def whole(result: Sequence[Array]) -> Array:
    """The arrays of a type as one: several, in a tuple, are bytes side by side."""
    if len(result) == 1:
        return result[0]
    return Array((sum([one.bytes for one in result]),), 1)


class Traffic:
    """The bytes that a fused computation moves: all else stays in registers."""

    def __init__(self, body: Computation) -> None:
        self.named = {one.name: one for one in body.instructions}
        self.readers: dict[str, list[Instruction]] = {}
        for one in body.instructions:
            for name in dict.fromkeys(one.operands):
                self.readers.setdefault(name, []).append(one)

    def bytes(self) -> float:
        """The bytes of one run."""
        each = self.named.values()
        read = sum([self.read(one) for one in each if one.opcode == "parameter"])
        return float(read + sum([self.written(one) for one in each if one.root]))

    def read(self, source: Instruction) -> int:
        """The bytes read of an argument: all of it, if anything reads all of it."""
        total, size = 0, size_of(source.kind)
        for reader in self.readers.get(source.name, ()):
            first = reader.operands[0] == source.name
            if reader.opcode in SAME_BYTES:
                total += self.read(reader)
            elif first and reader.opcode in PICKING:
                total += size_of(reader.kind)
            elif not (first and reader.opcode == UPDATE):
                return size
        return min(total, size)

    def written(self, result: Instruction) -> int:
        """The bytes written of a result: of one that is updated, what changes."""
        operands = [self.named[name] for name in result.operands if name in self.named]
        if result.opcode == "tuple":
            return sum([self.written(one) for one in operands])
        if result.opcode in SAME_BYTES and operands:
            return self.written(operands[0])
        if result.opcode == UPDATE and len(operands) > 1:
            return size_of(operands[1].kind)
        return size_of(result.kind)


def hlo_rows(
    text: str, before: Sequence[Row], arguments: Sequence[int] = ()
) -> tuple[list[Row], dict[str, int]]:
    """The rows of a program, and the rows of its instructions by their names.

    `arguments` are the rows of the arguments in the stage before.
    """
    result, entry = computations(text)
    writer = RowWriter(result, before, arguments)
    if entry:
        writer.write(result[entry], 0, -1, ())
    fill_costs(writer.rows, writer.operations, before)
    return writer.rows, writer.names


class RowWriter:
    """Writes computations as rows, each where it is called."""

    def __init__(
        self,
        table: Mapping[str, Computation],
        before: Sequence[Row],
        arguments: Sequence[int],
    ) -> None:
        self.computations = table
        self.before = before
        self.arguments = arguments
        self.holding = {row.inside for row in before}
        self.holding |= {before[i].inside for i in self.holding if i >= 0}
        self.rows: list[Row] = []
        self.operations: dict[int, Operation] = {}
        self.types = Types()
        self.names: dict[str, int] = {}

    def write(
        self,
        body: Computation,
        depth: int,
        inside: int,
        operands: Sequence[int],
        *,
        fused: bool = False,
    ) -> set[int]:
        """The rows of a computation; all that it came from.

        What is `fused` moves nothing: its values stay in registers.
        """
        env: dict[str, int] = {}
        kinds: dict[str, Array] = {}
        origins: set[int] = set()
        for one in body.instructions:
            uses = [env[name] for name in one.operands if name in env]
            kinds[one.name] = whole(self.types.of(one.kind))
            if one.opcode == "parameter":
                number = int(one.rest.partition(")")[0].partition(",")[0])
                reads = [operands[number]] if number < len(operands) else []
                row = Row(INPUT, "", f"%{one.name}:{one.kind}", "", depth, inside)
                row.size, row.lasting = size_of(one.kind), True
                row.uses = reads
                if inside < 0:
                    row.origins = list(self.arguments[number : number + 1])
                env[one.name] = self.add(row, one.name)
                continue
            left = f"%{one.name}:{one.kind}"
            right = shortened(one.rest)
            row = Row(EQUATION, one.opcode, left, right, depth, inside)
            row.size = 0 if self.is_alias(one) else size_of(one.kind)
            row.uses = list(dict.fromkeys(uses))
            env[one.name] = number = self.add(row, one.name)
            self.operations[number] = self.operation(one, kinds, fused=fused)
            members = self.origins(one) | self.inner(one, number, uses)
            row.origins = sorted(members)
            row.change = SAME if members else NEW
            if row.origins:
                row.source = self.before[row.origins[0]].source
            origins |= members
            if one.opcode in SAME_BYTES and one.origin is not None:
                self.hand_on(row, one.origin)
        last = [env[one.name] for one in body.instructions if one.root]
        text = ", ".join([f"%{one.name}" for one in body.instructions if one.root])
        self.rows.append(Row(OUTPUT, "", "", f"({text})", depth, inside, last))
        return origins

    def add(self, row: Row, name: str) -> int:
        """Write a row."""
        self.rows.append(row)
        number = len(self.rows) - 1
        self.names.setdefault(name, number)
        return number

    def is_alias(self, one: Instruction) -> bool:
        """Whether the result is memory that is there already.

        A loop runs in the memory of its operands, and updates what it stacks there.
        """
        if one.opcode not in ("call", FUSION):
            return one.opcode in ALIASES
        bodies = [self.computations.get(name) for _, name in one.called]
        roots = [body.root() for body in bodies if body is not None]
        return roots == [UPDATE if one.opcode == FUSION else "while"]

    def hand_on(self, view: Row, origin: int) -> None:
        """Give a product the name of the view of its result.

        Where XLA brings operands into another shape, the name of the product goes to
        what brings back its own shape, and the product is left with that of the loop
        around it, or with none.
        """
        number = next(iter(view.uses), -1)
        while number >= 0 and self.rows[number].op in THROUGH:
            number = next(iter(self.rows[number].uses), -1)
        row = self.rows[number] if number >= 0 else view
        known = origin < len(self.before) and self.before[origin].op in PRODUCTS
        if row.op in PRODUCTS and known and self.holding.issuperset(row.origins):
            row.origins, row.change = [origin], SAME
            row.source = self.before[origin].source

    def operation(
        self, one: Instruction, kinds: Mapping[str, Array], *, fused: bool
    ) -> Operation:
        """An instruction, for its cost."""
        moved: float | None = 0.0 if fused else None
        if one.opcode == FUSION and not fused:
            bodies = [self.computations.get(name) for _, name in one.called]
            moved = sum([Traffic(body).bytes() for body in bodies if body is not None])
        trips = TRIPS.search(one.rest) if one.opcode == "while" else None
        known = 1.0 if one.opcode != "while" else None
        names = [name for name in one.operands if name in kinds]
        return Operation(
            one.opcode.replace("-", "_"),
            tuple(names),
            tuple([kinds[name] for name in names]),
            self.types.of(one.kind),
            one.rest,
            known if trips is None else float(trips[1]),
            moved=moved,
        )

    def origins(self, one: Instruction) -> set[int]:
        """The row that an instruction names, if it names one."""
        known = one.origin is not None and one.origin < len(self.before)
        return {one.origin} if known and one.origin is not None else set()

    def inner(self, one: Instruction, number: int, operands: Sequence[int]) -> set[int]:
        """The computations that an instruction calls; what they came from."""
        out: set[int] = set()
        for key, name in one.called:
            body = self.computations.get(name)
            if body is None or len(self.rows) > MOST:
                continue
            depth = self.rows[number].depth + 1
            self.rows.append(Row(HEAD, "", "", f"{key}=%{name}", depth, number))
            head = len(self.rows) - 1
            given = operands if key in ("calls", "body", "condition") else ()
            fused = one.opcode == FUSION
            out |= self.write(body, depth + 1, head, given, fused=fused)
        return out
