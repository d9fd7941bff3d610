"""Exported functions: called, differentiated, batched, saved, loaded and refused."""

import collections
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import export, lax
from verax.api.export.export import exported_vjp, pack, unpack
from verax.api.tracing.apply import ENGINE
from verax.export import DisabledSafetyCheck, Exported, deserialize
from verax.rules.rows.row import MissingRule

SOURCE = Path(verax.__file__).parent.parent
TABLE = np.arange(100, dtype=np.float32)
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def model(params: Any, x: Any, *, steps: Any = 1) -> Any:
    """Dicts, a keyword, an integer argument and result, and a captured array."""
    hidden = vnp.tanh(x @ params["w"]) + params["b"]
    return {"out": hidden * vnp.asarray(TABLE)[:2], "steps": steps + 1}


PARAMS = {"b": np.ones(2, np.float32), "w": np.full((3, 2), 0.5, np.float32)}


def loaded(function: Callable[..., Any], *args: Any, order: int = 0) -> Exported:
    """Exported, written and read again."""
    exported = export.export(verax.jit(function))(*args)
    return deserialize(exported.serialize(vjp_order=order))


def equal(one: Any, other: Any) -> bool:
    pairs = zip(verax.tree.leaves(one), verax.tree.leaves(other), strict=True)
    return all(
        a.dtype == b.dtype and np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in pairs
    )


def test_call_gives_what_the_function_gives() -> None:
    exported = export.export(verax.jit(model))(PARAMS, X, steps=3)
    expected = verax.jit(model)(PARAMS, X, steps=3)
    for function in (exported, deserialize(exported.serialize())):
        assert equal(function.call(PARAMS, X, steps=3), expected)
        assert equal(verax.jit(function.call)(PARAMS, X, steps=3), expected)
    assert (exported.fun_name, exported.platforms) == ("model", ("cpu",))
    assert [str(aval) for aval in exported.in_avals] == [
        "f32[2]",
        "f32[3,2]",
        "f32[2,3]",
        "~i32[]",
    ]
    assert "stablehlo.tanh" in exported.mlir_module()


def test_a_call_makes_no_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    exported = export.export(verax.jit(lambda x: vnp.sin(x) * x))(X)
    orders: list[int] = []

    def counted(jaxpr: Any, name: str, *rest: Any) -> Any:
        orders.append(name.count("_vjp") + 1)
        if len(orders) > 20:
            raise ValueError("a derivative of each derivative")
        return exported_vjp(jaxpr, name, *rest)

    monkeypatch.setattr("verax.api.export.export.exported_vjp", counted)
    verax.jit(exported.call)(X)
    own = verax.custom_jvp(lambda x: exported.call(x))
    own.defjvp(lambda p, t: (exported.call(*p), t[0] * exported.call(*p)))
    verax.jit(own)(X)
    assert orders == []
    slope = verax.grad(lambda x: verax.jit(exported.call)(x).sum())
    slope(X)
    assert orders == [1]
    verax.jit(verax.grad(lambda x: slope(x).sum()))(X)
    assert orders == [1, 2]


def test_interpreter_and_program_agree() -> None:
    exported = loaded(lambda x: (vnp.sin(x), x.sum()), X)
    jaxpr = verax.make_jaxpr(exported.call)(X)
    assert "module=<" in str(jaxpr)
    assert len(str(jaxpr)) < 300
    with verax.disable_jit():
        assert equal(exported.call(X), (vnp.sin(X), X.sum()))
    outs = ENGINE.evaluate(jaxpr.jaxpr, [X])
    assert equal(outs, [vnp.sin(X), np.float32(X.sum())])


def test_arguments_may_be_types_and_unused() -> None:
    like = verax.ShapeDtypeStruct((3,), np.float32)
    exported = loaded(lambda x, unused: x * 2, like, like)
    assert exported.module_kept_var_idx == (0,)
    assert exported.call(np.ones(3, np.float32), np.zeros(3, np.float32)).tolist() == [
        2,
        2,
        2,
    ]


