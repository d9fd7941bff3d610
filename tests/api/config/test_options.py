"""The table of options: its page, its defaults, what it refuses, what each one does."""

import enum
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import frozen

import verax
import verax.numpy as vnp
from tests import option_table
from tests.api.config.test_config import run
from verax import random
from verax.api.config.options import OPTIONS, ROWS
from verax.rules.values.state import NAMES, State


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    before = {row.name: getattr(State, row.name, row.default) for row in ROWS}
    yield
    for row in ROWS:
        if not (row.client or row.fixed) and before[row.name] != getattr(
            State, row.name, row.default
        ):
            verax.config.update(row.name, before[row.name])


@pytest.fixture
def untouched() -> None:
    """The options that all tests set are as for users; nothing may compile."""
    verax.config.update("enable_compilation_cache", True)
    verax.config.update("traceback_filtering", "auto")


def test_the_page_is_the_table() -> None:
    assert option_table.PAGE.read_text() == option_table.page()


@pytest.mark.usefixtures("untouched")
def test_each_option_stands_once_and_the_state_has_its_default() -> None:
    assert len(OPTIONS) == len(ROWS)
    for row in ROWS:
        assert vars(State).get(row.name, row.default) == row.default
    blocks = {"mesh", "axes", "tracked", "forked", "user_contexts", "xla_metadata"}
    blocks |= {"checking"}
    assert set(NAMES) <= OPTIONS.keys() | blocks


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", [row.name for row in ROWS if not row.client])
def test_each_option_can_be_read_and_set_to_its_default(name: str) -> None:
    row = OPTIONS[name]
    assert getattr(verax.config, f"jax_{name}") == row.default
    verax.config.update(f"jax_{name}", row.default)
    assert getattr(verax.config, name) == row.default
    for value in row.choices:
        verax.config.update(name, value)
        assert verax.config.read(name) == value


@pytest.mark.parametrize("name", [row.name for row in ROWS if row.fixed])
def test_what_is_fixed_says_so(name: str) -> None:
    with pytest.warns(UserWarning, match=f"{name} is always"):
        verax.config.update(name, "another value")
    row = next(row for row in ROWS if row.name == name)
    assert verax.config.read(name) == row.default


def test_wrong_values_change_nothing() -> None:
    for name, value, error in (
        ("numpy_rank_promotion", "never", ValueError),
        ("numpy_rank_promotion", None, ValueError),
        ("enable_checks", "yes", TypeError),
        ("random_seed_offset", 0.5, TypeError),
        ("no_such_option", 1, AttributeError),
    ):
        with pytest.raises(error, match=name):
            verax.config.update(name, value)
        if name in OPTIONS:
            assert verax.config.read(name) == OPTIONS[name].default


def test_blocks_are_decorators_too() -> None:
    @verax.numpy_rank_promotion("raise")
    def inside(again: bool) -> str:
        assert not again or inside(False) == "raise"
        actual: str = verax.config.numpy_rank_promotion
        return actual

    assert inside(True) == "raise"
    assert verax.config.numpy_rank_promotion == "allow"


@pytest.mark.slow
def test_the_environment_sets_options() -> None:
    code = "import verax; print(verax.config.numpy_rank_promotion)"
    assert run(code, JAX_NUMPY_RANK_PROMOTION="warn") == "warn\n"
    both = {"JAX_NUMPY_RANK_PROMOTION": "warn", "VERAX_NUMPY_RANK_PROMOTION": "raise"}
    assert run(code, **both) == "raise\n"
    told = run(code, JAX_USE_SHARDY_PARTITIONER="0")
    assert "JAX_USE_SHARDY_PARTITIONER is ignored" in told


# ------------------------------------------------------------------ rank promotion

MATRIX, ROW = np.ones((2, 3), np.float32), np.ones(3, np.float32)


