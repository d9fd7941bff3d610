"""The package keeps its own rules, and each rule is seen to catch a planted breach."""

import gc
from pathlib import Path
from textwrap import dedent

import pytest

from tests.architecture import (
    CLASS_METHODS,
    FILE_LINES,
    FUNCTION_LINES,
    Check,
    check_all,
    check_any,
    check_cycles,
    check_docstrings,
    check_floors,
    check_late_imports,
    check_memos,
    check_order,
    check_package_sizes,
    check_packages,
    check_reprs,
    check_sizes,
    check_system,
    check_type_checking,
    load,
)
from tests.layout import ORDER, PACKAGE_FILES
from tests.module_state import check_module_state
from tests.parsed import Module, Violation
from tests.primitive_lists import check_primitive_lists

SOURCE = Path(__file__).parent.parent / "src" / "verax"


# The key of a violation (rule, path, symbol) and the reason why it may stand.
ALLOWED: dict[str, str] = {
    "package-files src/verax/__init__.py": (
        "its modules are JAX's public modules, one each, under JAX's names"
    ),
    "package-files src/verax/scipy/stats/__init__.py": (
        "one public module for each distribution, under SciPy's names"
    ),
    "on-import src/verax/backend/__init__.py os.environ.setdefault": (
        "jaxlib reads its log level once, when it is loaded"
    ),
    "late src/verax/ir/facade.py import_module": (
        "most programs use few files of the package, and never scipy.special"
    ),
    "on-import src/verax/wiring.py from_environment": (
        "options come from the environment once, before anything reads them"
    ),
    "on-import src/verax/verify/__main__.py sys.exit": (
        "the command line ends with an exit status, and only as the main module"
    ),
    "late src/verax/jax/identity.py import_module": (
        "the module that the program knows is found when an array is asked"
    ),
    "late src/verax/jax/overlays/mlir.py import_module": (
        "bindings of MLIR take long to load, and few programs ask for them"
    ),
    "late src/verax/jax/views.py import_module": (
        "a module of jax is loaded when a program first reads a name of it"
    ),
    "late src/verax/jax/startup/sitecustomize.py import_module": (
        "most processes that a program starts never ask for jax"
    ),
    "on-import src/verax/jax/startup/sitecustomize.py start": (
        "Python runs this module when a process starts, and under this name only"
    ),
    "on-import src/verax/jax/__main__.py main": (
        "the command line runs only as the main module"
    ),
    "class-methods src/verax/rules/values/array.py Operators": (
        "Python has that many operators, and NumPy's arrays all of them"
    ),
    "class-methods src/verax/ops/symbols/expression.py SymbolicDim": (
        "Python has that many operators on integers, and a size has all of them"
    ),
    "class-methods src/verax/scipy/spatial/transform.py Rotation": (
        "SciPy gives rotations that many forms, and a method to and from each"
    ),
    "class-methods src/verax/rules/values/array.py Array": (
        "NumPy's arrays have that many methods; each is one line"
    ),
    "primitives src/verax/experimental/jet/transform.py CLOSED": (
        "a transformation's table of rules: the series of each function"
    ),
    "primitives src/verax/experimental/sparse/rules.py RULES": (
        "a transformation's table of rules: what becomes of sparse operands"
    ),
    "primitives src/verax/transforms/checks/automatic.py CHECKS": (
        "a transformation's table of rules: which operands are checked, and how"
    ),
    "primitives src/verax/transforms/passes/key_reuse.py KNOWN": (
        "an analysis's table of rules: which operands are keys that are used up"
    ),
    "primitives src/verax/transforms/references.py TOUCH": (
        "a transformation's table of rules: what becomes of reads and writes"
    ),
    "primitives src/verax/transforms/references.py CUSTOM": (
        "a transformation's table of rules: functions with rules of the user's own"
    ),
    "primitives src/verax/transforms/tables.py CONTROL": (
        "a public table of rules, to which users add their own"
    ),
    "primitives src/verax/transforms/tables.py INSIDE": (
        "a public table of rules, to which users add their own"
    ),
    "primitives src/verax/lax/reducing.py MONOIDS": (
        "from the function that lax.reduce is given to the row that does it"
    ),
    "primitives src/verax/lax/reducing.py WINDOWS": (
        "from the function that lax.reduce_window is given to the row that does it"
    ),
    "primitives src/verax/numpy/arguments/elementwise_call.py LOGICAL": (
        "from a row to the one that means the same for booleans"
    ),
    "primitives src/verax/rewrites/applying.py has_maximum": (
        "the pattern that one rule looks for, as those of rules are"
    ),
    "primitives src/verax/rewrites/applying.py bounded": (
        "the pattern that one rule looks for, as those of rules are"
    ),
    "primitives src/verax/explorer/rows/costs.py PICKED": (
        "names of StableHLO and HLO, some of which primitives share"
    ),
    "primitives src/verax/random/shuffling.py FACTORS": (
        "methods that an argument chooses, under NumPy's names"
    ),
}


