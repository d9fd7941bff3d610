"""Floor 3: which random keys a program uses, and whether it uses one twice.

A program has a signature: the inputs whose keys it uses up, the outputs that are new
keys, and the outputs that are inputs. It is read off the signatures of its equations::

    signature_of(jaxpr).uses      # {0: True}, or KeyReuseError

Of an array of keys, a mask says which elements are used.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Final

import numpy as np
from attrs import frozen

from verax.ir.atoms import Atom, Literal
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import KeyDType
from verax.ir.jaxpr import Eqn, Jaxpr, Params, Source
from verax.ir.records import ReprMixin
from verax.ops.control.cond_params import CondParams
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_params import WhileParams
from verax.ops.structure.joining import SplitParams
from verax.ops.structure.slicing import SliceParams
from verax.rules.values.conversions import JAXTypeError

type Mask = np.ndarray | bool
type Uses = Mapping[int, Mask]


class KeyReuseError(JAXTypeError):
    """A random key is used twice; split it, or `clone` it if that is meant.

    Raised while `debug_key_reuse` is on, and by `check_key_reuse`.
    """

    __module__ = "verax.errors"


@frozen(repr=False)
class Signature(ReprMixin):
    """The keys of a program: what becomes of them.

    `uses` are the inputs, by number, whose keys it uses up; `makes` the outputs that
    are new keys; `passes` the outputs that are the input of a number. `constant` says
    that it uses up a key which is a constant.
    """

    uses: Uses = MappingProxyType({})
    makes: frozenset[int] = frozenset()
    passes: Mapping[int, int] = MappingProxyType({})
    constant: bool = False


def passing(*outs: int) -> Signature:
    """Each of these outputs is the input of its number."""
    return Signature(passes={i: i for i in outs})


MAKES: Final = Signature(makes=frozenset((0,)))
USES: Final = Signature({0: True})
NOTHING: Final = Signature()
PASSES: Final = passing(0)

KNOWN: Final[Mapping[str, Signature]] = MappingProxyType(
    {
        "random_seed": MAKES,
        "random_wrap": MAKES,
        "random_unwrap": NOTHING,
        "random_fold_in": MAKES,
        "random_split": Signature({0: True}, frozenset((0,))),
        "random_bits": USES,
        "random_gamma": USES,
        "eq": NOTHING,
        "ne": NOTHING,
        # A loop that ends for each element on its own keeps what it has not used.
        "select_n": MAKES,
        "debug_callback": NOTHING,
        "debug_print": NOTHING,
        "inspect_sharding": NOTHING,
        "broadcast_in_dim": PASSES,
        "convert_element_type": PASSES,
        "copy": PASSES,
        "reshape": PASSES,
        "squeeze": PASSES,
        "transpose": PASSES,
        "name": PASSES,
        "sharding_constraint": PASSES,
        "dynamic_slice": PASSES,
        "gather": PASSES,
        "dynamic_update_slice": Signature({1: True}, passes={0: 0}),
        "scatter": Signature({2: True}, passes={0: 0}),
    }
)


def is_key(aval: ShapedArray) -> bool:
    """Whether a value holds random keys."""
    return isinstance(aval.dtype, KeyDType)


def eqn_signature(
    name: str, params: Params, avals: Sequence[ShapedArray], outs: int
) -> Signature:
    """The signature of one equation; what is not known uses all of its keys.

    Raises:
        KeyReuseError: a program in it uses a key twice.
    """
    if name in KNOWN:
        return KNOWN[name]
    special = special_signature(name, params, avals)
    if special is not None:
        return special
    inner: Jaxpr | None = getattr(params, "jaxpr", None)
    if isinstance(inner, Jaxpr) and len(inner.invars) == len(avals):
        again = getattr(params, "differentiated", False)
        return NOTHING if again else signature_of(inner)
    if name == "concatenate" and len(avals) == 1:
        return PASSES
    used = {i: True for i, aval in enumerate(avals) if is_key(aval)}
    makes = range(outs if name in ("concatenate", "optimization_barrier") else 0)
    return Signature(used, frozenset(makes))


def slice_signature(params: SliceParams, avals: Sequence[ShapedArray]) -> Signature:
    if not is_key(avals[0]):
        return PASSES
    used = np.zeros(avals[0].shape, bool)
    steps = params.strides or (1,) * used.ndim
    bounds = zip(params.start_indices, params.limit_indices, steps, strict=True)
    used[tuple([slice(*bound) for bound in bounds])] = True
    return Signature({0: used}, frozenset((0,)))


def split_signature(params: SplitParams, avals: Sequence[ShapedArray]) -> Signature:
    """What is split is used up; each part may be used."""
    if not is_key(avals[0]):
        return PASSES
    return Signature({0: True}, frozenset(range(len(params.sizes))))


def cond_signature(params: CondParams) -> Signature:
    """A key counts as used if one of the branches uses it."""
    parts = [signature_of(branch) for branch in params.branches]
    numbers = sorted({i for part in parts for i in part.uses})
    uses = {i + 1: either(part.uses.get(i, False) for part in parts) for i in numbers}
    first, *rest = parts
    passes = {
        out: i + 1
        for out, i in first.passes.items()
        if all(part.passes.get(out) == i for part in rest)
    }
    makes = reduce(frozenset.intersection, [part.makes for part in parts])
    constant = any([part.constant for part in parts])
    return Signature(uses, makes, passes, constant)


def either(masks: Iterable[Mask]) -> Mask:
    """The elements that are in one of the masks."""
    return reduce(lambda x, y: x | y, masks)


def check_loop(
    what: str, uses: Uses, consts: int, made: Iterable[int], constant: bool
) -> None:
    """Raise unless a step uses only keys that it makes again."""
    for i in (-1, *uses) if constant else uses:
        if i < consts:
            raise KeyReuseError(
                f"{what} function leads to key reuse: it uses a key that it has "
                "captured, so each step uses it again; split it before the loop, or "
                "fold the number of the step into it"
            )
        if i - consts not in made:
            raise KeyReuseError(
                f"{what} function leads to key reuse: it uses the key of carry "
                f"{i - consts}, but does not make a new one for the next step; split "
                "it in the step and carry a part on"
            )


def scan_signature(params: ScanParams) -> Signature:
    inner = signature_of(params.jaxpr)
    rows = params.num_consts + params.num_carry
    repeated = {i: mask for i, mask in inner.uses.items() if i < rows}
    check_loop("scan body", repeated, params.num_consts, inner.makes, inner.constant)
    uses = {i: True for i in inner.uses}
    carried = {o: i for o, i in inner.passes.items() if i - params.num_consts == o}
    return Signature(uses, inner.makes, carried)


def while_signature(params: WhileParams) -> Signature:
    step, test = signature_of(params.body_jaxpr), signature_of(params.cond_jaxpr)
    body, cond = params.body_nconsts, params.cond_nconsts
    check_loop("while_loop body", step.uses, body, step.makes, step.constant)
    check_loop("while_loop cond", test.uses, cond, step.makes, test.constant)
    both = {i - body for i in step.uses} & {i - cond for i in test.uses}
    if both:
        raise KeyReuseError(
            f"the condition and the body of while_loop use the key of carry "
            f"{min(both)}; split it"
        )
    carries = [*[i - body for i in step.uses], *[i - cond for i in test.uses]]
    passes = {o: i + cond for o, i in step.passes.items() if i - body == o}
    return Signature({i + cond + body: True for i in carries}, step.makes, passes)


def special_signature(
    name: str, params: Params, avals: Sequence[ShapedArray]
) -> Signature | None:
    """The signature of what has one of its own, else None."""
    match name, params:
        case "slice", SliceParams():
            return slice_signature(params, avals)
        case "split", SplitParams():
            return split_signature(params, avals)
        case "cond", CondParams():
            return cond_signature(params)
        case "scan", ScanParams():
            return scan_signature(params)
        case "while", WhileParams():
            return while_signature(params)
    return None


class Ledger:
    """The used keys of one program, so far.

    A key is known by the variable that first held it, a constant by its array.
    """

    def __init__(self) -> None:
        self.used: dict[object, Mask] = {}
        self.where: dict[object, Source] = {}
        self.same: dict[object, object] = {}
        self.constant = False

    def root(self, atom: Atom) -> object:
        """The root by which a value is known."""
        name: object = id(atom.value) if isinstance(atom, Literal) else atom
        while name in self.same:
            name = self.same[name]
        return name

    def use(self, eqn: Eqn, number: int, mask: Mask) -> None:
        """Use an operand up.

        Raises:
            KeyReuseError: it is used already.
        """
        root = self.root(eqn.invars[number])
        self.constant |= isinstance(root, int)
        before = self.used.get(root, False)
        if np.any(before & mask):
            raise KeyReuseError(
                f"In {eqn.primitive.name}, argument {number} is already consumed: its "
                f"random key was used before{self.first(root)}, and again at "
                f"{eqn.source}. Use each key once: split it with verax.random.split"
            )
        self.used[root] = before | mask
        self.where.setdefault(root, eqn.source)

    def first(self, root: object) -> str:
        """Where a key was used first, if that is known."""
        return f" at {self.where[root]}" if root in self.where else ""

    def add(self, eqn: Eqn) -> None:
        """Take down what an equation does."""
        avals = [atom.aval for atom in eqn.invars]
        outs = len(eqn.outvars)
        result = eqn_signature(eqn.primitive.name, eqn.params, avals, outs)
        self.constant |= result.constant
        for number, mask in result.uses.items():
            if is_key(avals[number]):
                self.use(eqn, number, mask)
        for i, out in enumerate(eqn.outvars):
            if not is_key(out.aval):
                continue
            if i in result.passes:
                self.same[out] = self.root(eqn.invars[result.passes[i]])
            elif i not in result.makes:
                self.used[out] = True


def signature_of(jaxpr: Jaxpr) -> Signature:
    """The signature of a program in the keys among its inputs.

    Raises:
        KeyReuseError: it uses a key twice.
    """
    ledger = Ledger()
    for eqn in jaxpr.eqns:
        ledger.add(eqn)
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    uses = {i: ledger.used[x] for i, x in enumerate(inputs) if x in ledger.used}
    numbers: dict[object, int] = {x: i for i, x in enumerate(inputs)}
    makes, passes = set(), {}
    for i, out in enumerate(jaxpr.outvars):
        if not is_key(out.aval):
            continue
        root = ledger.root(out)
        if root in numbers:
            passes[i] = numbers[root]
        elif not np.any(ledger.used.get(root, False)):
            makes.add(i)
    return Signature(uses, frozenset(makes), passes, ledger.constant)