@pytest.mark.parametrize(
    "mixed",
    [
        lambda: vnp.add(MATRIX, ROW),
        lambda: vnp.asarray(MATRIX) * vnp.asarray(ROW),
        lambda: vnp.asarray(MATRIX) > ROW,
        lambda: vnp.arctan2(ROW, MATRIX),
        lambda: vnp.logical_and(MATRIX, ROW),
        lambda: verax.jit(vnp.power)(MATRIX, ROW),
        lambda: verax.vmap(vnp.add, (0, None))(MATRIX[None], ROW),
        lambda: vnp.vectorize(lambda x, y: x)(MATRIX, ROW),
    ],
)
def test_ranks_that_differ(mixed: Callable[[], object]) -> None:
    mixed()
    with verax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        mixed()
    with verax.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank"):
        mixed()
    mixed()


def test_ranks_that_agree_and_scalars() -> None:
    with verax.numpy_rank_promotion("raise"):
        assert (vnp.asarray(MATRIX) + MATRIX[:1]).shape == (2, 3)
        assert (vnp.asarray(MATRIX) + 1 + np.float32(1) + vnp.ones(())).shape == (2, 3)
        assert vnp.matmul(MATRIX, ROW).shape == (2,)


# ------------------------------------------------------------------------- guards


def test_arguments_that_must_not_be_transferred() -> None:
    double, x = verax.jit(lambda x: 2 * x), vnp.ones(3)
    double(x), double(MATRIX)
    with verax.transfer_guard("disallow"):
        assert double(x).tolist() == [2, 2, 2]
        assert verax.device_put(ROW).tolist() == [1, 1, 1]
        with pytest.raises(verax.errors.JaxRuntimeError, match="host-to-device"):
            double(MATRIX)
        with verax.transfer_guard_host_to_device("allow"):
            double(MATRIX)
    with verax.transfer_guard_host_to_device("disallow_explicit"):
        with pytest.raises(verax.errors.JaxRuntimeError, match="explicit"):
            verax.device_put(ROW)
        assert verax.device_get(x).tolist() == [1, 1, 1]
    assert double(MATRIX).shape == (2, 3)


def test_transfers_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with verax.transfer_guard("log"):
        verax.jit(lambda x: x)(ROW)
    assert "host-to-device transfer: f32[3], argument 0" in caplog.text


def test_one_option_sets_three() -> None:
    verax.config.update("transfer_guard", "log")
    for way in ("host_to_device", "device_to_device", "device_to_host"):
        assert verax.config.read(f"transfer_guard_{way}") == "log"


def test_nothing_runs() -> None:
    double = verax.jit(lambda x: 2 * x)
    made = double.lower(1.0).compile()
    double(1.0)
    with verax.no_execution():
        for run_it in (lambda: double(1.0), lambda: made(1.0), lambda: vnp.sin(ROW)):
            with pytest.raises(RuntimeError, match="no_execution"):
                run_it()
        assert str(verax.eval_shape(double, 1.0).dtype) == "float32"
    assert double(1.0) == 2


def test_nothing_is_traced() -> None:
    double = verax.jit(lambda x: 2 * x)
    double(1.0)
    with verax.no_tracing():
        assert double(2.0) == 4
        with pytest.raises(RuntimeError, match="re-tracing"):
            double(MATRIX)


# ------------------------------------------------------------- logs, keys and dtypes


def test_stages_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with verax.log_compiles():
        verax.jit(lambda x: x - 41)(1.0)
    for line in (
        "Finished tracing <lambda> for jit in",
        "Finished jaxpr to MLIR module conversion jit(<lambda>) in",
        "Compiling jit(<lambda>) with global shapes and types",
        "Finished XLA compilation of jit(<lambda>) in",
    ):
        assert line in caplog.text
    caplog.clear()
    verax.jit(lambda x: x - 42)(1.0)
    assert not caplog.text


def test_the_level_of_the_logger(capsys: pytest.CaptureFixture[str]) -> None:
    verax.config.update("logging_level", "INFO")
    assert logging.getLogger("verax").level == logging.INFO
    verax.config.update("logging_level", None)
    assert logging.getLogger("verax").level == logging.NOTSET


