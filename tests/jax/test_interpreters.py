"""Interpreters of a program's own: traces and tracers as JAX's libraries write them."""

from collections.abc import Sequence
from typing import Any

import pytest

import verax
import verax.lax as lax
import verax.numpy as vnp
from verax.core import jaxpr_as_fun
from verax.jax import flattree
from verax.jax.overlays import core, linear_util
from verax.jax.overlays.core import set_current_trace, take_current_trace
from verax.jax.primitives import Primitive
from verax.ops.calls.call import jit_p


class LoggedTracer(core.Tracer):
    """A value with a trace that lists the operations on it."""

    def __init__(self, trace: "LoggedTrace", val: Any) -> None:
        super().__init__(trace, core.get_aval(val))
        self.val = val


class LoggedTrace(core.Trace):
    """Lists the operations, and leaves them to the trace around."""

    def __init__(self, parent: Any, log: list[str]) -> None:
        super().__init__()
        self.parent, self.log = parent, log

    def plain(self, x: Any) -> Any:
        owner: Any = x._trace if isinstance(x, LoggedTracer) else None
        return x.val if owner is self else x

    def process_primitive(
        self, primitive: Any, tracers: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        self.log.append(str(primitive))
        xs = [self.plain(x) for x in tracers]
        if primitive is jit_p:
            with set_current_trace(self):
                return jaxpr_as_fun(params["jaxpr"])(*tracers)
        avals = [core.get_aval(x) for x in tracers]
        actual = primitive.bind_with_trace(self.parent, xs, avals, params)
        return verax.tree.map(lambda y: LoggedTracer(self, y), actual)

    def process_custom_jvp_call(
        self,
        primitive: Any,
        fun: Any,
        jvp: Any,
        tracers: Sequence[Any],
        *,
        symbolic_zeros: bool,
    ) -> Any:
        self.log.append(str(primitive))
        xs = [self.plain(x) for x in tracers]
        avals = [core.get_aval(x) for x in xs]
        actual = primitive.bind_with_trace(
            self.parent,
            xs,
            avals,
            {"subfuns": (fun, jvp), "symbolic_zeros": symbolic_zeros},
        )
        return [LoggedTracer(self, y) for y in actual]

    def process_custom_vjp_call(
        self,
        primitive: Any,
        fun: Any,
        fwd: Any,
        bwd: Any,
        tracers: Sequence[Any],
        out_trees: Any,
        symbolic_zeros: bool,
    ) -> Any:
        self.log.append(str(primitive))
        return fun.call_wrapped(*tracers)


def logged(f: Any, log: list[str]) -> Any:
    """`f`, which lists the operations on its arguments."""

    def call(*xs: Any) -> Any:
        with take_current_trace() as parent:
            trace = LoggedTrace(parent, log)
            with set_current_trace(trace):
                out = f(*[LoggedTracer(trace, x) for x in xs])
            return trace.plain(out)

    return call


def test_operations_ask_the_trace() -> None:
    log: list[str] = []
    f = logged(lambda x: vnp.sin(x) * 2 + x[0], log)
    x = vnp.arange(3.0)
    assert f(x).tolist() == (vnp.sin(x) * 2 + x[0]).tolist()
    assert {"sin", "mul", "add"} <= set(log)
    assert core.trace_state_clean()


def test_transformations_of_and_inside_an_interpreter() -> None:
    log: list[str] = []
    f = logged(lambda x: vnp.sin(x) * x, log)
    due = verax.grad(lambda x: vnp.sin(x) * x)(2.0)
    assert verax.jit(f)(2.0) == verax.jit(lambda x: vnp.sin(x) * x)(2.0)
    assert verax.grad(f)(2.0) == due
    assert verax.vmap(f)(vnp.ones(3)).shape == (3,)
    assert verax.jit(verax.grad(f))(2.0) == pytest.approx(float(due))

    def product(x: Any) -> Any:
        return vnp.sin(x) * x

    inside = logged(verax.grad(product), log)
    assert inside(2.0) == pytest.approx(float(due))
    assert "cos" in log


def test_calls_ask_the_trace() -> None:
    log: list[str] = []

    def f(x: Any) -> Any:
        return verax.jit(lambda y: vnp.cos(y) + x)(x * 2)  # which closes over x

    assert logged(f, log)(1.0) == pytest.approx(float(f(1.0)))
    assert log.count("jit") == 1
    assert "cos" in log


def test_loops_ask_the_trace() -> None:
    log: list[str] = []

    def f(x: Any) -> Any:
        total, _ = lax.scan(lambda c, y: (c + y * x, None), 0.0, vnp.arange(3.0))
        return lax.cond(True, lambda: total, lambda: x) + total

    assert logged(f, log)(2.0) == f(2.0) == 12
    assert "scan" in log


def test_functions_with_derivatives_of_their_own() -> None:
    @verax.custom_jvp
    def f(x: Any) -> Any:
        return vnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 5 * tangents[0]))

    @verax.custom_vjp
    def g(x: Any) -> Any:
        return vnp.cos(x)

    g.defvjp(lambda x: (g(x), None), lambda _, ct: (7 * ct,))
    log: list[str] = []
    assert logged(f, log)(1.0) == f(1.0)
    assert verax.grad(logged(f, log))(1.0) == 5
    assert logged(g, log)(1.0) == g(1.0)
    assert {"custom_jvp_call", "custom_vjp_call", "cos"} <= set(log)