def planted(**sources: str) -> list[Module]:
    """Modules of an imagined package: `ir__avals="..."` is `verax.ir.avals`."""
    return [
        Module.parse(".".join(["verax", *name.split("__")]), dedent(source))
        for name, source in sources.items()
    ]


def messages(check: Check, modules: list[Module]) -> list[str]:
    return [str(violation) for violation in check(modules)]


@pytest.fixture(scope="module")
def package() -> tuple[Module, ...]:
    """The package, parsed once for all tests, while nothing of it is garbage."""
    gc.disable()
    try:
        return load(SOURCE)
    finally:
        gc.enable()


@pytest.fixture(scope="module")
def violations(package: tuple[Module, ...]) -> list[Violation]:
    """What all checks find in it."""
    return check_all(package)


def test_package_keeps_its_rules(violations: list[Violation]) -> None:
    actual = [violation for violation in violations if violation.key not in ALLOWED]
    report = "\n".join(f"{violation}    [{violation.key}]" for violation in actual)
    assert not actual, f"\n{report}"


def test_allowances_are_used_and_reasoned(violations: list[Violation]) -> None:
    actual = {violation.key for violation in violations}
    assert set(ALLOWED) <= actual, "an allowance that nothing needs any more"
    assert all(len(reason.split()) >= 4 for reason in ALLOWED.values())


def test_every_module_is_read_under_its_own_name(package: tuple[Module, ...]) -> None:
    by_name = {module.name: module for module in package}
    assert by_name["verax"].is_package
    assert by_name["verax"].path == "src/verax/__init__.py"


@pytest.mark.parametrize(
    "statement",
    [
        "from verax.ops.trig import sin",
        "from verax.ops.elementwise import trig",
        "from verax import ops",
        "import verax.ops.trig",
        "import verax.ops as rows",
        "from ..ops.trig import sin",
        "from ..ops import trig",
        "from .. import ops",
        "import verax",
        "from verax import __version__",
    ],
)
def test_upward_import_is_found(statement: str) -> None:
    modules = planted(ir__avals=statement, ops__trig="sin = 1")
    (actual,) = messages(check_floors, modules)
    assert actual.startswith("verax/ir/avals.py:1 imports upward: verax")


@pytest.mark.parametrize(
    "statement",
    [
        "from verax.ir.avals import ShapedArray",
        "from verax import ir",
        "from ..ir import avals",
        "from .trig import sin",
        "from . import trig",
        "import numpy as np",
    ],
)
def test_downward_import_is_allowed(statement: str) -> None:
    modules = planted(
        ops__arith=statement, ops__trig="sin = 1", ir__avals="ShapedArray = 1"
    )
    assert messages(check_floors, modules) == []


def test_relative_import_of_a_folder_counts_from_the_folder() -> None:
    upward = "from ..transforms import jvp"
    package = Module.parse("verax.ops", upward, is_package=True)
    (actual,) = messages(check_floors, [package])
    assert "imports upward: verax.transforms" in actual


def test_frontends_may_import_each_other_but_not_in_a_circle() -> None:
    modules = planted(
        numpy__sums="from verax.lax import add",
        lax="from verax.numpy.sums import total",
    )
    assert messages(check_floors, modules) == []
    (actual,) = messages(check_cycles, modules)
    assert "imports in a circle: verax." in actual
    assert actual.count("verax.lax") >= 1


def test_chain_of_imports_is_no_circle() -> None:
    modules = planted(ir__a="from .b import c", ir__b="from . import c", ir__c="")
    assert messages(check_cycles, modules) == []