def loss(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda params, x: (call(params, x, steps=1)["out"] ** 2).sum()


def test_derivatives_of_every_order_that_was_serialised() -> None:
    exported = loaded(model, PARAMS, X, order=2)
    # The keyword is part of the structure, so it is exported with it.
    with pytest.raises(
        ValueError, match="args and kwargs must have the same pytree structure"
    ):
        exported.call(PARAMS, X, steps=1)
    exported = deserialize(
        export.export(verax.jit(model))(PARAMS, X, steps=1).serialize(vjp_order=2)
    )
    direct, through = loss(model), loss(exported.call)
    assert equal(verax.grad(through)(PARAMS, X), verax.grad(direct)(PARAMS, X))
    assert equal(
        verax.jit(verax.jacrev(verax.grad(through, 1), 1))(PARAMS, X),
        verax.jacrev(verax.grad(direct, 1), 1)(PARAMS, X),
    )
    third = verax.jacrev(verax.jacrev(verax.grad(through, 1), 1), 1)
    with pytest.raises(MissingRule, match="larger vjp_order"):
        third(PARAMS, X)


def test_derivatives_of_what_was_not_serialised_have_no_end() -> None:
    exported = export.export(verax.jit(lambda x: x**5))(1.0)
    function = exported.call
    for power in (5, 20, 60, 120):
        function = verax.grad(function)
        assert float(function(1.0)) == pytest.approx(power, rel=1e-4)


def test_vjp_is_an_exported_function_of_leaves_and_cotangents() -> None:
    exported = loaded(lambda x, n: (x * n, n), X, 3, order=1)
    pulled = exported.vjp()
    assert [str(aval) for aval in pulled.in_avals] == ["f32[2,3]", "~i32[]", "f32[2,3]"]
    (ct,) = pulled.call(X, 3, np.ones_like(X))
    assert ct.tolist() == np.full((2, 3), 3.0).tolist()
    assert exported.has_vjp()
    assert not pulled.has_vjp()
    with pytest.raises(ValueError, match="has no derivative"):
        pulled.vjp()
    with pytest.raises(ValueError, match="has no derivative"):
        pulled.serialize(vjp_order=1)
    with pytest.raises(ValueError, match="vjp_order must be"):
        pulled.serialize(vjp_order=-1)


@pytest.mark.slow(jaxlib=True)
def test_vmap_of_call_and_of_derivative() -> None:
    exported = loaded(lambda a, b: (vnp.sort(a) * b).sum(), X[0], 2.0, order=1)
    call, direct = exported.call, lambda a, b: (vnp.sort(a) * b).sum()
    stack = np.stack([X[0], -X[1], X[1]])
    for axes in ((0, None), (0, 0)):
        b = np.arange(3, dtype=np.float32) if axes[1] == 0 else 2.0
        assert equal(
            verax.vmap(call, axes)(stack, b), verax.vmap(direct, axes)(stack, b)
        )
        assert equal(
            verax.vmap(verax.grad(call), axes)(stack, b),
            verax.vmap(verax.grad(direct), axes)(stack, b),
        )
    assert verax.vmap(call, (0, None))(stack[:0], 2.0).shape == (0,)


def test_two_modules_in_one_program_keep_their_functions_apart() -> None:
    def with_helper(scale: float) -> Exported:
        @verax.jit
        def helper(x: Any) -> Any:
            return vnp.sin(x) * scale

        return loaded(lambda x: helper(x) + helper(x + 1), X)

    one, two = with_helper(2.0), with_helper(3.0)

    def both(x: Any) -> Any:
        return one.call(x) + two.call(x) + one.call(x + 1)

    def expected(x: Any) -> Any:
        return 5 * (np.sin(x) + np.sin(x + 1)) + 2 * (np.sin(x + 1) + np.sin(x + 2))

    assert np.allclose(verax.jit(both)(X), expected(X), atol=1e-5)
    # An exported function that calls exported functions.
    again = loaded(both, X)
    assert np.allclose(
        verax.jit(lambda x: again.call(x) + one.call(x))(X),
        expected(X) + 2 * (np.sin(X) + np.sin(X + 1)),
        atol=1e-5,
    )


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: verax.lax.top_k(x, 2),
        verax.scipy.special.erf,
        lambda x: vnp.linalg.svd(x, compute_uv=False),
        lambda x: vnp.fft.fft(x),
        lambda x: verax.lax.fori_loop(0, 3, lambda i, c: c * 2 + i, x),
        lambda x: verax.lax.cond(x.sum() > 0, vnp.sin, vnp.cos, x),
        lambda x: x + verax.random.normal(verax.random.key(3), x.shape),
        lambda x: (x > 0, (x * 9).astype(np.int8), x.astype(vnp.bfloat16), x + 1j),
        lambda x: vnp.where(TABLE > 50, 1.0, 2.0).sum() + x,
        lambda x: x[:0],
    ],
)
def test_all_kinds_of_programs(function: Callable[..., Any]) -> None:
    exported = loaded(function, X)
    assert equal(exported.call(X), verax.jit(function)(X))
    inside = verax.jit(lambda x: exported.call(x))
    assert equal(inside(X), verax.jit(function)(X))