def test_primitives_of_the_program() -> None:
    double_p = Primitive("double")
    double_p.def_abstract_eval(lambda x, *, by: x)
    double_p.def_impl(lambda x, *, by: x * by)
    seen: list[Any] = []

    class Seeing(core.Trace):
        """Notes what it is asked for."""

        def process_primitive(
            self, primitive: Any, tracers: Sequence[Any], params: dict[str, Any]
        ) -> Any:
            seen.append((primitive, params))
            return primitive.bind(*tracers, **params)

    with set_current_trace(Seeing()):
        assert double_p.bind(2.0, by=3.0) == 6
    assert seen[0][0] is double_p
    assert seen[0][1] == {"by": 3.0}


def test_what_a_trace_lacks() -> None:
    @verax.custom_jvp
    def f(x: Any) -> Any:
        return vnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    with set_current_trace(core.Trace()), pytest.raises(NotImplementedError):
        vnp.sin(1.0)
    with (
        set_current_trace(core.Trace()),
        pytest.raises(NotImplementedError, match="process_custom_jvp_call"),
    ):
        f(1.0)


def test_a_rule_that_returns_one_array_is_refused() -> None:
    class Rows(core.Trace):
        """Takes the rows of a result for results, as quax does."""

        def process_primitive(
            self, primitive: Any, tracers: Sequence[Any], params: dict[str, Any]
        ) -> Any:
            (actual,) = primitive.bind(*tracers, **params)
            return list(actual)

    x = vnp.ones((1, 2))
    with set_current_trace(Rows()), pytest.raises(TypeError, match="multiple_results"):
        lax.sin(x)


def test_classes() -> None:
    seen = []
    verax.jit(lambda x: seen.append(isinstance(x, core.Tracer)))(1.0)
    assert seen == [True]
    trace = LoggedTrace(None, [])
    assert isinstance(LoggedTracer(trace, 1.0), core.Tracer)
    assert not isinstance(vnp.ones(3), core.Tracer)
    seen = []
    verax.jit(lambda x: seen.append(isinstance(x, LoggedTracer)))(1.0)
    assert seen == [False]
    with take_current_trace() as current:
        assert isinstance(current, core.EvalTrace)
    assert core.TraceTag() != core.TraceTag()
    with pytest.raises(verax.errors.ConcretizationTypeError):
        bool(LoggedTracer(trace, 1.0))


def test_params_are_those_of_jax() -> None:
    seen: dict[str, Any] = {}

    class Noting(core.Trace):
        """Notes the params, and binds again with what a program would write."""

        def process_primitive(
            self, primitive: Any, tracers: Sequence[Any], params: dict[str, Any]
        ) -> Any:
            seen[str(primitive)] = params
            if "ft_in" in params:
                carry, xs = params["ft_in"].update(tracers).unpack()[1:]
                groups = flattree.pack([flattree.nones(n) for n in (0, 1, 1)])
                assert [len(carry), len(xs)] == [1, 1]
                params = {**params, "ft_in": groups}
            return primitive.bind(*tracers, **params)

    x = vnp.arange(3.0)
    with set_current_trace(Noting()):
        total, _ = lax.scan(lambda c, y: (c + y, None), 0.0, x)
        last = lax.while_loop(lambda c: c < 5, lambda c: c * 2, 1.0)
        chosen = lax.cond(x[1] > 0, lambda y: y, lambda y: -y, 2.0)
        sine = verax.jit(vnp.sin)(x)
    assert [total.item(), last.item(), chosen.item()] == [3, 8, 2]
    assert sine.tolist() == pytest.approx(vnp.sin(x).tolist())
    assert set(seen["scan"]) == {
        *("ft_in", "ft_out", "jaxpr", "length", "reverse", "unroll")
    }
    assert [len(group) for group in seen["scan"]["ft_out"].unpack()] == [1, 0]
    assert set(seen["while"]) == {
        *("body_jaxpr", "body_nconsts", "cond_jaxpr", "cond_nconsts")
    }
    assert set(seen["cond"]) == {"branches"}
    assert seen["jit"]["inline"] is verax.Inline.AUTO


