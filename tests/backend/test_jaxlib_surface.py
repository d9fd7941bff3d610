"""What verax uses of jaxlib is there, is written down, and has a way out."""

import ast

import pytest

from tests.jaxlib_surface import (
    FALLBACKS,
    OPTIONAL,
    Use,
    defined,
    members,
    missing,
    named,
    uses,
)

USES = uses()


@pytest.mark.parametrize("use", USES, ids=lambda use: use.name)
def test_the_installed_jaxlib_has_it(use: Use) -> None:
    assert [name for name in missing(use) if name not in OPTIONAL] == []
    assert use.fallback


def test_what_is_gone_is_seen() -> None:
    gone = Use("jaxlib._jax.Gone", ())
    assert missing(gone) == ["jaxlib._jax.Gone"]
    assert missing(Use("jaxlib._jax.Device", (), ("id", "gone"))) == [
        "jaxlib._jax.Device.gone"
    ]
    assert missing(Use("jaxlib.gone.x", ())) == ["jaxlib.gone.x"]
    with pytest.raises(KeyError, match="without other\\.thing"):
        _ = Use("other.thing", ()).fallback


def test_every_way_out_is_of_something() -> None:
    used = {use.fallback for use in USES}
    assert [name for name, text in FALLBACKS.items() if text not in used] == []


def test_the_central_parts_are_among_them() -> None:
    names = {use.name for use in USES}
    assert {
        "jaxlib._jax.Client",
        "jaxlib._jax.pytree.PyTreeRegistry",
        "jaxlib._jax.mlir.serialize_portable_artifact",
        "jaxlib._profiler.export_to_xprof",
        "jaxlib.mlir.ir.Module",
        "jaxlib.mlir._mlir_libs._stablehlo.register_dialect",
        "jaxlib.xla_client.make_cpu_client",
        "jaxlib.version._git_hash",
        "jaxlib.gpu_solver.registrations",
    } <= names
    assert "devices" in members()["jaxlib._jax.Client"]


def test_names_are_read_however_they_are_used() -> None:
    source = """
from jaxlib import _jax, _hlo as h
from jaxlib._jax import Device
import jaxlib.version
IR: Final = "jaxlib.mlir.ir"
LIBS: Final = "jaxlib.mlir."
x = _jax.Client.compile, h.HloSharding.replicate(), jaxlib.version.__version__
y = loaded(IR, "Type"), LazyFunction(f"{LIBS}a", "b"), getattr(_jax, "c", None)
z = loaded("os", "path"), other.Client, loaded(name, "x")
"""
    assert sorted(set(named(ast.parse(source)))) == [
        "jaxlib._hlo",
        "jaxlib._hlo.HloSharding",
        "jaxlib._jax",
        "jaxlib._jax.Client",
        "jaxlib._jax.Device",
        "jaxlib._jax.c",
        "jaxlib.mlir.a.b",
        "jaxlib.mlir.ir.Type",
        "jaxlib.version.__version__",
    ]
    (statement,) = ast.parse("class A: ...").body
    assert list(defined(statement)) == ["A"]
