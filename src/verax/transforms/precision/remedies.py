"""Floor 3: known remedies for lines that lose digits, by the form of their equations.

One idea: a remedy has a small function that looks at an equation and at those that made
its operands, and says what to write instead::

    remedy = Forms(jaxpr).remedy(eqn)       # .text, .rule
"""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from attrs import define, field, frozen

from verax.ir.atoms import Atom, Literal
from verax.ir.dtypes import is_float
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.elementwise.convert import convert_element_type_p
from verax.ops.reductions.reduce import reduce_sum_p
from verax.rules.rows.row import no_flops, traits_of

SHORT: Final = 16
"""Floats with no more bits than this are for storing, not for adding up."""


@frozen(repr=False)
class Remedy(ReprMixin):
    """What to write instead; `rule` is a rule of `rewrites.stabilise`, or empty.

    >>> import verax, verax.numpy as vnp
    >>> report = verax.debug.precision(lambda x: vnp.log(1 + x))(1e-9)
    >>> report.worst.remedy.text, report.worst.remedy.rule
    ('log1p(x)', 'log_of_one_plus')
    """

    __module__ = "verax.debug"

    text: str
    rule: str = ""

    def __str__(self) -> str:
        if not self.rule:
            return self.text
        return f"{self.text}; rewrites.stabilise has a rule: {self.rule}"


@define(eq=False, repr=False)
class Forms(ReprMixin):
    """A program, and which equation makes each of its variables."""

    jaxpr: Jaxpr
    makers: dict[int, Eqn] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.makers = {v.index: e for e in self.jaxpr.eqns for v in e.outvars}

    def maker(self, atom: Atom) -> Eqn | None:
        """The equation of a value, behind what only moves it; None of inputs."""
        while True:
            if isinstance(atom, Literal):
                return None
            eqn = self.makers.get(atom.index)
            if eqn is None or not is_seen_through(eqn):
                return eqn
            atom = eqn.invars[0]

    def root(self, atom: Atom) -> Atom:
        """The value itself, behind what only moves it."""
        while not isinstance(atom, Literal):
            eqn = self.makers.get(atom.index)
            if eqn is None or not is_seen_through(eqn):
                break
            atom = eqn.invars[0]
        return atom

    def made_by(self, atom: Atom, *names: str) -> Eqn | None:
        """The equation of a value if it is one of these operations."""
        eqn = self.maker(atom)
        return eqn if eqn is not None and eqn.primitive.name in names else None

    def is_number(self, atom: Atom, value: float) -> bool:
        """Whether a value is this constant."""
        root = self.root(atom)
        if not isinstance(root, Literal):
            return False
        held = np.asarray(root.value)
        return held.ndim == 0 and float(held.real) == value

    def square(self, atom: Atom) -> Atom | None:
        """The value of which this is the square."""
        eqn = self.made_by(atom, "square", "integer_pow", "mul", "pow")
        if eqn is None:
            return None
        name = eqn.primitive.name
        if name == "mul":
            left, right = map(self.root, eqn.invars)
            return left if same(left, right) else None
        if name == "integer_pow" and getattr(eqn.params, "y", 0) != 2:
            return None
        if name == "pow" and not self.is_number(eqn.invars[1], 2.0):
            return None
        return self.root(eqn.invars[0])

    def behind(self, atom: Atom, depth: int) -> Iterator[Eqn]:
        """The equations that a value is made by, a few steps back."""
        eqn = self.maker(atom)
        if eqn is not None:
            yield eqn
            if depth:
                for operand in eqn.invars:
                    yield from self.behind(operand, depth - 1)

    def mean_of(self, atom: Atom) -> Atom | None:
        """The value of which this is a mean, or a sum."""
        eqn = self.made_by(atom, "div", "mul")
        total = self.made_by(eqn.invars[0] if eqn else atom, "reduce_sum")
        return None if total is None else total.invars[0]

    def remedy(self, eqn: Eqn) -> Remedy | None:
        """The first remedy for an equation, of those that are known."""
        for name, form in FORMS:
            if name == eqn.primitive.name:
                remedy = form(self, eqn)
                if remedy is not None:
                    return remedy
        return None