def test_params_that_only_jax_has_are_none() -> None:
    seen: dict[str, Any] = {}

    class Noting(core.Trace):
        """Notes the params, and binds again with them."""

        def process_primitive(
            self, primitive: Any, tracers: Sequence[Any], params: dict[str, Any]
        ) -> Any:
            seen[str(primitive)] = params
            return primitive.bind(*tracers, **params)

    with set_current_trace(Noting()):
        assert lax.sin(0.0) == 0
        assert lax.round(2.5) == 3
        assert lax.broadcast_in_dim(vnp.ones(2), (2, 1), (0,)).shape == (2, 1)
    assert seen["sin"] == {"accuracy": None}
    assert seen["round"]["rounding_method"] is lax.RoundingMethod.AWAY_FROM_ZERO
    assert set(seen["broadcast_in_dim"]) == {
        *("shape", "broadcast_dimensions", "sharding")
    }
    with pytest.raises(TypeError, match="sharding"):
        lax.sin_p.bind(0.0, sharding="x")


def test_jaxprs_in_params_are_closed() -> None:
    (eqn,) = verax.make_jaxpr(lambda x: verax.jit(vnp.sin)(x))(1.0).eqns
    closed: Any = core.ClosedJaxpr
    assert isinstance(eqn.params["jaxpr"], closed)
    assert isinstance(verax.make_jaxpr(vnp.sin)(1.0), closed)
    assert not isinstance(eqn, closed)
    made = closed(eqn.params["jaxpr"], [])
    assert made == verax.core.ClosedJaxpr(eqn.params["jaxpr"])


def test_a_step_ends_with_the_function_that_fails() -> None:
    ended = []

    def step(*args: Any) -> Any:
        block = set_current_trace(core.Trace())
        block.__enter__()
        try:
            yield args, {}
        except GeneratorExit:  # as quax does, which leaves the block to be collected
            ended.append(core.trace_ctx.trace)
            raise
        block.__exit__(None, None, None)

    def fails(x: Any) -> Any:
        raise ValueError("failed")

    before = core.trace_ctx.trace
    with pytest.raises(ValueError, match="failed"):
        linear_util.transformation(step)(linear_util.wrap_init(fails)).call_wrapped(1.0)
    assert [type(x) for x in ended] == [core.Trace]
    assert core.trace_ctx.trace is before


def test_what_two_steps_hand_out() -> None:
    def step(*args: Any) -> Any:
        out = yield args, {}
        yield out, "aside"

    wrap = linear_util.transformation_with_aux(step)
    ran, first = wrap(linear_util.wrap_init(lambda x: x))
    _, second = wrap(linear_util.wrap_init(lambda x: x))
    with pytest.raises(linear_util.StoreException):
        linear_util.merge_linear_aux(first, second)
    assert ran.call_wrapped(1) == 1
    assert linear_util.merge_linear_aux(first, second) == (True, "aside")
    assert linear_util.merge_linear_aux(second, first) == (False, "aside")


def test_scalars_reach_a_trace_as_arrays() -> None:
    seen: list[Any] = []

    class Noting(core.Trace):
        """Notes the operands."""

        def process_primitive(
            self, primitive: Any, tracers: Sequence[Any], params: dict[str, Any]
        ) -> Any:
            seen.extend(tracers)
            return primitive.bind(*tracers, **params)

    with set_current_trace(Noting()):
        assert vnp.percentile(vnp.arange(3.0), 50) == 1
    assert seen
    assert not [x for x in seen if isinstance(x, verax.core.Literal)]


class RunningRules(LoggedTrace):
    """Calls both rules of a `custom_vjp` function, and keeps what they return."""

    def process_custom_vjp_call(
        self,
        primitive: Any,
        fun: Any,
        fwd: Any,
        bwd: Any,
        tracers: Sequence[Any],
        out_trees: Any,
        symbolic_zeros: bool,
    ) -> Any:
        self.log += [fun.__name__, fwd.__name__, bwd.__name__]
        pairs = [entry for x in tracers for entry in (x, True)]
        actual = fwd.call_wrapped(*pairs)
        _, tree, forwarded = out_trees()
        assert len(forwarded) == tree.num_leaves
        residuals, outs = actual[: tree.num_leaves], actual[tree.num_leaves :]
        cts, logs = bwd.call_wrapped(*residuals, *[vnp.ones_like(y) for y in outs])
        assert logs is None
        self.pulled = [float(ct) for ct in cts if ct.dtype != verax.dtypes.float0]
        return outs


def test_an_interpreter_may_call_the_rules_of_a_custom_vjp() -> None:
    shift = vnp.float32(10.0)

    @verax.custom_vjp
    def scaled(a: Any, x: Any, n: Any) -> Any:
        return a * x + shift, n

    def scaled_fwd(a: Any, x: Any, n: Any) -> Any:
        return scaled(a, x, n), {"kept": (a, x)}

    def scaled_bwd(kept: Any, cts: Any) -> Any:
        _, x = kept["kept"]
        return 100 * cts[0] * x, None, None

    scaled.defvjp(scaled_fwd, scaled_bwd)
    log: list[str] = []
    with take_current_trace() as parent:
        trace = RunningRules(parent, log)
        with set_current_trace(trace):
            out, n = scaled(2.0, vnp.float32(3.0), 4)
    assert (float(out), int(n)) == (16.0, 4)
    assert log == ["scaled", "scaled_fwd", "scaled_bwd"]
    assert trace.pulled == [300.0, 0.0]