@pytest.mark.parametrize(
    ("name", "statement", "complaint"),
    [
        ("api__jit", "import jaxlib", "imports jaxlib outside backend/"),
        ("ops__dot", "from jaxlib.mlir import ir", "imports jaxlib outside backend/"),
        ("backend__run", "import jax", "imports jax, which verax never does"),
        (
            "verify__laws",
            "from jax import numpy",
            "imports jax, which verax never does",
        ),
        ("numpy__sums", "import hypothesis", "imports hypothesis outside verify/"),
        ("ir__avals", "import scipy.special", "imports scipy, not allowed here"),
        ("ops__dot", "import pandas", "imports pandas, not allowed here"),
    ],
)
def test_forbidden_package_is_found(name: str, statement: str, complaint: str) -> None:
    (actual,) = messages(check_packages, planted(**{name: statement}))
    assert actual.endswith(f":1 {complaint}")


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("backend__run", "from jaxlib import _jax"),
        ("verify__laws", "import hypothesis"),
        ("ops__special", "import scipy.special"),
        ("ir__avals", "import ml_dtypes, functools, collections.abc"),
    ],
)
def test_package_in_its_place_is_allowed(name: str, statement: str) -> None:
    assert messages(check_packages, planted(**{name: statement})) == []


@pytest.mark.parametrize("call", ["LazyModule", "LazyFunction", "module_named"])
def test_what_is_loaded_later_is_an_import(call: str) -> None:
    modules = planted(ir__avals=f'{call}("verax.ops.trig").sin', ops__trig="sin = 1")
    (actual,) = messages(check_floors, modules)
    assert "imports upward: verax.ops.trig" in actual
    (actual,) = messages(check_packages, planted(api__jit=f'{call}("jaxlib", "x")'))
    assert actual.endswith(":1 imports jaxlib outside backend/")


def test_import_inside_a_function_is_of_what_may_wait() -> None:
    modules = planted(
        api__jit="""
        import functools

        class Jit:
            async def call(self):
                def inner():
                    from verax.ir import avals
                import math
                from verax.backend.runtime.log import log_stage
                import scipy.special
        """,
        ir__avals="",
        backend__runtime__log="",
        backend__runtime__cuda="",
    )
    assert sorted(messages(check_late_imports, modules)) == [
        "verax/api/jit.py:7 imports verax.ir.avals inside a function: see LATE in the "
        "layout",
        "verax/api/jit.py:8 imports math inside a function: see LATE in the layout",
        "verax/backend/runtime/cuda.py:1 is in LATE, but nothing imports it inside a "
        "function",
    ]


def test_late_imports_stay_below() -> None:
    modules = planted(
        ir__avals="""
        def text(self):
            from verax.ops.hoisting import as_operands
        """,
        ops__hoisting="",
    )
    (actual,) = messages(check_floors, modules)
    assert "imports upward: verax.ops.hoisting" in actual


@pytest.mark.parametrize(
    "source", ["numpy = __import__('numpy')", "x = importlib.import_module('numpy')"]
)
def test_calling_the_import_machinery_is_found(source: str) -> None:
    (actual,) = messages(check_late_imports, planted(api__jit=source))
    assert actual.endswith(":1 imports by calling the import machinery")


@pytest.mark.parametrize(
    "source",
    [
        "from typing import TYPE_CHECKING",
        "import typing\nif typing.TYPE_CHECKING: pass",
    ],
)
def test_type_checking_is_found(source: str) -> None:
    (actual,) = messages(check_type_checking, planted(api__jit=source))
    assert actual.endswith("hides an import behind TYPE_CHECKING")


@pytest.mark.parametrize(
    "change",
    [
        "RULES['sin'] = 1",
        "del RULES['sin']",
        "RULES['sin'] += 1",
        "RULES.update(sin=1)",
        "RULES.setdefault('sin', 1)",
        "return lambda: RULES.pop('sin')",
    ],
)
@pytest.mark.parametrize(
    "value", ["{}", "dict()", "collections.defaultdict(list)", "dict[str, int]()"]
)
def test_registry_is_found(value: str, change: str) -> None:
    modules = planted(rules__table=f"RULES = {value}\ndef register():\n    {change}\n")
    (actual,) = messages(check_module_state, modules)
    assert actual.endswith(":3 changes RULES, module-level state of verax.rules.table")


@pytest.mark.parametrize(
    "source",
    [
        "from verax.rules.table import RULES\ndef add():\n    RULES.append(1)",
        "from ..rules.table import RULES as R\ndef add():\n    R.append(1)",
        "from verax.rules import table\ndef add():\n    table.RULES.append(1)",
        "import verax.rules.table\n\nverax.rules.table.RULES.append(1)",
        "from verax.rules.table import RULES\n\nRULES[0] = 1",
    ],
)
def test_registry_changed_from_another_module_is_found(source: str) -> None:
    modules = planted(rules__table="RULES: list[int] = []", ops__trig=source)
    actual = messages(check_module_state, modules)
    expected = ":3 changes RULES, module-level state of verax.rules.table"
    assert any(line.endswith(expected) for line in actual)


