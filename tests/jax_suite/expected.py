"""Which of JAX's tests are expected to fail, and why.

`expected.txt` lists them below their reasons. After a run in which they count, the
failures are sorted anew by what they say::

    make jax-tests ARGS="--runxfail --junitxml=results.xml"
    python -m tests.jax_suite.expected results.xml ...
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

LIST: Final = Path(__file__).with_name("expected.txt")

# What is not run, by why.
INTERNALS: Final = """
absl_cpp_logging blocked_sampler cache_key clear_backends compilation_cache config core
custom_partitioning_sharding_rule device error_check export_back_compat
export_harnesses_multi_platform export_serialization_back_compat
garbage_collection_guard hardware_utils heap_profiler hypothesis_test_util jax_jit
jax_numpy_error jaxpr_effects jaxpr_util key_reuse lax_numpy_hijax lazy_loader lobpcg
logging lru_cache mesh_utils metadata name_stack package_structure pretty_printer
profiler profiler_session shape_poly source_info source_mapper sourcemap stack svd
traceback unary_ops_accuracy util version xla_bridge xla_interpreter xla_transform
"""
"""Tests of functions inside JAX, of its files and of the texts it writes."""
ELSEWHERE: Final = """
cudnn_fusion distributed distributed_initialize fused_attention_stablehlo
fused_attention_stablehlo_multigpu gpu_memory_flags magma_linalg mock_gpu
mock_gpu_topology mosaic multiprocess_gpu pgle scaled_matmul_stablehlo
"""
"""Tests for GPUs, TPUs and several processes."""
MISSING: Final = """
buffer_callback colocated_python documentation_coverage experimental_rnn fused
jax_to_ir local_wheel_smoke overlap pytorch_interoperability ragged_collective roofline
scheduling_groups shard_alike string_array
"""
"""Tests of modules that verax does not have, and of other libraries."""
LEFT_OUT: Final = frozenset(
    f"{name}_test.py" for name in (INTERNALS + ELSEWHERE + MISSING).split()
)

INTERNAL: Final = "A name inside JAX is needed."
TEXT: Final = (
    "The text or the equations of a program are compared; verax writes them otherwise."
)
REASONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        "It differs on purpose (docs/differences.md).",
        r"keys must have 1, 2 or 4 words|numpy masked arrays|AbstractMesh\(\(\)",
        r"testPromoteDtypesStandard|testDtypeFromLiteralValue|testPickleX64",
        r"testRavelMultiIndexDtype|excess_precision_hell|CotangentDtype",
        r"gather_with_asymmetric_dtype|capabilities_info|zero_tangent_output",
        r"IstftAgainstNumpy",
    ),
    (
        "Prints come in another order, or once where JAX prints twice.",
        r"in_batched_while_cond|remat_of_debug_print|debug_print_with_nested_vmap",
        r"test_debug_print_batching",
    ),
    (
        "The test starts a process without verax, or is called without its case.",
        r"no_backend_warning_on_cpu|testLuOnZeroMatrix",
    ),
    ("Tracebacks are shortened in another way.", r"^errors_test"),
    ("An array that is made of nothing is no transfer.", r"^transfer_guard_test"),
    ("Arrays are stored in row-major order.", r"^layout_test|test_sds_update"),
    (TEXT, r"^ffi_test.*(non-existent|custom_call)"),
    (
        "verax lacks it: structured residuals, ...",
        r"structured_residuals",
        r"a part of Traced|can be frozen or freed only",
    ),
    (
        "The message is verax's own.",
        r"does not match|Regex didn't match|unexpectedly found in|not found in \"",
        r"Expected warning not found|Exception message|AssertionError: \"",
        r"pytree structure error",
        r"no abstract evaluation rule|padding must be|at mapped index",
        r"same number of dimensions|test_make_jaxpr_name",
    ),
    (
        INTERNAL,
        r"has no place in verax|module 'jax\S*' has no attribute|takes no arguments",
        r"object has no attribute|No module named|'Absent'|Absent of|cannot import",
        r"<class 'tests.jax|got an unexpected keyword|there is no option",
        r"KeyError: '(call_jaxpr|sharding|function_name)'|assertRaises(Regex)?\(\) arg",
        r"does not support item assignment|not enough values|too many values",
        r"DCETest|test_resolve_(argnums|kwargs)|iota_tile_error",
    ),
    ("The option has one value in verax.", r"cannot be changed|has no effect"),
    (
        TEXT,
        r"not found in|pvector|has length of \d+, expected|Lists differ|Found\b",
        r"not in |assert '|unexpectedly|lambda ;|\+ let ",
        r"referred_element_type: |test_preferred_element_type|- checkpoint|BCOOTest",
        r"no logs of level|\{'fix'\} has length",
    ),
    (
        "Traces, compilations or entries of caches are counted, of which verax has "
        "fewer or other ones.",
        r"AssertionError: \(?-?\d+( - \d+\))? (!=|==) |assert \(?-?\d+",
        r"not less than|not greater",
        r"Expected exactly \d+ XLA compilations",
    ),
    ("verax allows what JAX refuses.", r"(\w*(Error|Exception|Warning)) not raised"),
    (
        "Under strict promotion, verax refuses a mixture inside of a function that JAX "
        "allows, or the other way round.",
        r"numpy_dtype_promotion=strict",
    ),
    ("verax has no such dtype.", r"is not a dtype of arrays"),
    (
        "verax does not have it, and says so.",
        r"NotImplementedError|MissingRule|NoDerivative",
    ),
    (
        "verax refuses what JAX allows.",
        r"NotAnArray|ShapeError|TypeError: (argument|output|vmap|the vmap rule|array)",
        r"out_axes is None for|is narrower than|unknown platform|to \[\('float0'",
        r"was lowered for|on 2 different devices|float0\[5\]|composition of hi_call",
    ),
    (
        "Another sharding is chosen, or one is refused.",
        r"Sharding|spec=|P\(|committed|device_put|reshard|mesh|symbolic sizes and runs",
        r"CpuDevice\(id=0\) != ",
    ),
    (
        "An object is looked at, and is another one.",
        r"bool.* is |False is not true|is not an instance|assert False|!= True|is not ",
        r"debug_print_with_logging|copy_to_host_async|the parts have the dtype",
    ),
    (
        "A value or shape differs: the order of operations, the last digits, or what "
        "neither defines.",
        r"Not equal|not equal|Tuples differ",
    ),
)
"""Reasons, each with the texts of tests and their failures; the first that fits."""
UNKNOWN: Final = "Not yet judged."


def read(file: Path = LIST) -> dict[str, str]:
    """The reason of each test that is expected to fail."""
    out, reason = {}, ""
    for line in file.read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            out[line] = reason
    return out


def failures(file: str) -> Iterator[tuple[str, str]]:
    """The failed tests of a run, as pytest names them, and what they say."""
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        for kind in ("failure", "error"):
            if (result := case.find(kind)) is not None:
                *_, module, group = case.get("classname", "").split(".")
                said = result.get("message", "").replace("\n", " ")[:1000]
                yield f"{module}.py::{group}::{case.get('name')}", said


def reason_of(test: str, said: str) -> str:
    """Why a test fails that says this."""
    text = f"{test}: {said}"
    fitting = (
        why
        for why, *patterns in REASONS
        if any([re.search(pattern, text) for pattern in patterns])
    )
    return next(fitting, UNKNOWN)


def write(files: Sequence[str], file: Path = LIST) -> Counter[str]:
    """Sort the failures of runs into the list; how many there are for each reason."""
    groups: dict[str, list[str]] = defaultdict(list)
    for test, said in {pair for name in files for pair in failures(name)}:
        groups[reason_of(test, said)].append(test)
    known = dict.fromkeys([*(why for why, *_ in REASONS), UNKNOWN])
    order = [why for why in known if why in groups]
    parts = ["\n".join([f"# {why}", *sorted(groups[why])]) for why in order]
    file.write_text("\n\n".join(parts) + "\n")
    return Counter({why: len(groups[why]) for why in order})


if __name__ == "__main__":
    for why, count in write(sys.argv[1:]).items():
        print(f"{count:5} {why}")