def is_seen_through(eqn: Eqn) -> bool:
    """Whether a formula stays what it is with or without an equation."""
    row = eqn.primitive
    moves = traits_of(row).flops is no_flops and bool(eqn.invars)
    return moves or row is convert_element_type_p


def same(x: Atom, y: Atom) -> bool:
    """Whether two atoms are one variable."""
    if isinstance(x, Literal) or isinstance(y, Literal):
        return False
    return x.index == y.index


type Form = Callable[[Forms, Eqn], Remedy | None]


# -----------------------------------------------------------------------------
# Logarithms and exponentials.


def log_of_sum(forms: Forms, eqn: Eqn) -> Remedy | None:
    """log(1 + x), log(1 + exp(x))."""
    total = forms.made_by(eqn.invars[0], "add")
    if total is None:
        return None
    for one, other in (total.invars, total.invars[::-1]):
        if forms.is_number(one, 1.0):
            if forms.made_by(other, "exp"):
                return Remedy("softplus(x), or log1p(exp(x))", "log_of_one_plus_exp")
            return Remedy("log1p(x)", "log_of_one_plus")
    if all(forms.made_by(a, "exp") for a in total.invars):
        return Remedy("logaddexp(x, y)", "log_of_two_exps")
    return None


def log_of_difference(forms: Forms, eqn: Eqn) -> Remedy | None:
    """log(1 - x), log(1 - exp(x)), log(1 - sigmoid(x))."""
    gap = forms.made_by(eqn.invars[0], "sub")
    if gap is None or not forms.is_number(gap.invars[0], 1.0):
        return None
    if forms.made_by(gap.invars[1], "exp"):
        return Remedy(
            "log(-expm1(x)), or log1p(-exp(x)) where x < -0.7", "log_of_one_minus_exp"
        )
    if forms.made_by(gap.invars[1], "logistic"):
        return Remedy("log_sigmoid(-x)", "log_of_one_minus_sigmoid")
    return Remedy("log1p(-x)", "log_of_one_minus")


def log_of_exponentials(forms: Forms, eqn: Eqn) -> Remedy | None:
    """log(sum(exp(x))), log(softmax(x)), log(sigmoid(x))."""
    eqns = list(forms.behind(eqn.invars[0], 0))
    name = eqns[0].primitive.name if eqns else ""
    if name == "logistic":
        return Remedy("log_sigmoid(x)", "log_of_sigmoid")
    if name == "reduce_sum" and forms.made_by(eqns[0].invars[0], "exp"):
        return Remedy("logsumexp(x)", "log_of_sum_of_exp")
    if name in ("div", "mul") and forms.made_by(eqns[0].invars[0], "exp"):
        return Remedy("log_softmax(x)", "log_of_softmax")
    if name in ("reduce_prod", "cumprod"):
        rule = "log_of_product" if name == "reduce_prod" else ""
        return Remedy("the sum of log(x)", rule)
    return None


def exp_less_one(forms: Forms, eqn: Eqn) -> Remedy | None:
    """exp(x) - 1, and 1 - exp(x)."""
    left, right = eqn.invars
    if forms.made_by(left, "exp") and forms.is_number(right, 1.0):
        return Remedy("expm1(x)", "exp_minus_one")
    if forms.made_by(right, "exp") and forms.is_number(left, 1.0):
        return Remedy("-expm1(x)", "one_minus_exp")
    return None


def exp_plus_minus_one(forms: Forms, eqn: Eqn) -> Remedy | None:
    """exp(x) + (-1)."""
    for one, other in (eqn.invars, eqn.invars[::-1]):
        if forms.made_by(one, "exp") and forms.is_number(other, -1.0):
            return Remedy("expm1(x)", "exp_minus_one")
    return None