@pytest.mark.parametrize(
    "source",
    [
        "RULES = {}\nRULES['sin'] = 1",
        "RULES = {}\ndef look(name):\n    return RULES[name]",
        "RULES = ()\ndef join(more):\n    return RULES + more",
        "RULES = {}\ndef f():\n    RULES = {}\n    RULES['a'] = 1",
        "RULES = {}\ndef build(RULES):\n    RULES['a'] = 1",
        "TABLE = RuleTable()\ndef join(row):\n    return TABLE.update(row)",
    ],
)
def test_values_and_local_containers_are_allowed(source: str) -> None:
    assert messages(check_module_state, planted(rules__table=source)) == []


def test_rebinding_a_global_is_found() -> None:
    modules = planted(api__config="X = 1\ndef f():\n    global X\n    X = 2")
    (actual,) = messages(check_module_state, modules)
    assert actual.endswith(":3 rebinds X, a module-level name")


@pytest.mark.parametrize(
    "source",
    [
        "register(int)",
        "if True:\n    register(int)",
        "try:\n    register()\nexcept E: ...",
    ],
)
def test_action_on_import_is_found(source: str) -> None:
    (actual,) = messages(check_module_state, planted(ops__trig=source))
    assert actual.endswith(
        "calls register when imported; importing must register nothing"
    )


@pytest.mark.parametrize(
    "source",
    ["from typing import Any", "import typing\nx: typing.Any = 1", "x: list[Any]"],
)
def test_any_in_ir_is_found_and_only_there(source: str) -> None:
    (actual,) = messages(check_any, planted(ir__avals=source))
    assert actual.endswith("says Any in ir/")
    assert messages(check_any, planted(rules__table=source)) == []


def test_memos_above_ir_have_the_context_in_their_keys() -> None:
    for source in (
        "from functools import lru_cache\n",
        "import functools\n@functools.cache\ndef f(): ...\n",
        "from verax.ir.memos import memoised\n@memoised\ndef f(x): ...\n",
    ):
        assert len(messages(check_memos, planted(api__jit=source))) == 1
        assert messages(check_memos, planted(ir__avals=source)) == []
    wrapped = "from verax.ir.memos import memoised\nparams = memoised(Params)\n"
    assert messages(check_memos, planted(ops__shape=wrapped)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import fcntl",
        "def f(): from resource import getrusage",
        "import os\nx = os.geteuid()",
        "import sys\nif sys.platform == 'win32': x = 1",
        "import os\nhasattr(os, 'fork') and os.fork()",
        "import ctypes\nx = ctypes.CDLL(None)",
    ],
)
def test_what_only_some_systems_have_is_seen(source: str) -> None:
    (message,) = messages(check_system, planted(backend__files=source))
    assert "which not every system has" in message
    assert messages(check_system, planted(ir__system=source)) == []


def test_what_every_system_has_is_allowed() -> None:
    source = "import os, sys, signal\nx = os.replace, sys.argv, ctypes.CDLL('a')"
    assert messages(check_system, planted(backend__files=source)) == []


@pytest.mark.parametrize("mark", ["frozen", "define", "frozen(eq=False)"])
def test_repr_made_by_attrs_is_found(mark: str) -> None:
    source = f"@{mark}\nclass Place:\n    line: int\n"
    assert len(messages(check_reprs, planted(api__jit=source))) == 1
    own = f"{source}    def __repr__(self) -> str: ...\n"
    assert messages(check_reprs, planted(api__jit=own)) == []
    shared = "@frozen(repr=False)\nclass Place(ReprMixin):\n    line: int\n"
    assert messages(check_reprs, planted(api__jit=shared)) == []


ROWS = """
sin_p = elementwise("sin", np.sin)
cos_p: Row[NoParams] = evolve(elementwise("cos", np.cos), costly=large)
exp_p = elementwise("exp", np.exp, lower=stablehlo("exponential"))
"""


