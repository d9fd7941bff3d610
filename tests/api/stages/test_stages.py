"""The stages of jit: what each tells, what a compiled function takes and refuses."""

import copy
import gc
import pickle
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, stages
from verax.api.config.config import override
from verax.backend.runtime.errors import CompileError
from verax.backend.runtime.metrics import RECORDER
from verax.experimental.layout import Format, Layout
from verax.rules.rows.leaks import LeakedTracer
from verax.rules.rows.row import MissingRule

X = np.arange(3, dtype=np.float32)
Point = namedtuple("Point", "x y")


def scaled(params: dict[str, Any], n: int, *, shift: Any) -> dict[str, Any]:
    return {"out": params["w"] * n + shift, "count": n}


def scaled_stages() -> tuple[Any, Any, Any]:
    jitted = verax.jit(scaled, static_argnums=1, donate_argnames="shift")
    traced = jitted.trace({"w": X}, 3, shift=X)
    lowered = traced.lower()
    return traced, lowered, lowered.compile()


def test_every_stage_tells_what_goes_in_and_out() -> None:
    for stage in scaled_stages():
        assert stage.fun_name == "scaled"
        assert str(stage.in_tree) == "PyTreeDef((({'w': *},), {'shift': *}))"
        assert str(stage.in_avals) == "(({'w': f32[3]},), {'shift': f32[3]})"
        assert {k: str(v) for k, v in stage.out_avals.items()} == {
            "out": "f32[3]",
            "count": "~i32[]",
        }
        args, kwargs = stage.args_info
        assert (args[0]["w"].donated, kwargs["shift"].donated) == (False, True)
        assert (args[0]["w"].shape, args[0]["w"].dtype) == ((3,), np.float32)
        assert stage.donate_argnums == (1,)
        assert stage.out_info["out"].shape == (3,)
        assert stage.out_info["out"].dtype == np.float32
        assert list(stage.out_tree.unflatten([0, 1])) == ["count", "out"]


def test_the_classes_have_jax_names() -> None:
    traced, lowered, compiled = scaled_stages()
    assert isinstance(traced, stages.Traced)
    assert isinstance(lowered, stages.Lowered)
    assert isinstance(compiled, stages.Compiled)
    assert isinstance(verax.jit(scaled), stages.Wrapped)
    assert not isinstance(scaled, stages.Wrapped)


def test_a_traced_function_is_a_function() -> None:
    table = np.arange(3, dtype=np.float32)
    traced = verax.jit(lambda x: x * vnp.asarray(table)).trace(1.0)
    assert traced.jaxpr is traced.jaxpr
    assert str(traced.jaxpr).startswith("{ lambda a:f32[3]; b:~f32[].")
    assert traced(2.0).tolist() == [0, 2, 4]
    assert traced(np.float32(2)).tolist() == [0, 2, 4]
    assert verax.grad(lambda x: traced(x).sum())(2.0) == 3
    assert verax.vmap(traced)(X).shape == (3, 3)
    captured, converted = traced.closure_convert()
    assert np.array_equal(captured[0], table)
    assert converted([table + 1], 1.0).tolist() == [1, 2, 3]
    assert traced.effects == frozenset()
    with pytest.raises(TypeError, match=r"Argument 'x' .* called with float32\[2\]"):
        traced(X[:2])


def test_a_trace_that_captures_tracers_is_not_lowered() -> None:
    def outer(x: Any) -> Any:
        traced = verax.jit(lambda y: x + y).trace(1.0)
        captured, converted = traced.closure_convert()
        assert captured == [x]
        with pytest.raises(LeakedTracer):
            traced.lower()
        return traced(2.0) + converted([x], 3.0)

    assert float(verax.jit(outer)(10.0)) == 25


