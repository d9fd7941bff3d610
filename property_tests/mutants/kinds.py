"""The ways to make a rule wrong: each is a change of one place in a syntax tree.

One idea: a kind is a function from a node to the nodes that may stand in its place, so
a mutant is (module, place, kind, number), which is text and never source on disk::

    for site in sites(source): print(site.line, site.kind, site.before, site.after)
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from attrs import frozen

NOTHING = "verax_mutant_zero"
"""A helper that is put into the module: zeros like its argument."""
OPPOSITE = MappingProxyType(
    {"add": "sub", "sub": "add", "mul": "add", "div": "mul", "neg": "conj"}
)
ORDERED = frozenset(
    {"sub", "div", "pow", "lt", "le", "gt", "ge", "atan2", "dot", "rem", "mul"}
)
DTYPES = MappingProxyType(
    {"float32": "float64", "float64": "float32", "int32": "int64", "bool_": "int32"}
)
NUMPY = MappingProxyType(
    {
        "minimum": "maximum",
        "maximum": "minimum",
        "sin": "cos",
        "cos": "sin",
        "sum": "prod",
        "cumsum": "cumprod",
        "floor": "ceil",
        "ceil": "floor",
        "logical_and": "logical_or",
        "less": "less_equal",
        "greater": "greater_equal",
    }
)
type Change = Callable[[ast.AST], Iterator[ast.AST]]


def name_of(node: ast.AST) -> str:
    """The last part of the name that is called."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def plain(node: ast.Call, count: int) -> bool:
    """Whether a call has so many operands and nothing else."""
    spread = any(isinstance(a, ast.Starred) for a in node.args)
    return len(node.args) == count and not node.keywords and not spread


def renamed(func: ast.expr, name: str) -> ast.expr:
    """The same function under another name of the same place."""
    if isinstance(func, ast.Attribute):
        return ast.Attribute(func.value, name, ast.Load())
    return ast.Name(name, ast.Load())


def sign(node: ast.AST) -> Iterator[ast.AST]:
    """The sign of a term."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add | ast.Sub)
        and not one(node.right)
    ):
        flipped = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield ast.BinOp(node.left, flipped, node.right)
    if isinstance(node, ast.Call) and name_of(node) == "neg" and plain(node, 1):
        yield node.args[0]
    if (
        isinstance(node, ast.Call)
        and name_of(node) in ("add", "sub")
        and plain(node, 2)
    ):
        yield negated(node)


def negated(node: ast.Call) -> ast.AST:
    """x + y as x - y and the other way round, without a name from elsewhere."""
    flip = ast.Sub() if name_of(node) == "add" else ast.Add()
    return ast.BinOp(node.args[0], flip, node.args[1])


def one(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def swapped(node: ast.AST) -> Iterator[ast.AST]:
    """Operands in the wrong order, where the order matters."""
    order = ast.Sub | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow | ast.MatMult
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, order)
        and not one(node.right)
    ):
        yield ast.BinOp(node.right, node.op, node.left)
    if (
        isinstance(node, ast.Call)
        and plain(node, 2)
        and name_of(node) in ORDERED
        and name_of(node) != "mul"
    ):
        yield ast.Call(node.func, [node.args[1], node.args[0]], [])
    if isinstance(node, ast.Call) and name_of(node) == "select" and plain(node, 3):
        p, x, y = node.args
        yield ast.Call(node.func, [p, y, x], [])


def dropped(node: ast.AST) -> Iterator[ast.AST]:
    """A term or a factor is missing."""
    if (
        isinstance(node, ast.Call)
        and name_of(node) in ("add", "mul")
        and plain(node, 2)
    ):
        yield from node.args
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield node.left
        yield node.right


def off_by_one(node: ast.AST) -> Iterator[ast.AST]:
    """Another axis, dimension, count or position."""
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add | ast.Sub)
        and one(node.right)
    ):
        yield node.left
    if one(node) and isinstance(node, ast.Constant) and node.value in (0, 1, 2):
        yield ast.Constant(node.value + 1)


def dtype(node: ast.AST) -> Iterator[ast.AST]:
    """Another dtype."""
    if isinstance(node, ast.Name) and node.id in DTYPES:
        module = ast.Name("verax_mutant_dtypes", ast.Load())
        yield ast.Attribute(module, DTYPES[node.id], ast.Load())


def weak(node: ast.AST) -> Iterator[ast.AST]:
    """A weak type gets lost, or comes from nowhere."""
    if isinstance(node, ast.Attribute) and node.attr == "weak_type":
        yield ast.Constant(False)
        yield ast.UnaryOp(ast.Not(), node)
    if (
        isinstance(node, ast.Call)
        and name_of(node) in ("strong", "tangent")
        and isinstance(node.func, ast.Attribute)
        and plain(node, 0)
    ):
        yield node.func.value


def conjugate(node: ast.AST) -> Iterator[ast.AST]:
    """No conjugate."""
    if (
        isinstance(node, ast.Call)
        and name_of(node) in ("conj", "conjugate")
        and plain(node, 1)
    ):
        yield node.args[0]


def mask(node: ast.AST) -> Iterator[ast.AST]:
    """A mask or a condition is inverted."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    if isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.BoolOp(other, node.values)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        inverse = INVERSE.get(type(node.ops[0]))
        if inverse is not None:
            yield ast.Compare(node.left, [inverse()], node.comparators)