def ratio_of_exponentials(forms: Forms, eqn: Eqn) -> Remedy | None:
    """exp(x) / sum(exp(x)), with no maximum subtracted from x."""
    above = forms.made_by(eqn.invars[0], "exp")
    total = forms.made_by(eqn.invars[1], "reduce_sum")
    if above is None or total is None or not forms.made_by(total.invars[0], "exp"):
        return None
    shift = forms.made_by(above.invars[0], "sub")
    if shift is not None and forms.made_by(shift.invars[1], "reduce_max", "max"):
        return None
    return Remedy("softmax(x), which subtracts the maximum", "ratio_of_exp")


def large_exponential(forms: Forms, eqn: Eqn) -> Remedy | None:
    """exp(x), as the last resort."""
    for user in forms.jaxpr.eqns:
        if any(forms.maker(a) is eqn for a in user.invars):
            remedy = forms.remedy(user)
            if remedy is not None:
                return remedy
            if user.primitive is reduce_sum_p:
                return Remedy("subtract the maximum of x before exp: logsumexp(x)")
    return None


# -----------------------------------------------------------------------------
# Differences.


def versed_sine(forms: Forms, eqn: Eqn) -> Remedy | None:
    """1 - cos(x), and cos(x) - 1."""
    left, right = eqn.invars
    if forms.is_number(left, 1.0) and forms.made_by(right, "cos"):
        return Remedy("2 * sin(x / 2) ** 2", "one_minus_cos")
    if forms.made_by(left, "cos") and forms.is_number(right, 1.0):
        return Remedy("-2 * sin(x / 2) ** 2", "cos_minus_one")
    return None


def difference_of_roots(forms: Forms, eqn: Eqn) -> Remedy | None:
    """sqrt(x) - sqrt(y)."""
    if all(forms.made_by(a, "sqrt") for a in eqn.invars):
        return Remedy("(x - y) / (sqrt(x) + sqrt(y))", "difference_of_roots")
    return None


def quadratic_root(forms: Forms, eqn: Eqn) -> Remedy | None:
    """-b + sqrt(b ** 2 - 4 * a * c), in any order."""
    for one, other in (eqn.invars, eqn.invars[::-1]):
        root = forms.made_by(one, "sqrt")
        inside = forms.made_by(root.invars[0], "sub", "add") if root else None
        if inside is None:
            continue
        target = forms.root(other)
        negated = forms.made_by(other, "neg")
        if negated is not None:
            target = forms.root(negated.invars[0])
        for part in inside.invars:
            of = forms.square(part)
            if of is not None and (same(of, target) or related(forms, of, target)):
                lower = eqn.primitive.name == "sub" and negated is not None
                kind = "_of_sum" if inside.primitive.name == "add" else ""
                return Remedy(
                    "2 * c / (-b - sqrt(...)): take the root whose terms have one "
                    "sign, and get the other from the product of both",
                    f"{'lower' if lower else 'upper'}_root{kind}",
                )
    return None


def related(forms: Forms, x: Atom, y: Atom) -> bool:
    """Whether one is a multiple of the other, or both of one value."""
    sources = []
    for atom in (x, y):
        indices = {a.index for a in (atom,) if not isinstance(a, Literal)}
        for eqn in forms.behind(atom, 1):
            roots = map(forms.root, eqn.invars)
            indices |= {a.index for a in roots if not isinstance(a, Literal)}
        sources.append(indices)
    return bool(sources[0] & sources[1])


def naive_variance(forms: Forms, eqn: Eqn) -> Remedy | None:
    """mean(x ** 2) - mean(x) ** 2."""
    of_squares, of_mean = forms.mean_of(eqn.invars[0]), forms.square(eqn.invars[1])
    if of_squares is None or of_mean is None or forms.square(of_squares) is None:
        return None
    if forms.mean_of(of_mean) is None:
        return None
    return Remedy("var(x): subtract the mean before squaring", "variance")