def test_text_in_both_dialects() -> None:
    lowered = verax.jit(lambda x: vnp.sin(x) * 2).lower(X)
    assert lowered.as_text() == lowered.as_text("stablehlo")
    assert "stablehlo.sine" in lowered.as_text()
    assert "loc(" not in lowered.as_text()
    assert "sine(" in lowered.as_text(dialect="hlo")
    assert "stablehlo.sine" in str(lowered.compiler_ir())
    assert lowered.compiler_ir("hlo").as_hlo_module() is not None
    assert "fusion" in lowered.compile().as_text()
    assert lowered.cost_analysis()["flops"] >= 3
    for refused in (lowered.as_text, lowered.compiler_ir):
        with pytest.raises(ValueError, match="stablehlo or hlo, not 'mhlo'"):
            refused("mhlo")


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: vnp.cos(c) + i, x),
    "cond": lambda x: lax.cond(x.sum() > 0, vnp.sin, vnp.cos, x),
    "grad": verax.grad(lambda x: (vnp.tanh(x) ** 2).sum()),
    "calls": lambda x: verax.jit(vnp.sin)(x) + vnp.cumsum(x) + vnp.cumsum(x + 1),
    "sort": lambda x: vnp.sort(x)[::-1],
    "random": lambda x: verax.random.normal(verax.random.key(0), (3,)) + x,
    "callback": lambda x: verax.pure_callback(
        np.sin, verax.ShapeDtypeStruct((3,), np.float32), x
    ),
    "linear": lambda x: vnp.linalg.qr(vnp.outer(x, x))[0],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_debug_info_names_the_lines(name: str) -> None:
    lowered = verax.jit(PROGRAMS[name]).lower(X)
    text = lowered.as_text(debug_info=True)
    assert f'"{__file__}":' in text
    assert Path(__file__).name not in lowered.as_text()
    ir = lowered.compiler_ir()
    parsed = type(ir).parse(text, ir.context)
    assert str(parsed) == str(ir), "the same module, but for the locations"
    assert Path(__file__).name in lowered.as_text("hlo", debug_info=True)


def test_derivatives_are_named_in_debug_info() -> None:
    text = verax.jit(PROGRAMS["grad"]).lower(X).as_text(debug_info=True)
    assert 'loc("transpose(jvp)/' in text


def test_platforms() -> None:
    traced = verax.jit(vnp.sin).trace(X)
    both = traced.lower(lowering_platforms=("cpu", "gpu"))
    assert both.compile()(X).shape == (3,)
    elsewhere = traced.lower(lowering_platforms=("cuda",))
    assert elsewhere.as_text() == both.as_text()
    with pytest.raises(ValueError, match=r"lowered for cuda.*runs on cpu"):
        elsewhere.compile()
    with pytest.raises(ValueError, match="unknown platform 'abacus'"):
        traced.lower(lowering_platforms=("abacus",))
    with pytest.raises(ValueError, match="sequence of names"):
        traced.lower(lowering_platforms="cpu")
    schur = verax.jit(lax.linalg.schur).trace(np.eye(3, dtype=np.float32))
    with pytest.raises(
        MissingRule, match=r"schur has no lowering for cuda.*lower_on=.'c"
    ):
        schur.lower(lowering_platforms=("cuda",))


def test_a_compiled_function_takes_arrays_scalars_and_trees() -> None:
    def fun(point: Any, *rest: Any, scale: Any = 1, **more: Any) -> Any:
        return [point.x * scale, *rest, more]

    given = Point(X, None), 2, OrderedDict(b=3.0, a=(4.0,))
    compiled = verax.jit(fun).lower(*given, scale=2.0, zero=0, also=1).compile()
    actual = compiled(*given, zero=0, also=1, scale=2.0)
    assert str(actual) == str(verax.jit(fun)(*given, scale=2.0, also=1, zero=0))
    for scale in (3.0, np.float32(3), vnp.float32(3), np.float64(3)):
        assert compiled(*given, zero=0, also=1, scale=scale)[0].tolist() == [0, 3, 6]
    assert str(compiled.input_shardings[1].keys()) == str(
        compiled.in_tree.unflatten(range(7))[1].keys()
    )