def test_raw_keys() -> None:
    key = verax.random.PRNGKey(0)
    with verax.legacy_prng_key("error"):
        verax.random.normal(verax.random.wrap_key_data(key))
        for use in (verax.random.normal, verax.random.split, verax.random.key_data):
            with pytest.raises(ValueError, match="Legacy uint32 key"):
                use(key)
        # What holds no key is told first.
        with pytest.raises(TypeError, match="invalid PRNG key data in normal"):
            verax.random.normal(vnp.zeros(1))
    with verax.legacy_prng_key("warn"), pytest.warns(UserWarning, match="Legacy"):
        verax.random.bits(key)
    with verax.enable_custom_prng():
        assert verax.random.PRNGKey(0) == verax.random.key(0)


def test_seeds_are_moved() -> None:
    moved = verax.random.key_data(verax.random.key(12))
    verax.config.update("random_seed_offset", 5)
    for seed in (7, np.int32(7), vnp.int32(7)):
        actual = verax.random.key_data(verax.random.key(seed))
        assert actual.tolist() == moved.tolist()
        actual = verax.jit(lambda s: verax.random.key_data(verax.random.key(s)))(seed)
        assert actual.tolist() == moved.tolist()


def test_wide_dtypes_that_are_asked_for() -> None:
    with verax.explicit_x64_dtypes("error"):
        with pytest.raises(ValueError, match="64-bit types are off"):
            vnp.zeros(2, np.float64)
        assert vnp.zeros(2, float).dtype == np.float32
        with verax.enable_x64():
            assert vnp.zeros(2, np.float64).dtype == np.float64
    for asked in (np.float64, "float64", np.dtype(np.float64)):
        with pytest.warns(UserWarning, match="64-bit"):
            vnp.zeros(2, asked)


class Mode(enum.IntEnum):
    """As in JAX, where the values of the option are members of an enumeration."""

    WARN = 1
    ERROR = 2
    ALLOW = 3


WIDE: dict[str, tuple[Any, str]] = {
    "array": (lambda: vnp.array(1 << 40, dtype=np.int64), "int64"),
    "list": (lambda: vnp.array([1 << 40], dtype="int64"), "int64"),
    "of numpy": (lambda: vnp.array(np.array([1 << 40]), dtype="int64"), "int64"),
    "class": (lambda: vnp.int64(1 << 40), "int64"),
    "zeros": (lambda: vnp.zeros(2, "float64"), "float64"),
    "full": (lambda: vnp.full(2, 0.1, np.dtype(np.float64)), "float64"),
    "arange": (lambda: vnp.arange(1, 9, 3, dtype="int64"), "int64"),
    "linspace": (lambda: vnp.linspace(0, 1, 4, dtype="float64"), "float64"),
    "astype": (lambda: vnp.ones(2).astype("float64") / 3, "float64"),
    "beside a number": (lambda: vnp.ones(1, "float64") + 0.1, "float64"),
    "beside float32": (lambda: vnp.ones(1, "float64") + vnp.ones(1), "float64"),
    "quotient": (lambda: vnp.ones(1, "int64") / 3, "float64"),
    "unsigned": (lambda: vnp.ones(1, "uint32") + vnp.ones(1, "int32"), "int32"),
    "sine": (lambda: vnp.sin(vnp.ones(1, "float64")), "float64"),
    "sum": (lambda: vnp.arange(3).sum(dtype="int64"), "int64"),
    "mean": (lambda: vnp.full(2, 0.1, "float64").mean(), "float64"),
    "max": (lambda: vnp.max(vnp.array([0, 1], "int64"), initial=0), "int64"),
    "inverse": (lambda: vnp.linalg.inv(vnp.eye(2, dtype="float64")), "float64"),
    "lax": (lambda: verax.lax.full((2,), 0.1, np.float64), "float64"),
    "iota": (lambda: verax.lax.iota("int64", 2), "int64"),
    "random": (lambda: random.uniform(random.key(0), (2,), "float64"), "float64"),
    "bits": (lambda: random.bits(random.key(0), (2,), "uint64"), "uint64"),
    "python": (lambda: vnp.ones(2, float) + vnp.zeros(2, int), "float32"),
    "numpy": (lambda: vnp.array(np.ones(2)), "float32"),
}