def difference_of_squares(forms: Forms, eqn: Eqn) -> Remedy | None:
    """x ** 2 - y ** 2, and 1 - x ** 2."""
    squares = [forms.square(a) is not None for a in eqn.invars]
    if all(squares):
        return Remedy("(x - y) * (x + y)", "difference_of_squares")
    if squares[1] and forms.is_number(eqn.invars[0], 1.0):
        return Remedy("(1 - x) * (1 + x)", "one_minus_square")
    if squares[0] and forms.is_number(eqn.invars[1], 1.0):
        return Remedy("(x - 1) * (x + 1)", "square_minus_one")
    return None


def undone_sum(forms: Forms, eqn: Eqn) -> Remedy | None:
    """(x + y) - x."""
    total = forms.made_by(eqn.invars[0], "add", "sub")
    if total is None:
        return None
    subtracted = forms.root(eqn.invars[1])
    if any(same(forms.root(a), subtracted) for a in total.invars):
        kind = "sum" if total.primitive.name == "add" else "difference"
        return Remedy(
            "use y itself: the small term of x + y has been rounded away",
            f"undone_{kind}",
        )
    return None


# -----------------------------------------------------------------------------
# Sums, roots and products.


def sum_of_squares(forms: Forms, eqn: Eqn) -> Remedy | None:
    """sqrt(x ** 2 + y ** 2), sqrt(sum(x ** 2))."""
    inside = forms.made_by(eqn.invars[0], "add", "reduce_sum")
    if inside is None:
        return None
    if inside.primitive.name == "add":
        sums = [forms.made_by(a, "reduce_sum") for a in inside.invars]
        inside = next((e for e in sums if e is not None), inside)
    if not any(forms.square(a) is not None for a in inside.invars):
        return None
    if inside.primitive.name == "add":
        return Remedy("hypot(x, y)", "root_of_two_squares")
    return Remedy(
        "divide x by its largest element before squaring: s * norm(x / s)",
        "root_of_sum_of_squares",
    )


def square_for_root(forms: Forms, eqn: Eqn) -> Remedy | None:
    """x ** 2, of which a sum and its root are taken."""
    out = eqn.outvars[0]
    for user in forms.jaxpr.eqns:
        if user.primitive.name in ("sqrt", "rsqrt"):
            for part in forms.behind(user.invars[0], 2):
                if any(same(forms.root(a), out) for a in part.invars) or part is eqn:
                    return sum_of_squares(forms, user)
    return None


def short_sum(forms: Forms, eqn: Eqn) -> Remedy | None:
    """A sum in a short type."""
    dtype = eqn.outvars[0].aval.dtype
    if isinstance(dtype, np.dtype) and is_float(dtype) and 8 * dtype.itemsize <= SHORT:
        return Remedy(
            "add up in float32: dtype=float32, preferred_element_type=float32"
        )
    return None


def product_of_many(forms: Forms, eqn: Eqn) -> Remedy | None:
    """prod(x)."""
    return Remedy("add up logarithms: sum(log(x))")


FORMS: Final[tuple[tuple[str, Form], ...]] = (
    ("log", log_of_sum),
    ("log", log_of_difference),
    ("log", log_of_exponentials),
    ("div", ratio_of_exponentials),
    ("exp", large_exponential),
    ("sub", exp_less_one),
    ("sub", versed_sine),
    ("sub", difference_of_roots),
    ("sub", quadratic_root),
    ("add", quadratic_root),
    ("sub", naive_variance),
    ("sub", difference_of_squares),
    ("sub", undone_sum),
    ("add", exp_plus_minus_one),
    ("sqrt", sum_of_squares),
    ("square", square_for_root),
    ("integer_pow", square_for_root),
    ("mul", square_for_root),
    ("reduce_sum", short_sum),
    ("cumsum", short_sum),
    ("dot_general", short_sum),
    ("reduce_prod", product_of_many),
    ("cumprod", product_of_many),
)
"""The forms by operation; the first that fits is taken."""
