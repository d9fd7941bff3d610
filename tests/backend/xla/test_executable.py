"""Programs compile, run, explain their failures, and survive being saved."""

import numpy as np
import pytest

from tests.backend.programs import VECTOR, compiled, doubles, on_device, vector
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import Aval
from verax.backend.runtime.client import (
    ClientOptions,
    default_client,
    local_devices,
    start_client,
)
from verax.backend.runtime.errors import LONGEST, trimmed
from verax.backend.xla.executable import (
    CompileError,
    CompileOptions,
    ExecutionError,
    compile_text,
    load_serialized,
)

DONATION = doubles(1).replace("8xf32>)", "8xf32> {jax.buffer_donor = true})", 1)
SPMD = """
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%a: tensor<8xf32>) -> (tensor<8xf32>) {
    %0 = stablehlo.add %a, %a : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""


@pytest.mark.parametrize("count", [0, 1, 2, 20])
@pytest.mark.parametrize("container", [list, tuple])
def test_results_in_order(
    count: int, container: type[list[object]] | type[tuple[object, ...]]
) -> None:
    arguments = container(on_device(vector(i)) for i in range(count))
    results = compiled(count).execute(arguments)  # type: ignore[arg-type]  # erased
    assert len(results) == count
    for position, result in enumerate(results):
        assert np.array_equal(buffers.to_numpy(result), 2 * vector(position))
        assert result.aval is VECTOR
        assert buffers.device_of(result) is local_devices()[0]


def test_any_aval_object_is_kept() -> None:
    class Own:
        shape, dtype, weak_type = (8,), np.dtype(np.float32), True

    own = Own()
    program = compile_text(
        default_client(), doubles(1), local_devices()[:1], out_avals=[own]
    )
    assert program.execute([on_device(vector())])[0].aval is own


@pytest.mark.parametrize(
    "options",
    [
        CompileOptions(effort="fast"),
        CompileOptions(overrides=(("xla_cpu_enable_fast_math", False),)),
        CompileOptions(overrides=(("xla_cpu_parallel_codegen_split_count", 1),)),
    ],
)
def test_options_are_taken(options: CompileOptions) -> None:
    (result,) = compiled(1, options).execute([on_device(vector())])
    assert np.array_equal(buffers.to_numpy(result), 2 * vector())


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("xla_make_it_fast", 1, "No such compile option: 'xla_make_it_fast'"),
        ("xla_backend_optimization_level", "high", "'high' is not a valid int32 value"),
        ("xla_cpu_enable_fast_math", "false", "'false' is not a valid bool value"),
        ("xla_cpu_parallel_codegen_split_count", -3, "options were: xla_cpu_par"),
    ],
)
def test_bad_option(name: str, value: str | int, complaint: str) -> None:
    with pytest.raises(CompileError, match=complaint) as caught:
        compiled(1, CompileOptions(overrides=((name, value),)))
    assert name in str(caught.value)
    assert not str(caught.value).startswith("INVALID_ARGUMENT")
    assert caught.value.__cause__ is not None


def test_malformed_options() -> None:
    with pytest.raises(ValueError, match="num_partitions"):
        CompileOptions(num_partitions=0)
    with pytest.raises(TypeError, match="XLA option"):
        CompileOptions(overrides=(("xla_dump_to", None),))  # type: ignore[arg-type]  # what is tested
    assert hash(CompileOptions()) == hash(CompileOptions(overrides=[]))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("garbage", "custom op 'garbage' is unknown"),
        ("", "must have a main function"),
        (doubles(1).replace("add", "frob"), "'stablehlo.frob' is unknown"),
    ],
)
def test_bad_program(text: str, complaint: str) -> None:
    with pytest.raises(CompileError, match=complaint) as caught:
        compile_text(default_client(), text, local_devices()[:1], out_avals=[VECTOR])
    assert "Failed to parse using StableHLO" not in str(caught.value)


def test_number_of_outputs_and_devices_is_checked() -> None:
    for avals in ([], [VECTOR] * 2):
        with pytest.raises(ValueError, match="program has 1 outputs"):
            compile_text(
                default_client(), doubles(1), local_devices()[:1], out_avals=avals
            )
    with pytest.raises(ValueError, match="needs as many devices"):
        compile_text(default_client(), doubles(1), [], out_avals=[VECTOR])


def test_wrong_arguments_are_explained() -> None:
    program, good = compiled(2), on_device(vector())
    with pytest.raises(ExecutionError, match=r"supplied 1 arguments .* expected 2"):
        program.execute([good])
    with pytest.raises(ExecutionError, match="Argument 1 is a ndarray"):
        program.execute([good, vector()])  # type: ignore[list-item]  # what is tested
    with pytest.raises(ExecutionError, match="incompatible size"):
        program.execute([good, on_device(np.zeros(9, np.float32))])
    gone = on_device(vector())
    buffers.delete(gone)
    with pytest.raises(ExecutionError, match="Argument 1 has been deleted"):
        program.execute([good, gone])
    other = start_client(ClientOptions(device_count=2)).devices()[1]
    elsewhere = buffers.from_numpy(vector(), other, copy=True)
    with pytest.raises(ExecutionError, match="on device"):
        program.execute([good, elsewhere])


def test_donated_argument_is_gone() -> None:
    program = compile_text(
        default_client(), DONATION, local_devices()[:1], out_avals=[VECTOR]
    )
    argument = on_device(vector())
    (result,) = program.execute([argument])
    assert np.array_equal(buffers.to_numpy(result), 2 * vector())
    assert buffers.is_deleted(argument)
    with pytest.raises(RuntimeError, match="donated"):
        buffers.to_numpy(argument)
    with pytest.raises(ExecutionError, match="donated to an earlier call"):
        program.execute([argument])


def test_donation_spares_memory_that_others_see() -> None:
    program = compile_text(
        default_client(), DONATION, local_devices()[:1], out_avals=[VECTOR]
    )
    argument = on_device(vector())
    view = buffers.to_numpy(argument)
    program.execute([argument])
    assert np.array_equal(view, vector())
    exported = on_device(vector())
    capsule = buffers.to_dlpack(exported)
    (result,) = program.execute([exported])
    assert np.array_equal(buffers.to_numpy(result), 2 * vector())
    assert capsule is not None


def test_analyses() -> None:
    program = compiled()
    assert program.cost_analysis()["flops"] == 8.0
    memory = program.memory_analysis()
    assert (memory.arguments, memory.outputs) == (32, 32)
    assert "f32[8]" in program.hlo_text()


def test_saved_program_runs_and_damage_is_an_error() -> None:
    devices = local_devices()[:1]
    saved = compiled().serialize()
    loaded = load_serialized(default_client(), saved, devices, out_avals=[VECTOR])
    (result,) = loaded.execute([on_device(vector())])
    assert np.array_equal(buffers.to_numpy(result), 2 * vector())
    for damaged in (b"", b"garbage", saved[: len(saved) // 2]):
        with pytest.raises(CompileError):
            load_serialized(default_client(), damaged, devices, out_avals=[VECTOR])


def test_partitioned_program_needs_shardings() -> None:
    client = start_client(ClientOptions(device_count=2))
    options = CompileOptions(num_partitions=2)
    with pytest.raises(ValueError, match="shardings of its outputs"):
        compile_text(client, SPMD, client.devices(), options, out_avals=[VECTOR])
    with pytest.raises(ValueError, match="as many shardings"):
        compile_text(
            client,
            SPMD,
            client.devices(),
            options,
            out_avals=[Aval((8,), VECTOR.dtype)],
            out_shardings=[],
        )


def test_messages_are_trimmed() -> None:
    text = (
        "UNKNOWN: first\n<unknown>:0: error: Failed to parse using StableHLO v1\nlast"
    )
    assert trimmed(text) == "first\nlast"
    assert len(trimmed("x" * 10_000)) == LONGEST + 4