@pytest.mark.parametrize("name", WIDE)
def test_wide_dtypes_that_are_asked_for_are_kept(name: str) -> None:
    call, dtype = WIDE[name]
    with verax.enable_x64():
        wide = np.asarray(call())
    with verax.explicit_x64_dtypes("allow"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for actual in (call(), verax.jit(call)()):
            assert actual.dtype == dtype
            if wide.dtype == dtype:
                np.testing.assert_allclose(actual, wide, rtol=1e-15)


def test_wide_arguments_of_programs_ahead_of_time() -> None:
    verax.config.update("jax_explicit_x64_dtypes", Mode.ALLOW)
    assert verax.config.jax_explicit_x64_dtypes == "allow"
    struct = verax.ShapeDtypeStruct((), np.int64)
    program = verax.jit(lambda x: x + vnp.int64(1)).lower(struct).compile()
    assert program(vnp.int64(1 << 40)).tolist() == (1 << 40) + 1
    assert verax.grad(lambda x: x**2)(vnp.float64(0.1)).dtype == np.float64
    with pytest.raises(ValueError, match="must be one of warn, error, allow"):
        verax.config.update("explicit_x64_dtypes", "nothing")


def test_large_constants() -> None:
    captured = vnp.ones(1000)
    smaller = captured[1:]
    verax.config.update("captured_constants_warn_bytes", 4000)
    with pytest.warns(UserWarning, match="captured 4,000 bytes"):
        verax.jit(lambda x: x + captured)(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verax.jit(lambda x: x + smaller)(1.0)


def test_each_trace_is_checked() -> None:
    checks = []

    @verax.jit
    def wave(x: Any) -> Any:
        checks.append(verax.config.enable_checks)
        return vnp.sin(x)

    with verax.enable_checks():
        wave(1.0)
    assert checks == [True]


def test_a_user_context_is_part_of_the_key() -> None:
    first, second = verax.make_user_context(1), verax.make_user_context()
    traced = []

    @verax.jit
    def seen(x: Any) -> Any:
        traced.append((first.value, second.value))
        return x

    seen(0.0)
    with first(2), second("a"), first(3):
        seen(0.0)
        seen(0.0)
    with first(2):
        seen(0.0)
    seen(0.0)
    assert traced == [(1, None), (3, "a"), (2, None)]


def test_the_version() -> None:
    assert verax.__version__ == ".".join(map(str, verax.__version_info__))


@pytest.mark.parametrize(
    "call",
    [
        lambda: vnp.where(MATRIX > 0, ROW, ROW),
        lambda: vnp.heaviside(MATRIX, ROW),
        lambda: vnp.cov(MATRIX, aweights=ROW),
        lambda: verax.scipy.special.dawsn(ROW),
        lambda: verax.scipy.linalg.sqrtm(np.eye(3, dtype=np.float32)),
        lambda: verax.scipy.stats.gaussian_kde(np.arange(4.0)).logpdf(ROW),
        lambda: verax.scipy.signal.detrend(MATRIX),
        lambda: verax.scipy.signal.welch(MATRIX),
        lambda: verax.scipy.signal.istft(verax.scipy.signal.stft(MATRIX)[2]),
    ],
)
def test_what_verax_does_itself_promotes_no_ranks(call: Callable[[], object]) -> None:
    with verax.numpy_rank_promotion("raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()


def test_blocks_of_options_are_entered_by_a_stack() -> None:
    with ExitStack() as stack:
        stack.enter_context(verax.enable_x64(True))
        assert verax.numpy.arange(2.0).dtype == "float64"
    assert not verax.config.enable_x64


def test_blocks_of_what_cannot_be_changed() -> None:
    for block, constant in (
        (verax.allow_f16_reductions, True),
        (verax.jax2tf_associative_scan_reductions, False),
        (verax.thread_guard, False),
    ):
        with block(constant):
            assert float(verax.jit(vnp.sum)(vnp.ones(3))) == 3
        with pytest.raises(ValueError, match="cannot be changed"):
            block(not constant)
    with verax.array_garbage_collection_guard(None), verax.softmax_custom_jvp():
        assert verax.config.jax_softmax_custom_jvp
    with pytest.raises(ValueError, match="freed by references"):
        verax.array_garbage_collection_guard("fatal")


def test_blocks_take_the_argument_that_jax_has() -> None:
    with verax.enable_x64(new_val=True), verax.numpy_rank_promotion(new_val="raise"):
        assert verax.config.x64_enabled
        assert verax.config.values["jax_numpy_rank_promotion"] == "raise"
    assert not verax.config.read("enable_x64")
    with pytest.raises(TypeError):
        verax.default_prng_impl()  # type: ignore[call-arg]  # as in JAX


def test_options_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = "--jax_enable_x64 --jax_numpy_rank_promotion=warn --nojax_enable_checks"
    monkeypatch.setattr(
        "sys.argv", ["prog", "x", *flags.split(), "--other=1", "--", "--jax_debug_nans"]
    )
    with verax.enable_checks():
        verax.config.parse_flags_with_absl()
    assert vnp.zeros(1).dtype == np.float64
    assert verax.config.numpy_rank_promotion == "warn"
    assert not verax.config.enable_checks
    assert not verax.config.debug_nans
    monkeypatch.setattr("sys.argv", ["prog", "--jax_numpy_rank_promotion"])
    with pytest.raises(ValueError, match="needs a value"):
        verax.config.parse_flags_with_absl()
    monkeypatch.setattr("sys.argv", ["prog", "--jax_no_such_option=1"])
    with pytest.raises(AttributeError, match="no option"):
        verax.config.parse_flags_with_absl()


def test_flags_of_absl(monkeypatch: pytest.MonkeyPatch) -> None:
    """absl is not installed with verax: what is asked of it stands in for it."""

    @frozen
    class Flag:
        name: str
        value: Any
        present: bool

    flags: Any = SimpleNamespace(FLAGS={})
    later: list[Callable[[], None]] = []

    def define(name: str, default: str | None, text: str) -> None:
        flags.FLAGS[name] = Flag(name, default, False)

    flags.DEFINE_string = define
    with pytest.raises(ModuleNotFoundError, match=r"import absl\.app first"):
        verax.config.config_with_absl()
    monkeypatch.setitem(sys.modules, "absl.flags", flags)
    app = SimpleNamespace(call_after_init=later.append)
    monkeypatch.setitem(sys.modules, "absl.app", app)
    verax.config.config_with_absl()
    (complete,) = later
    asked = {"jax_enable_checks": "1", "jax_numpy_rank_promotion": "warn"}
    flags.FLAGS |= {name: Flag(name, value, True) for name, value in asked.items()}
    with verax.enable_checks(False), verax.numpy_rank_promotion("allow"):
        complete()
    assert verax.config.enable_checks
    assert verax.config.numpy_rank_promotion == "warn"


def test_absl_has_parsed_its_flags_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    class Flags:
        calls: ClassVar[list[list[str]]] = []

        def is_parsed(self) -> bool:
            return bool(self.calls)

        def __call__(self, argv: list[str], known_only: bool) -> None:
            assert known_only
            self.calls.append(argv)

    monkeypatch.setattr("sys.argv", ["prog", "--other=1"])
    monkeypatch.setitem(sys.modules, "absl.flags", SimpleNamespace(FLAGS=Flags()))
    verax.config.parse_flags_with_absl()
    verax.config.parse_flags_with_absl()
    assert Flags.calls == [[""]]


def test_levels_set_the_effort() -> None:
    level = verax.CompilerEffortLevel
    for name, effort in (("O0", "fast"), ("O1", "light"), ("O3", "full")):
        verax.config.update("jax_optimization_level", name)
        assert verax.config.optimization_level is level[name]
        assert verax.config.compile_effort == effort
    verax.config.update("jax_optimization_level", level.UNKNOWN)
    assert verax.config.compile_effort == "auto"
    verax.config.update("jax_disable_most_optimizations", True)
    assert verax.config.compile_effort == "fast"
    verax.config.update("jax_disable_most_optimizations", False)
    assert verax.config.compile_effort == "auto"
    with pytest.raises(ValueError, match="O7"):
        verax.config.update("jax_optimization_level", "O7")
    with pytest.warns(UserWarning, match="always"):
        verax.config.update("jax_memory_fitting_level", level.O1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verax.config.update("jax_memory_fitting_level", "O2")