@pytest.mark.parametrize(
    "values",
    [
        np.arange(100) % 3 == 0,
        (np.arange(100) * 2.5).astype(np.float16),
        np.arange(100) + 1j,
        np.arange(100, dtype=np.uint8),
        np.array([np.nan, -0.0, np.inf, 1e-45] * 20, np.float32),
        np.array(vnp.arange(100).astype(vnp.bfloat16)),
        np.array(vnp.arange(100).astype(vnp.float8_e4m3fn)),
        np.array(vnp.arange(100).astype(vnp.int4)),
        np.zeros((3, 0), np.float32),
        np.asfortranarray(np.arange(60, dtype=np.int32).reshape(5, 12)),
    ],
)
def test_captured_arrays_travel_exactly(values: np.ndarray) -> None:
    held = vnp.asarray(values)
    exported = loaded(lambda x: (held, x), 1.0)
    assert exported.mlir_module_serialized
    actual = np.asarray(exported.call(1.0)[0])
    assert actual.dtype == held.dtype
    assert actual.tobytes() == np.ascontiguousarray(held).tobytes()


def test_keys_and_64_bits() -> None:
    key = verax.random.key(7)
    exported = loaded(verax.random.split, key)
    actual = verax.random.key_data(exported.call(key))
    assert np.array_equal(actual, verax.random.key_data(verax.random.split(key)))
    with verax.enable_x64():
        wide = export.export(verax.jit(vnp.sin))(np.arange(3.0))
    data = wide.serialize(vjp_order=1)
    with verax.enable_x64():
        assert deserialize(data).vjp().out_avals[0].dtype == np.float64
        assert (
            verax.grad(lambda x: deserialize(data).call(x).sum())(np.arange(3.0)).dtype
            == np.float64
        )
    with pytest.raises(ValueError, match=r"argument 0 .* must be f64\[3\]"):
        deserialize(data).call(np.arange(3.0))


class Point(collections.namedtuple("Point", "x y")):
    """A namedtuple of the user's."""


class Sized:
    """A pytree class of the user's, with metadata."""

    def __init__(self, size: int, value: Any) -> None:
        self.size, self.value = size, value


verax.tree_util.register_pytree_node(
    Sized, lambda s: ((s.value,), s.size), lambda size, kids: Sized(size, kids[0])
)