INVERSE: Mapping[type[ast.cmpop], type[ast.cmpop]] = MappingProxyType(
    {
        ast.Eq: ast.NotEq,
        ast.NotEq: ast.Eq,
        ast.Is: ast.IsNot,
        ast.IsNot: ast.Is,
        ast.Lt: ast.GtE,
        ast.GtE: ast.Lt,
        ast.Gt: ast.LtE,
        ast.LtE: ast.Gt,
        ast.In: ast.NotIn,
        ast.NotIn: ast.In,
    }
)
TERMS = frozenset(
    {"mul", "add", "sub", "neg", "div", "select", "convert", "cos", "exp"}
)


def zero(node: ast.AST) -> Iterator[ast.AST]:
    """Zero where a value is due."""
    if isinstance(node, ast.Call) and name_of(node) in TERMS and node.args:
        yield ast.Call(ast.Name(NOTHING, ast.Load()), [node], [])


def function(node: ast.AST) -> Iterator[ast.AST]:
    """Another function of NumPy, or another operation of StableHLO."""
    if (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "np"
        and node.attr in NUMPY
    ):
        yield ast.Attribute(node.value, NUMPY[node.attr], ast.Load())
    if isinstance(node, ast.Call) and name_of(node) == "reversed":
        yield node.args[0]


KINDS: Mapping[str, Change] = MappingProxyType(
    {
        "sign": sign,
        "swapped operands": swapped,
        "dropped term": dropped,
        "wrong axis": off_by_one,
        "wrong dtype": dtype,
        "lost weak type": weak,
        "missing conjugate": conjugate,
        "inverted mask": mask,
        "zero for a value": zero,
        "wrong function": function,
    }
)


@frozen
class Site:
    """One change: where, what kind, and what it reads before and after."""

    line: int
    end: int
    column: int
    kind: str
    number: int
    before: str
    after: str
    function: str


def sites(source: str) -> tuple[Site, ...]:
    """The changes of a module, in the order of its text.

    What says what is wrong with an argument, draws calls for tests, or is typing or
    text is left alone: no law is about it.
    """
    actual: list[Site] = []
    collect(ast.parse(source), "", None, actual)
    return tuple(actual)


def collect(
    node: ast.AST, function: str, statement: ast.stmt | None, result: list[Site]
) -> None:
    """The changes of a node and of what is in it."""
    if passed_over(node):
        return
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}" if function else node.name
    if isinstance(node, ast.Assign | ast.AnnAssign) and not function:
        function = assigned(node)
    if isinstance(node, ast.stmt):
        statement = node
    if isinstance(node, ast.expr) and statement is not None:
        for kind, change in KINDS.items():
            unread = isinstance(statement, ast.Expr) and statement.value is node
            if unread and kind == "zero for a value":
                continue
            for number, after in enumerate(change(node)):
                result.append(site_of(node, statement, kind, number, after, function))
    for child in inner(node):
        collect(child, function, statement, result)


def assigned(node: ast.Assign | ast.AnnAssign) -> str:
    """The name that a statement of a module gives to what it makes, or nothing."""
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


def inner(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a node, without its types."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


def site_of(
    node: ast.expr, home: ast.stmt, kind: str, number: int, after: ast.AST, name: str
) -> Site:
    if kind == "wrong axis" and "batch" in name:
        kind = "batch dimension"
    if isinstance(home, ast.FunctionDef | ast.If | ast.For | ast.While | ast.With):
        first, last = node.lineno, node.end_lineno or node.lineno
    else:
        first, last = home.lineno, home.end_lineno or home.lineno
    first = max(first, node.lineno - 3)
    text = ast.unparse(ast.fix_missing_locations(after))
    return Site(
        node.lineno,
        min(last, (node.end_lineno or last) + 3),
        node.col_offset,
        kind,
        number,
        ast.unparse(node),
        text,
        name,
    )


DRAWN = ("draw", "sample", "domain")
KEYWORDS = frozenset(
    {
        *("domains", "domain", "draw", "params_of", "counts", "kinks", "low"),
        *("costly", "accepts"),
    }
)


def passed_over(node: ast.AST) -> bool:
    """Whether no law is about a node and what is in it."""
    if isinstance(node, ast.FunctionDef):
        return any(word in node.name for word in DRAWN)
    if isinstance(node, ast.keyword):
        return node.arg in KEYWORDS
    if isinstance(node, ast.Call) and name_of(node) in ("Domain", "frozen", "field"):
        return True
    if isinstance(node, ast.If) and all(checks(s) for s in node.body):
        return not node.orelse
    return isinstance(node, PASSED)


def checks(node: ast.stmt) -> bool:
    """Whether all that a statement does is to say that something is wrong."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return name_of(node.value).startswith("check")
    return isinstance(node, ast.Raise)


PASSED = (
    ast.Raise,
    ast.Assert,
    ast.JoinedStr,
    ast.Import,
    ast.ImportFrom,
    ast.TypeAlias,
)


def mutated(source: str, site: Site) -> ast.Module:
    """The tree of the module with the one change."""
    tree = ast.parse(source)

    class Changer(ast.NodeTransformer):
        """Puts the change in its place, once."""

        done = False

        def visit(self, node: ast.AST) -> ast.AST:
            if not self.done and self.meant(node):
                kind = "wrong axis" if site.kind == "batch dimension" else site.kind
                options = list(KINDS[kind](node))
                self.done = True
                return ast.copy_location(options[site.number], node)
            return self.generic_visit(node)

        def meant(self, node: ast.AST) -> bool:
            here = (getattr(node, "lineno", 0), getattr(node, "col_offset", -1))
            if here != (site.line, site.column) or not isinstance(node, ast.expr):
                return False
            return ast.unparse(node) == site.before

    changer = Changer()
    changed = changer.visit(tree)
    if not changer.done:
        raise ValueError(f"there is no such place: {site}")
    actual = ast.fix_missing_locations(changed)
    assert isinstance(actual, ast.Module)
    return actual