def test_static_arguments_are_left_out() -> None:
    *_, compiled = scaled_stages()
    actual = compiled({"w": X}, shift=np.ones(3, np.float32))
    assert actual["out"].tolist() == [1, 4, 7]
    assert int(actual["count"]) == 3
    with pytest.raises(TypeError, match="leave out static arguments"):
        compiled({"w": X}, 3, shift=X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c(), "takes 1 by position, but was called with 0"),
        (lambda c: c({"w": X}), r"in the keyword arguments, \['shift'\] is missing"),
        (
            lambda c: c({"w": X}, shift=X, more=1),
            r"in the keyword arguments, \['more'\] is not expected",
        ),
        (lambda c: c([X], shift=X), "argument params is a list, but must be a dict"),
        (lambda c: c(X, shift=X), "argument params is an array, but must be a dict"),
        (
            lambda c: c({"v": X}, shift=X),
            r"in argument params, \['w'\] is missing and \['v'\] is not expected",
        ),
        (
            lambda c: c({"w": (X,)}, shift=X),
            r"argument params\['w'\] is a tuple, but must be an array",
        ),
        (
            lambda c: c({"w": X}, shift={"a": X}),
            r"keyword argument \['shift'\] is a dict, but must be an array",
        ),
        (
            lambda c: c({"w": X[:2]}, shift=X.astype(int)),
            r"Argument 'params\['w'\]' compiled with float32\[3\] and called with "
            r"float32\[2\]\nArgument 'shift' compiled with float32\[3\] and "
            r"called with int32\[3\]",
        ),
        (
            lambda c: c({"w": "a"}, shift=X),
            r"argument to scaled as .* at path params\['w'\]: 'a' is not a valid",
        ),
        (lambda c: c({"w": X.astype("O")}, shift=X), "not a dtype of arrays"),
        (lambda c: verax.jit(c)({"w": X}, shift=X), "Detected argument params"),
        (
            lambda c: verax.grad(lambda x: c({"w": x}, shift=X)["out"].sum())(X),
            "Detected argument params",
        ),
    ],
)
def test_calls_that_do_not_fit(call: Callable[[Any], Any], message: str) -> None:
    *_, compiled = scaled_stages()
    for _ in range(2):
        with pytest.raises(TypeError, match=message):
            call(compiled)


def test_what_a_compiled_function_was_asked_before_does_not_matter() -> None:
    compiled = verax.jit(lambda x, y: (x, y)).lower(X, 1).compile()
    for _ in range(2):
        assert [len(x.shape) for x in compiled(X, 1)] == [1, 0]
        with pytest.raises(TypeError, match="Argument 'y'"):
            compiled(X, 1.0)
        with pytest.raises(TypeError, match="Argument 'x'"):
            compiled(X.astype(np.int32), 1)
        assert compiled(X.astype(np.float64), 2)[1] == 2
        with verax.enable_x64(), pytest.raises(TypeError, match="float64"):
            compiled(X.astype(np.float64), 2)


def test_calls_of_a_compiled_function_are_remembered() -> None:
    def fun(x: Any, pair: Any, *, less: Any, more: Any) -> Any:
        return {"out": x * pair[0] - less, "more": (more, pair[1])}

    x, y = vnp.asarray(X), vnp.asarray(X + 1)
    compiled = verax.jit(fun).lower(x, (x, None), less=x, more=x).compile()
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x, (y, None)), {"less": x, "more": y}),
        ((x, (y, None)), {"more": y, "less": x}),
        ((X, (y, None)), {"less": x, "more": X + 1}),
    ]
    for args, kwargs in calls:
        assert not compiled.is_remembered(args, kwargs)
        for _ in range(2):
            actual = compiled(*args, **kwargs)
            assert actual["out"].tolist() == [0, 1, 4]
            assert actual["more"][0].tolist() == [1, 2, 3]
            assert actual["more"][1] is None
            assert compiled.is_remembered(args, kwargs)


def test_a_compiled_function_within_a_trace_computes_at_once() -> None:
    compiled = verax.jit(lambda x: x * 2).lower(X).compile()
    traced = verax.make_jaxpr(lambda y: y + compiled(X))(X)
    assert [eqn.primitive.name for eqn in traced.eqns] == ["add"]