def test_structures_with_the_users_classes() -> None:
    def double(tree: Any) -> Any:
        return verax.tree.map(lambda x: x * 2, tree)

    tree = [
        Point(1.0, (None, 2.0)),
        Sized(5, 3.0),
        {"b": 1.0, "a": collections.OrderedDict(z=2.0, c=())},
        {1: 2.0},
    ]
    exported = export.export(verax.jit(double))(tree)
    for register in (
        lambda: export.register_namedtuple_serialization(
            Point, serialized_name="tests.Point"
        ),
        lambda: export.register_pytree_node_serialization(
            Sized,
            serialized_name="tests.Sized",
            serialize_auxdata=lambda size: struct.pack("<i", size),
            deserialize_auxdata=lambda data: struct.unpack("<i", data)[0],
        ),
    ):
        with pytest.raises(TypeError, match="has no serialised form"):
            exported.serialize()
        register()
    again = deserialize(exported.serialize())
    assert again.in_tree == exported.in_tree
    point, sized, plain, numbered = again.call(tree)
    assert isinstance(point, Point)
    assert (sized.size, list(plain["a"])) == (5, ["z", "c"])
    assert (point.y[1], sized.value, numbered[1]) == (4, 6, 4)
    with pytest.raises(ValueError, match="register it only once"):
        export.register_namedtuple_serialization(Point, serialized_name="tests.Other")
    with pytest.raises(ValueError, match="belongs to the class 'Point'"):
        export.register_pytree_node_serialization(
            verax.tree_util.Partial,
            serialized_name="tests.Point",
            serialize_auxdata=lambda aux: b"",
            deserialize_auxdata=lambda data: None,
        )
    with pytest.raises(ValueError, match="not a namedtuple class"):
        export.register_namedtuple_serialization(dict, serialized_name="tests.dict")
    with pytest.raises(ValueError, match="is not a pytree node"):
        export.register_pytree_node_serialization(
            set,
            serialized_name="tests.set",
            serialize_auxdata=lambda aux: b"",
            deserialize_auxdata=lambda data: None,
        )
    with pytest.raises(TypeError, match=r"the key \(1, 2\) of a dict"):
        export.export(verax.jit(double))({(1, 2): 1.0}).serialize()


def test_wrong_arguments_are_named() -> None:
    exported = loaded(lambda x, scale: x * scale, X, 2.0)
    with pytest.raises(
        ValueError, match=r"argument 1 .* is i32\[\], .* must be f32\[\]"
    ):
        exported.call(X, np.int32(2))
    with pytest.raises(ValueError, match=r"argument 0 .* is f32\[3,2\]"):
        exported.call(X.T, 2.0)
    with pytest.raises(ValueError, match="structure"):
        exported.call(X, scale=2.0)
    assert exported.call(X, np.float32(2)).shape == (2, 3)


def test_what_cannot_be_exported_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be the result of `jit`"):
        export.export(lambda x: x)
    with pytest.raises(ValueError, match="unknown platform 'abacus'"):
        export.export(verax.jit(vnp.sin), platforms=["abacus"])
    with pytest.raises(ValueError, match="sequence of names"):
        export.export(verax.jit(vnp.sin), platforms="cpu")

    def printing(x: Any) -> Any:
        verax.debug.print("{}", x)
        return x

    with pytest.raises(ValueError, match="printing calls functions of this process"):
        export.export(verax.jit(printing))(1.0)
    everywhere = export.export(verax.jit(lax.linalg.schur), platforms=["cpu", "cuda"])
    with pytest.raises(MissingRule, match=r"schur has no lowering for cuda"):
        everywhere(np.eye(2, dtype=np.float32))
    cholesky = verax.jit(vnp.linalg.cholesky)
    both = export.export(cholesky, platforms=["cpu", "cuda"])(np.eye(2, dtype="f4"))
    assert "@lapack_spotrf_ffi" in both.mlir_module()
    assert "@cusolver_potrf_ffi" in both.mlir_module()


def test_platforms_are_checked_when_called() -> None:
    other = export.export(verax.jit(vnp.sin), platforms=["gpu"])(X)
    assert other.platforms == ("cuda",)
    if verax.default_backend() == "cpu":
        with pytest.raises(
            ValueError, match="Function sin was exported for platform cuda"
        ):
            deserialize(other.serialize()).call(X)
    free = export.export(
        verax.jit(vnp.sin),
        platforms=["cuda"],
        disabled_checks=[DisabledSafetyCheck.platform()],
    )(X)
    assert equal(deserialize(free.serialize()).call(X), vnp.sin(X))
    both = export.export(verax.jit(vnp.sin), platforms=("cpu", "cuda"))(X)
    assert equal(both.call(X), vnp.sin(X))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda data: b"", "every exported function starts with"),
        (lambda data: b"x" + data, "every exported function starts with"),
        (lambda data: data[:20], "every exported function starts with"),
        (lambda data: data[:-1], "is damaged"),
        (lambda data: data + b"x", "is damaged"),
        (lambda data: data[:90] + b"\xff" + data[91:], "is damaged"),
        (
            lambda data: data[:13] + b"\x09" + data[14:],
            "version 9, but this verax reads version 1",
        ),
    ],
)
def test_wrong_bytes_are_one_clear_error(
    change: Callable[[bytes], bytes], complaint: str
) -> None:
    data = export.export(verax.jit(vnp.sin))(X).serialize()
    with pytest.raises(ValueError, match=complaint):
        deserialize(change(data))
    with pytest.raises(TypeError, match="takes bytes"):
        deserialize("text")  # type: ignore[arg-type]  # the wrong call


