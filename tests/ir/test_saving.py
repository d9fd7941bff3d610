"""Programs as JSON and bytes: exact, canonical, and refused when they are not ours."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import verax
import verax.numpy as vnp
from verax import ir, lax

ROOT = Path(__file__).parent.parent.parent
TABLE = np.arange(6, dtype=np.float32).reshape(2, 3)
TABLE[0, 0] = np.float32(np.nan)
BITS = np.array([0x7FA00001, 0x80000000, 1], np.uint32).view(np.float32)


def model(x: Any) -> Any:
    """A program with control flow, constants in bodies, keys and inner functions."""
    inner = verax.jit(lambda v: vnp.sin(v) + vnp.sum(BITS))

    def step(c: Any, row: Any) -> Any:
        return inner(c) * vnp.sum(row), lax.cond(row[0] > 1, lambda: c, lambda: -c)

    carry, rows = lax.scan(step, x, TABLE)
    noise = verax.random.normal(verax.random.key(0), (3,))
    return lax.while_loop(lambda v: v < 3, lambda v: v + 1, carry), rows, noise * BITS


def program() -> ir.ClosedJaxpr:
    closed = verax.make_jaxpr(model)(0.5)
    assert isinstance(closed, ir.ClosedJaxpr)
    return closed


def test_bytes_and_json_give_the_program_back() -> None:
    closed = program()
    again = ir.loads(ir.dumps(closed))
    assert ir.diff(again.jaxpr, closed.jaxpr) == ""
    assert ir.dumps(again) == ir.dumps(closed)
    assert ir.to_json(ir.from_json(ir.to_json(closed, indent=1))) == ir.to_json(closed)
    for ours, theirs in zip(closed.consts, again.consts, strict=True):
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()


def test_loaded_program_computes_the_same() -> None:
    closed = program()
    again = ir.loads(ir.dumps(closed))
    expected = verax.transforms.evaluate(closed, np.float32(0.5))
    actual = verax.transforms.evaluate(again, np.float32(0.5))
    for ours, theirs in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_one_array_is_stored_once_and_an_inner_program_once() -> None:
    big = np.ones((64, 64), np.float32)
    inner = verax.jit(lambda v: v + big)
    one = ir.dumps(verax.make_jaxpr(lambda x: inner(x))(1.0))
    two = ir.dumps(verax.make_jaxpr(lambda x: inner(inner(x)[0, 0]) * big)(1.0))
    assert big.nbytes < len(one) < len(two) < big.nbytes + 2000
    document = json.loads(ir.to_json(program()))
    assert len(document["programs"]) == len(set(map(str, document["programs"])))


def test_equal_programs_share_one_number() -> None:
    def deep(depth: int) -> Any:
        below = deep(depth - 1) if depth else vnp.sin
        return verax.jit(lambda x: below(below(x)))

    data = ir.dumps(verax.make_jaxpr(deep(11))(1.0))
    assert len(data) < 6_000
    assert len(ir.dumps(ir.loads(data))) == len(data)


def test_narrowed_constants_have_the_bits_of_their_type() -> None:
    wide = np.array([0.1, 1e30])
    (const,) = ir.loads(ir.dumps(verax.make_jaxpr(lambda x: x + wide)(1.0))).consts
    assert isinstance(const, np.ndarray)
    assert const.dtype == np.float32
    assert const.tolist() == [np.float32(0.1), np.float32(1e30)]
    assert not const.flags.writeable


@pytest.mark.parametrize(
    "value",
    [
        verax.random.split(verax.random.key(1), 2),
        vnp.ones((0, 3), "bfloat16"),
        vnp.arange(4, dtype="int4"),
        vnp.array([1 + 2j, -0.0]),
        vnp.array([True, False]),
        vnp.array([0.1, -2], "float8_e4m3fn"),
    ],
    ids=lambda value: str(value.dtype),
)
def test_constants_of_every_kind_of_dtype(value: Any) -> None:
    closed = verax.make_jaxpr(lambda x: (x, value))(1.0)
    again = ir.loads(ir.dumps(closed))
    assert again.out_avals == closed.out_avals
    expected = verax.transforms.evaluate(closed, 1.0)[1]
    actual = verax.transforms.evaluate(again, 1.0)[1]
    assert expected.tobytes() == actual.tobytes()


def test_sources_are_kept_when_asked_for() -> None:
    closed = verax.make_jaxpr(verax.grad(lambda x: vnp.sin(x) * x))(1.0)
    again = ir.loads(ir.dumps(closed, sources=True))
    assert [str(e.source) for e in again.eqns] == [str(e.source) for e in closed.eqns]
    assert "test_saving.py" in str(again.eqns[0].source)
    assert "test_saving.py" not in ir.to_json(closed)
    assert ir.dumps(again, sources=True) == ir.dumps(closed, sources=True)


def test_a_function_in_params_cannot_be_saved() -> None:
    @verax.custom_vjp
    def f(x: Any) -> Any:
        return x

    f.defvjp(lambda x: (x, None), lambda _, ct: (ct * 2,))
    closed = verax.make_jaxpr(f)(1.0)
    with pytest.raises(
        ir.Unsavable, match=r"custom_vjp_call .*UserVjp.* cannot be saved"
    ):
        ir.dumps(closed)
    assert ir.loads(ir.dumps(verax.make_jaxpr(verax.grad(f))(1.0))).out_avals


def test_a_plain_jaxpr_with_constvars_has_no_values() -> None:
    with pytest.raises(ValueError, match="pass the ClosedJaxpr"):
        ir.dumps(verax.make_jaxpr(lambda x: x + TABLE)(1.0).jaxpr)


def test_what_is_no_program_is_refused() -> None:
    for wrong in (vnp.sin, 3, None):
        with pytest.raises(TypeError, match="make_jaxpr"):
            ir.dumps(wrong)  # type: ignore[arg-type]  # the subject
        with pytest.raises(TypeError, match="make_jaxpr"):
            ir.captured_constants(wrong)  # type: ignore[arg-type]  # the subject
    with pytest.raises(TypeError, match="loads takes bytes, not str"):
        ir.loads("{}")  # type: ignore[arg-type]  # the subject


DATA = ir.dumps(verax.make_jaxpr(lambda x: vnp.sin(x) + TABLE)(1.0))


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_any_changed_byte_is_found(place: int, change: int) -> None:
    wrong = bytearray(DATA)
    wrong[place] ^= change
    with pytest.raises(ir.InvalidFile):
        ir.loads(bytes(wrong))


@given(st.integers(0, len(DATA) - 1))
def test_any_missing_end_is_found(size: int) -> None:
    with pytest.raises(ir.InvalidFile):
        ir.loads(DATA[:size])


def test_another_version_is_refused_by_its_number() -> None:
    newer = DATA[:12] + (2).to_bytes(4, "little") + DATA[16:]
    with pytest.raises(ir.InvalidFile, match="has version 2, but this verax reads ver"):
        ir.loads(newer)
    document = json.loads(ir.to_json(program()))
    with pytest.raises(ir.InvalidFile, match="version 7"):
        ir.from_json(json.dumps({**document, "version": 7}))


def broken(change: Any) -> str:
    """A small program as JSON, after a change of its document."""
    closed = verax.make_jaxpr(lambda x: vnp.sum(vnp.sin(x) + TABLE, axis=1))(1.0)
    document = json.loads(ir.to_json(closed))
    change(document, document["programs"][0]["eqns"])
    return json.dumps(document)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d, e: d.update(format="other"), "its format is not"),
        (lambda d, e: d.pop("consts"), "the field 'consts' is missing"),
        (lambda d, e: d.update(main=3), "index out of range"),
        (lambda d, e: d.update(main=-1), "a non-negative integer was expected"),
        (lambda d, e: e[0].update(primitive="sinus"), "primitive sinus is not known"),
        (lambda d, e: e[0].update(invars=[9]), "no variable 9, only 2"),
        (lambda d, e: e[0].update(invars=["const5:f32[2]"]), "index out of range"),
        (lambda d, e: e[0].update(invars=["1.0:q8[]"]), "q8"),
        (lambda d, e: e[0].update(outvars=["f32[7]"]), "but the type rule gives"),
        (lambda d, e: e[2].update(params={"axes": "(5,)"}), "do not fit"),
        (lambda d, e: e[2].update(params={"axes": "yes"}), "of type Shape"),
        (lambda d, e: e[2].update(params={"axis": "(1,)"}), "ReduceParams|axes"),
        (lambda d, e: d["consts"][0].update(data="AAAA"), "does not have 3 bytes"),
        (lambda d, e: d["consts"][0].update(data="?"), "not a saved program"),
        (lambda d, e: d.update(main_consts=[]), "different types"),
        (lambda d, e: d.update(programs=7), "a list was expected"),
    ],
)
def test_a_wrong_document_is_refused(change: Any, complaint: str) -> None:
    with pytest.raises(ir.InvalidFile, match=complaint):
        ir.from_json(broken(change))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '{"version": 1}'])
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(ir.InvalidFile, match="not a saved program"):
        ir.from_json(text)


@pytest.mark.slow
def test_bytes_and_modules_do_not_depend_on_the_process() -> None:
    script = (
        "import hashlib, sys, verax\n"
        "from tests.ir.test_saving import model, program\n"
        "import verax.numpy as vnp\n"
        "both = lambda x: (model(x), verax.grad(lambda v: model(v)[2].sum() * v)(x))\n"
        "batch = verax.vmap(lambda x: verax.jvp(model, (x,), (x,)))\n"
        "if sys.argv[1] == 'after':\n"
        "    verax.jit(lambda x: vnp.cos(x) @ x)(vnp.ones((3, 3)))\n"
        "    verax.make_jaxpr(verax.jacfwd(lambda x: model(x)[0]))(0.25)\n"
        "def lowered():\n"
        "    return [verax.jit(f).lower(x).as_text()\n"
        "            for f, x in ((both, 0.5), (batch, vnp.ones(4)))]\n"
        "first = lowered()\n"
        "verax.clear_caches()\n"
        "assert lowered() == first\n"
        "text = ''.join(first).encode() + verax.ir.dumps(program())\n"
        "print(len(text), hashlib.sha256(text).hexdigest())"
    )
    actual = [
        subprocess.run(
            [sys.executable, "-c", script, history],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, history in (("1", "before"), ("2", "after"))
    ]
    assert actual[0] == actual[1]
    assert int(actual[0].split()[0]) > 20_000