def test_types_stand_for_arguments() -> None:
    class Like:
        shape, dtype = (3,), np.dtype(np.float32)

    jitted = verax.jit(lambda x: x * 2)
    text = jitted.lower(X).as_text()
    info, _ = jitted.lower(X).args_info
    for given in (
        verax.ShapeDtypeStruct((3,), np.float32),
        jitted.trace(X).in_avals[0][0],
        info[0],
        Like(),
    ):
        assert jitted.lower(given).as_text() == text
        assert jitted.eval_shape(given).shape == (3,)
    with pytest.raises(TypeError, match=r"at path x\['w'\]: 'no array'"):
        jitted.lower({"w": "no array"})
    struct = verax.ShapeDtypeStruct((3,), np.float32)
    assert len(struct) == 3
    assert struct.update(shape=(2,)).shape == (2,)
    with pytest.raises(TypeError, match="PartitionSpec or a Format, not 'cpu'"):
        verax.ShapeDtypeStruct((), np.float32, sharding="cpu")  # type: ignore[arg-type]  # the error is what is tested
    with pytest.raises(TypeError, match="without dimensions"):
        len(verax.ShapeDtypeStruct((), np.float32))


def test_formats() -> None:
    compiled = (
        verax.jit(lambda x, unused, key: (x.T, key))
        .lower(np.ones((2, 3), np.float32), X, verax.random.key(0))
        .compile()
    )
    (first, unused, key), kwargs = compiled.input_formats
    assert kwargs == {}
    assert first == Format(Layout((0, 1), ()), compiled.input_shardings[0][0])
    assert unused.layout == Layout((0,), ())
    assert key.layout.major_to_minor == ()
    assert [f.layout.major_to_minor for f in compiled.output_formats] == [(0, 1), ()]
    assert compiled.out_info[0].format == compiled.output_formats[0]
    assert Format() == Format(None, None)
    with pytest.raises(ValueError, match="needs a sharding"):
        Format(Layout((0,)))
    with pytest.raises(TypeError, match="Layout or None"):
        Format("row-major")  # type: ignore[arg-type]  # the error is what is tested
    with pytest.raises(TypeError, match="Sharding or None"):
        Format(None, "cpu")  # type: ignore[arg-type]  # the error is what is tested


def test_formats_are_places() -> None:
    compiled = verax.jit(lambda x: x.T).lower(X).compile()
    (expected,), _ = compiled.input_formats
    x = verax.device_put(X, expected)
    assert x.format == expected
    assert x.committed
    assert np.array_equal(compiled(x), X)
    again = verax.jit(lambda x: x, in_shardings=expected, out_shardings=Format())
    assert np.array_equal(again(x), X)
    columns = Format(Layout((1, 0)), expected.sharding)
    with pytest.raises(ValueError, match=r"row-major.*major_to_minor=\(1, 0\)"):
        verax.device_put(np.ones((2, 2)), columns)


def test_analyses_of_the_executable() -> None:
    *_, compiled = scaled_stages()
    memory = compiled.memory_analysis()
    assert memory.arguments == memory.argument_size_in_bytes == 24
    assert memory.output_size_in_bytes > 0
    assert min(memory.temp_size_in_bytes, memory.alias_size_in_bytes) >= 0
    assert memory.generated_code_size_in_bytes == memory.generated_code
    assert compiled.cost_analysis()["flops"] == 6
    assert compiled.runtime_executable().get_hlo_text() == compiled.as_text()


def test_compiler_options() -> None:
    lowered = verax.jit(
        lambda x: x + 1, compiler_options={"xla_backend_optimization_level": 0}
    ).lower(X)
    given = {"xla_llvm_disable_expensive_passes": True}
    assert lowered.compile(given)(X).tolist() == [1, 2, 3]
    assert lowered.compile(compiler_options=None)(X).tolist() == [1, 2, 3]
    with pytest.raises(CompileError, match=r"No such compile option: 'no_such_option'"):
        lowered.compile({"no_such_option": 1, **given})
    with pytest.raises(
        CompileError,
        match=r"xla_llvm_disable_expensive_passes .* '3' is not a valid bool",
    ):
        lowered.compile({"xla_llvm_disable_expensive_passes": 3})
    wrong: Any
    for wrong in ([1], {"xla_dump_to": None}, {1: 2}):
        with pytest.raises(TypeError, match="compiler"):
            verax.jit(vnp.sin, compiler_options=wrong)
        with pytest.raises(TypeError, match="compiler"):
            lowered.compile(wrong)