@pytest.mark.parametrize(
    "source",
    [
        'CHEAP = frozenset(["sin", "cos", "exp"])',
        'def is_cheap(name):\n    return name in ("sin", "cos", "exp", "more")',
        'CHEAP: Final = "sin cos exp"',
        'FLOPS = {"sin": 20, "cos": 20, "exp": 10}',
        "CHEAP = {sin_p, trig.cos_p}",
        "FLOPS = {sin_p: 20, cos_p: 20}",
    ],
)
def test_list_of_primitives_is_found(source: str) -> None:
    modules = planted(ops__trig=ROWS, transforms__passes__streams=source)
    (violation,) = check_primitive_lists(modules)
    assert violation.symbol in ("CHEAP", "FLOPS", "is_cheap")
    for home in ("ops__more", "jax__views", "verify__laws"):
        assert (
            messages(check_primitive_lists, planted(ops__trig=ROWS, **{home: source}))
            == []
        )


@pytest.mark.parametrize(
    "source",
    [
        'WORDS = ("sin", "cos")',
        'FUNCTIONS = "sin cos exp sum mean std var"',
        "def pair(x):\n    return sin_p, x",
        "POINTERS = (ctypes.c_void_p, ctypes.c_char_p)",
        "is_sine = eqn.primitive is sin_p",
    ],
)
def test_few_primitives_are_no_list(source: str) -> None:
    modules = planted(ops__trig=ROWS, transforms__passes__streams=source)
    assert messages(check_primitive_lists, modules) == []


def test_sizes_at_the_limit_pass_and_beyond_it_are_found() -> None:
    def function(lines: int) -> str:
        return "def f():\n" + "    pass\n" * (lines - 1)

    def wide(methods: int) -> str:
        return "class C:\n" + "    def m(self): ...\n" * methods

    told = function(FUNCTION_LINES).replace("    pass\n", '    """F.\n\n    """\n', 1)
    for source in (
        "#\n" * FILE_LINES,
        function(FUNCTION_LINES),
        told,
        wide(CLASS_METHODS),
    ):
        assert messages(check_sizes, planted(ir__avals=source)) == []
    for source, complaint in (
        ("#\n" * (FILE_LINES + 1), f"is {FILE_LINES + 1} lines long"),
        (function(FUNCTION_LINES + 1), "f is 61 lines long"),
        (wide(CLASS_METHODS + 1), "C has 21 methods"),
    ):
        (actual,) = messages(check_sizes, planted(ir__avals=source))
        assert complaint in actual


def test_missing_docstring_is_found() -> None:
    assert messages(check_docstrings, planted(ir__avals="x = 1")) == [
        "verax/ir/avals.py:1 has no module docstring"
    ]
    assert messages(check_docstrings, planted(ir__avals='"""What it is."""')) == []


@pytest.mark.parametrize(
    ("name", "statement", "complaint"),
    [
        (
            "ops__base__accuracy",
            "from verax.ops.control.scan import scan_p",
            "base imports verax.ops.control.scan, which does not stand below",
        ),
        (
            "ops__special__bessel",
            "from verax.ops.control.scan import scan_p",
            "special imports verax.ops.control.scan, which does not stand below",
        ),
        (
            "ops__trifles__one",
            "",
            "has no place in the order of ops/ (tests/layout.py)",
        ),
    ],
)
def test_import_against_the_order_is_found(
    name: str, statement: str, complaint: str
) -> None:
    modules = planted(**{name: statement}, ops__control__scan="scan_p = 1")
    (actual,) = messages(check_order, modules)
    assert actual.endswith(f":1 {complaint}")


@pytest.mark.parametrize(
    "statement",
    [
        "from verax.ops.base import exact",
        "from verax.ops.control.cond import cond_p",
        "from verax.ir.avals import ShapedArray",
    ],
)
def test_import_along_the_order_is_allowed(statement: str) -> None:
    modules = planted(
        ops__control__scan=statement,
        ops__control__cond="cond_p = 1",
        ops__base__accuracy="exact = 1",
        ir__avals="ShapedArray = 1",
    )
    assert messages(check_order, modules) == []


def test_every_place_in_the_order_is_a_package_or_a_module() -> None:
    for folder, lines in ORDER.items():
        for name in " ".join(lines).split():
            place = SOURCE / folder / name
            assert place.is_dir() or place.with_suffix(".py").exists(), place


def test_package_at_the_limit_passes_and_beyond_it_is_found() -> None:
    package = Module.parse("verax.ops.calls", '"""Calls."""', is_package=True)
    files = [Module.parse(f"verax.ops.calls.m{i}", "") for i in range(PACKAGE_FILES)]
    assert messages(check_package_sizes, [package, *files]) == []
    (actual,) = messages(check_package_sizes, [package, *files, files[0]])
    assert actual.endswith(
        f"holds {PACKAGE_FILES + 1} files, more than {PACKAGE_FILES}"
    )
