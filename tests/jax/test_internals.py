"""Functions below `jax._src`, as libraries put their own out of them."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.flatten_util import ravel_pytree
from verax.jax.internals import config, core as below_core
from verax.jax.internals.functions import api, api_util, lax as below_lax, numpy, util
from verax.jax.internals.types import (
    dtypes,
    effects,
    frozen_dict,
    pretty_printer,
    state,
)
from verax.jax.overlays import linear_util, partial_eval, source_info_util
from verax.jax.overlays.api_util import argnums_partial

TREE = {"a": vnp.arange(2.0), "b": vnp.float32(3)}


def squares(tree: Any) -> Any:
    return {"s": (tree["a"] ** 2).sum() * tree["b"], "v": tree["a"] * tree["b"]}


def test_jacobians_out_of_their_pieces() -> None:
    def forward(f: Any, tree: Any) -> Any:
        wrapped = linear_util.wrap_init(f)
        basis = api._std_basis(tree)
        out, columns = verax.vmap(
            lambda t: api._jvp(wrapped, (tree,), (t,)), out_axes=(None, -1)
        )(basis)
        return verax.tree.map(partial(api._jacfwd_unravel, tree), out, columns)

    def backward(f: Any, tree: Any) -> Any:
        out, pull = api._vjp(linear_util.wrap_init(f), tree)
        (rows,) = verax.vmap(pull)(api._std_basis(out))
        return verax.tree.map(lambda x, r: api._jacrev_unravel(out, x, r), tree, rows)

    flat, unravel = ravel_pytree(TREE)
    expected = verax.jacfwd(squares)(TREE)
    assert unravel(flat)["b"] == 3
    close(forward(squares, TREE), expected)
    close(
        verax.tree.transpose(verax.tree.structure(TREE), None, backward(squares, TREE)),
        expected,
    )


def close(actual: Any, expected: Any) -> None:
    verax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), actual, expected
    )


def test_dtypes_that_jacobians_refuse() -> None:
    api._check_input_dtype_jacfwd(False, 1.0)
    api._check_input_dtype_jacrev(False, True, 1)
    for check, args in (
        (api._check_input_dtype_jacfwd, (False, 1)),
        (api._check_output_dtype_jacfwd, (True, 1.0)),
        (api._check_input_dtype_jacrev, (False, False, 1)),
        (api._check_output_dtype_jacrev, (False, 1j)),
    ):
        with pytest.raises(TypeError, match="sub-dtype"):
            check(*args)


@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_systems_by_factors(trans: int, shape: tuple[int, ...]) -> None:
    a = vnp.array([[1.0, 2j, 0], [4, 1, 1], [0, 1j, 3]])
    b = vnp.arange(float(np.prod(shape))).reshape(shape) + 0j
    packed, _, order = lax.linalg.lu(a)
    x = below_lax.lu_solve(packed, order, b, trans)
    op = (a, a.T, a.conj().T)[trans]
    np.testing.assert_allclose(op @ x, b, atol=1e-5)
    assert below_lax._const(vnp.float16(1), 2).dtype == "float16"
    assert type(below_lax._const(1.0, 2)) is float


def test_lists_and_tuples() -> None:
    assert util.split_list_checked([1, 2, 3], [1, 2]) == [[1], [2, 3]]
    with pytest.raises(ValueError, match="do not add up"):
        util.split_list_checked([1, 2, 3], [1])
    assert util.unflatten(util.flatten([[1], [2, 3]]), [1, 2]) == [[1], [2, 3]]
    assert util.subs_list([None, 0], ["a"], ["b"]) == ["b", "a"]
    assert util.subvals((1, 2), [(0, 3)]) == (3, 2)
    assert util.unzip3([(1, 2, 3)]) == ((1,), (2,), (3,))
    assert util.tuple_insert((1, 3), 1, 2) == (1, 2, 3)
    assert util.tuple_delete((1, 2), 0) == util.tuple_update((1,), 0, 2) == (2,)
    assert util.canonicalize_axis_tuple(None, 2) == (0, 1)
    with pytest.raises(ValueError, match="duplicate"):
        util.canonicalize_axis_tuple((0, -2), 2)
    with pytest.raises(ValueError, match="argument 2"):
        util.safe_zip([1], [1, 2])
    assert util.ceil_of_ratio(5, 2) == 3


def test_functions_that_can_be_compared() -> None:
    calls: list[int] = []

    def plain(x: int, *, y: int = 0) -> int:
        calls.append(x)
        return x + y

    counted = util.cache(max_size=4)(plain)

    assert counted(1) == counted(1) == 1
    assert counted(1, y=2) == 3
    assert calls == [1, 1]
    first, second = (util.HashablePartial(divmod_of, 7) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first(2) == (3, 1)
    assert util.fun_name(verax.tree_util.Partial(divmod_of)) == "divmod_of"


def divmod_of(x: int, y: int) -> tuple[int, int]:
    return divmod(x, y)


def test_arguments() -> None:
    f, given = argnums_partial(
        linear_util.wrap_init(lambda x, y, z: (x, y, z)), (0, -1), (1, "static", 3)
    )
    assert given == (1, 3)
    assert f.call_wrapped(10, 30) == (10, "static", 30)
    with pytest.raises(ValueError, match="cannot be hashed"):
        argnums_partial(linear_util.wrap_init(divmod_of), 0, (1, []))
    assert api_util._ensure_index(np.int32(2)) == 2
    assert api_util._ensure_index([0, 1]) == (0, 1)
    with pytest.raises(TypeError, match="callable"):
        api_util.check_callable(1)


def test_promotion() -> None:
    a, b = numpy.promote_shapes("f", vnp.ones(3), vnp.ones((2, 3)))
    assert (a.shape, b.shape) == ((1, 3), (2, 3))
    assert numpy.ensure_arraylike("f", 1.0).shape == ()
    assert len(numpy.ensure_arraylike("f", 1.0, 2)) == 2
    f, args, kwargs = numpy._apply_excluded(divmod_of, {0}, (7, 2), {})
    assert f(*args, **kwargs) == (3, 1)
    leading, sizes = numpy._parse_input_dimensions((np.ones((4, 3)),), [("n",)])
    assert (leading, sizes) == ((4,), {"n": 3})
    checked = numpy._check_output_dims(lambda x: x, sizes, [("n",)])
    assert checked(vnp.ones(3)).shape == (3,)
    with pytest.raises(ValueError, match="dimension 'n'"):
        checked(vnp.ones(2))


def test_programs_of_what_is_unknown() -> None:
    value = partial_eval.PartialVal
    jaxpr, outs, consts = partial_eval.trace_to_jaxpr_nounits(
        linear_util.wrap_init(lambda x, y: (x * y,)),
        [value.known(vnp.ones(2) * 3), value.unknown(verax.typeof(vnp.ones(2)))],
    )
    assert len(jaxpr.invars) == len(consts) + 1
    assert [out.get_aval().shape for out in outs] == [(2,)]
    closed = partial_eval.close_jaxpr(jaxpr)
    (y,) = verax.core.jaxpr_as_fun(closed)(*consts, vnp.arange(2.0))
    assert y.tolist() == [0, 3]


def test_lines_effects_and_texts() -> None:
    info = source_info_util.current()
    assert source_info_util.summarize(info).startswith(f"{__file__}:")
    frame = source_info_util.user_frame(info)
    assert frame is not None
    assert frame.function_name == "test_lines_effects_and_texts"
    assert source_info_util.user_frame(None) is None
    with source_info_util.user_context(None), source_info_util.reset_name_stack():
        assert str(source_info_util.new_name_stack("a").extend("b")) == "a/b"
    kinds = effects.EffectTypeSet()
    kinds.add_type(int)
    assert kinds.filter_in({1, "a"}) == [1]
    assert kinds.filter_not_in({1, "a"}) == ["a"]
    assert frozen_dict.FrozenDict({"a": 1}) == {"a": 1}
    assert hash(frozen_dict.FrozenDict({"a": 1})) == hash(
        frozen_dict.FrozenDict([("a", 1)])
    )
    text = pretty_printer.text("a") + pretty_printer.nest(2, pretty_printer.brk("\nb"))
    assert str(text) == "a\n  b"


def test_options_as_objects() -> None:
    assert config.enable_x64.value is False
    with config.enable_x64(True):
        assert config.enable_x64
    with pytest.raises(AttributeError):
        config.no_such_option  # noqa: B018  # read
    size = config.compilation_cache_max_size.value
    with config.compilation_cache_max_size(7):
        assert config.compilation_cache_max_size.value == 7
    assert config.compilation_cache_max_size.value == size
    with config.explicit_x64_dtypes(config.ExplicitX64Mode.ERROR):
        assert config.explicit_x64_dtypes.value == config.ExplicitX64Mode.ERROR


def test_flags_of_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SEED", "5")
    monkeypatch.setenv("MY_CHOICE", "no")
    seed = config.int_flag("my_seed", config.int_env("MY_SEED", 0), help="a seed")
    assert (seed.name, seed.value) == ("my_seed", 5)
    assert not config.bool_env("MY_CHOICE", True)
    monkeypatch.setenv("MY_CHOICE", "perhaps")
    with pytest.raises(ValueError, match="MY_CHOICE must be 0 or 1, not 'perhaps'"):
        config.bool_env("MY_CHOICE", True)
    kind = config.enum_flag("my_kind", "b", enum_values=["a", "b"], help="which")
    assert kind.value == "b"
    with pytest.raises(ValueError, match="one of a, b, not 'c'"):
        config.enum_flag("my_kind", "c", ["a", "b"])


def test_dtypes_that_are_none_or_too_wide() -> None:
    assert dtypes.dtype(np.dtype("int8")) == np.int8
    with pytest.raises(ValueError, match="Invalid argument to dtype"):
        dtypes.dtype(None)
    with (
        verax.explicit_x64_dtypes("error"),
        pytest.raises(ValueError, match="Explicitly requested dtype int64"),
    ):
        dtypes.dtype(np.dtype("int64"))
    assert dtypes.check_and_canonicalize_user_dtype("int8") == np.int8
    with pytest.raises(ValueError, match="Passing an array as a dtype argument"):
        dtypes.check_and_canonicalize_user_dtype(vnp.ones(3))


def test_types_and_effects_of_references() -> None:
    ref = verax.new_ref(vnp.zeros(3))
    assert str(below_core.typeof(ref)) == "Ref{f32[3]}"

    def add(x: Any) -> None:
        x[0] += 1

    touched = verax.make_jaxpr(add)(ref).effects
    assert touched
    assert all(isinstance(e, state.RefEffect) for e in touched)