def test_options_are_part_of_the_executable() -> None:
    option = "xla_llvm_disable_expensive_passes"
    good = verax.jit(lambda x: x * 6.5, compiler_options={option: True})
    assert float(good(2.0)) == 13
    equal = verax.jit(lambda x: x * 6.5, compiler_options={option: 1})
    with pytest.raises(CompileError, match="'1' is not a valid bool value"):
        equal(2.0)
    before = verax.metrics()["compiles"]
    verax.jit(lambda x: x * 6.5, compiler_options={option: False})(2.0)
    assert verax.metrics()["compiles"] == before + 1


def test_donation_ahead_of_time() -> None:
    jitted = verax.jit(lambda x, y: x.sum() + y, donate_argnums=(0, 1))
    with pytest.warns(UserWarning, match=r"donated.*f32\[3\]") as caught:
        lowered = jitted.lower(X, np.float32(1))
    assert [Path(w.filename).name for w in caught] == ["test_stages.py"]
    with pytest.warns(UserWarning, match=r"donated") as caught:
        jitted.trace(X, np.float32(1)).lower()
    assert [Path(w.filename).name for w in caught] == ["test_stages.py"]
    assert lowered.donate_argnums == (0, 1)
    assert float(lowered.compile()(X, np.float32(1))) == 4


def test_donated_memory_is_gone_after_a_compiled_call() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jitted = verax.jit(lambda xs: [xs[0] + 1, xs[1] * 2], donate_argnums=0)
        compiled = jitted.lower([X, X]).compile()
    x: Any = vnp.ones(3) + 0
    y: Any = vnp.ones(3) + 0
    assert [v.tolist() for v in compiled([x, y])] == [[2] * 3, [2] * 3]
    assert x.is_deleted()
    assert y.is_deleted()
    with pytest.raises(RuntimeError, match=r"donated to <lambda>"):
        compiled([x, y])
    z = vnp.ones(3) + 0
    with pytest.raises(RuntimeError, match=r"the same array"):
        compiled([z, z])
    assert z.tolist() == [1, 1, 1]
    values = np.ones(3, np.float32)
    compiled([values, values])
    assert values.tolist() == [1, 1, 1]


def test_another_device_of_the_same_number() -> None:
    lowered = verax.jit(lambda x: x + 1).lower(X)
    (device, *_) = verax.devices()
    assert lowered.compile(device_assignment=(device,))(X).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="runs on 1 different devices, but got 2"):
        lowered.compile(device_assignment=(device, device))
    with pytest.raises(TypeError, match=r"verax.devices\(\), not on 'cpu'"):
        lowered.compile(device_assignment=("cpu",))  # type: ignore[arg-type]  # the error is what is tested


def test_debug_nans_look_at_compiled_functions_too() -> None:
    compiled = verax.jit(lambda x: vnp.log(x) + 1, donate_argnums=0).lower(X).compile()
    loaded = stages.deserialize(compiled.serialize())
    bad = np.array([1, -1, 2], np.float32)
    assert np.isnan(compiled(bad)[1])
    with verax.debug_nans(True):
        assert float(compiled(np.ones(3, np.float32))[0]) == 1
        with pytest.raises(
            FloatingPointError,
            match=r"encountered in log of <lambda>\n.*test_stages.py",
        ):
            compiled(bad)
        with pytest.raises(FloatingPointError, match="loaded as machine code"):
            loaded(vnp.asarray(bad))
        assert np.isinf(compiled(np.zeros(3, np.float32))[0])
    with verax.debug_infs(True), pytest.raises(FloatingPointError, match="infinity"):
        compiled(np.zeros(3, np.float32))
    assert np.isnan(compiled(bad)[1])


def test_stages_show_what_they_are() -> None:
    for stage, word in zip(
        scaled_stages(), ("Traced", "Lowered", "Compiled"), strict=True
    ):
        assert repr(stage) == f"{word}(scaled: f32[3], f32[3] -> ~i32[], f32[3])"
    assert copy.deepcopy(stage) is stage
    with pytest.raises(TypeError, match=r"pickle what its serialize\(\)"):
        pickle.dumps(stage)