def test_wrong_module_is_an_error_and_no_crash() -> None:
    data = export.export(verax.jit(vnp.sin))(X).serialize()
    head = len(b"verax-export\n")
    size = struct.unpack_from("<IIQ", data, head)[2]
    body = bytearray(data[head + 16 :])
    for i in range(size + 8, len(body)):
        body[i] = 0x5A
    forged = data[:head] + struct.pack("<IIQ", 1, zlib.crc32(body), size) + bytes(body)
    with pytest.raises(ValueError, match="not StableHLO that this jaxlib can read"):
        deserialize(forged).call(X)


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("in_avals", ["f32[4]", "f32[4]"]),
        ("in_avals", ["i32[2,3]", "f32[2,3]"]),
        ("out_avals", ["f32[2]"]),
        ("out_avals", ["c64[2,3]"]),
        ("kept", [0]),
    ],
)
def test_description_that_does_not_fit_the_module_is_one_clear_error(
    part: str, other: list[Any]
) -> None:
    data = export.export(verax.jit(lambda x, y: x * y))(X, X).serialize()
    (description,), modules = unpack(data)
    forged = deserialize(pack([{**description, part: other}], modules))
    operands = [vnp.ones(aval.shape, aval.dtype) for aval in forged.in_avals]
    with pytest.raises(ValueError, match=r"but its description says .*was altered"):
        forged.call(*operands)


@pytest.mark.slow(jaxlib=True)
def test_equal_programs_give_equal_bytes_in_every_process(tmp_path: Path) -> None:
    program = (
        "import sys, numpy as np, verax, verax.numpy as vnp\n"
        "f = verax.jit(lambda p: {k: vnp.tanh(v) * 2 for k, v in p.items()})\n"
        "e = verax.export.export(f)({'b': np.ones(3, np.float32), 'a': 1.0})\n"
        "open(sys.argv[1], 'wb').write(e.serialize(vjp_order=1))\n"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONHASHSEED": seed}
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / seed)],
            env=environment,
            check=True,
            timeout=300,
        )
    one, two = [(tmp_path / seed).read_bytes() for seed in ("1", "2")]
    assert one == two
    actual = deserialize(one).call({"b": np.zeros(3, np.float32), "a": 0.0})
    assert actual["b"].tolist() == [0, 0, 0]


def test_functions_of_the_library_need_no_jit() -> None:
    x = vnp.arange(6.0).reshape(2, 3)
    calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = [
        (vnp.sin, (x,), {}, (x,)),
        (vnp.add, (x, 1), {}, (x, 1)),
        (vnp.sum, (x, 1), {"keepdims": True}, (x,)),
        (vnp.cumsum, (x,), {"axis": 0, "dtype": vnp.float32}, (x,)),
        (vnp.where, (x > 1, x, 0.0), {}, (x > 1, x, 0.0)),
        (vnp.concatenate, ([x, x], 0), {}, ([x, x],)),
        (lax.add, (x, x), {}, (x, x)),
        (lax.reshape, (x, (6,)), {}, (x,)),
        (verax.nn.softmax, (x,), {"axis": 0}, (x,)),
        (verax.scipy.special.logsumexp, (x,), {"axis": 1}, (x,)),
    ]
    for fun, args, kwargs, arrays in calls:
        exported = export.export(fun)(*args, **kwargs)
        actual = exported.call(*arrays)
        np.testing.assert_allclose(actual, fun(*args, **kwargs), rtol=1e-6)
    assert export.export(vnp.sin)(x).fun_name == "sin"
    for other in (lambda x: x, np.sin, 3, print):
        with pytest.raises(ValueError, match="must be the result of `jit`"):
            export.export(cast(Any, other))