def test_a_program_of_sixty_four_bits_says_so() -> None:
    with verax.enable_x64():
        traced = verax.jit(lambda x: x * 2).trace(np.ones(2))
    compiled = traced.lower().compile()
    assert str(compiled.out_avals) == "f64[2]"
    with pytest.raises(TypeError, match="call it with enable_x64 on"):
        compiled(np.ones(2))
    with verax.enable_x64():
        x = vnp.ones(2)
        assert compiled(np.ones(2)).dtype == np.float64
    assert compiled(x).tolist() == [2, 2]


def test_disable_jit_does_not_change_stages() -> None:
    with verax.disable_jit():
        compiled = verax.jit(lambda x: x * 2).lower(X).compile()
        assert compiled(X).tolist() == [0, 2, 4]


def test_messages_of_programs_name_the_parameters() -> None:
    def scale(n: int, x: Any, *, by: Any) -> Any:
        return n * x * by

    program = verax.jit(scale, static_argnums=0).lower(2, 1.0, by=1.0).compile()
    with pytest.raises(TypeError, match=r"Argument 'x' compiled with float32\[\]"):
        program(np.ones(2, np.float32), by=1.0)
    with pytest.raises(TypeError, match=r"does not match .* argument x is a list"):
        program([1.0], by=1.0)
    with pytest.raises(TypeError, match="Detected keyword argument by of scale"):
        verax.jit(lambda y: program(1.0, by=y))(1.0)


def test_calls_and_stages_share_their_programs() -> None:
    table = vnp.arange(3.0)

    def f(x: Any, *, twice: bool) -> Any:
        return {"y": vnp.sin(x) * table, "z": x * (1 + twice)}

    def made() -> float:
        return RECORDER.counts["compiles"]

    jitted = verax.jit(f, static_argnames="twice")
    lowered = jitted.lower(X, twice=True)
    before = made()
    first, again = lowered.compile(), lowered.compile()
    assert made() == before + 1
    called = jitted(X, twice=True)
    other = jitted.lower(X, twice=True).compile()
    assert made() == before + 1
    for actual in (first, again, other):
        assert actual.program.executable is first.program.executable
        for key, value in actual(X).items():
            assert np.array_equal(value, called[key])
    fast = lowered.compile({"xla_cpu_enable_fast_math": True})
    assert made() == before + 2
    assert fast.program.executable is not first.program.executable


def test_what_a_program_captured_is_its_own() -> None:
    def closure(table: Any) -> Any:
        def f(x: Any) -> Any:
            return (table * table)[:2] + x[:2]

        return f

    tables = [vnp.arange(3.0), vnp.arange(3.0) + 5]
    for table in tables:
        f = closure(table)
        stage = verax.jit(f).lower(X).compile()
        want = np.asarray(table)[:2] ** 2 + X[:2]
        assert np.array_equal(stage(X), want)
        assert np.array_equal(verax.jit(f)(X), want)


@pytest.mark.slow(jaxlib=True)
@pytest.mark.usefixtures("few_objects")
def test_programs_compiled_ahead_die_with_their_function() -> None:
    table = vnp.arange(3.0)

    def f(x: Any) -> Any:
        return vnp.tan(x) * vnp.cos(x) - table

    stage = verax.jit(f).lower(X).compile()
    executable = weakref.ref(stage.program.executable)
    del stage
    gc.collect()
    assert executable() is not None
    assert verax.jit(f).lower(X).compile().program.executable is executable()
    del f
    gc.collect()
    assert executable() is None


def test_which_calls_are_kept_is_decided_where_it_is_lowered() -> None:
    def f(x: Any) -> Any:
        return vnp.sin(x) * 5

    with override("calls", "keep"):
        lowered = verax.jit(f).lower(X)
    kept = lowered.compile().program
    assert kept.executable is not verax.jit(f).lower(X).compile().program.executable
    with override("calls", "keep"):
        assert kept.executable is verax.jit(f).lower(X).compile().program.executable
