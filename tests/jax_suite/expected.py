"""Which of JAX's tests are expected to fail, and why.

`expected.txt` lists them below their reasons. After a run whose results were written
with `--junitxml`, the failures are sorted anew by what they say::

    python -m tests.jax_suite.expected results.xml ...
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
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

REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        r"does not match|Regex didn't match|unexpectedly found in|not found in \"|"
        r"Expected warning not found|Exception message": "The message is verax's own.",
        r"has no place in verax|module 'jax\S*' has no attribute|takes no arguments|"
        r"object has no attribute|No module named|'Absent'|Absent of|<class 'tests.jax|"
        r"cannot import name|got an unexpected keyword": "A name inside JAX is needed.",
        r"cannot be changed|has no effect": "The option has one value in verax.",
        r"not found in|pvector|has length of \d+, expected|Lists differ|Found\b|"
        r"not in |assert '|unexpectedly": "The text or the equations of a program are "
        "compared, and verax writes them otherwise.",
        r"AssertionError: \(?-?\d+( - \d+\))? (!=|==) |assert \(?-?\d+|"
        r"not less than|not greater": "Traces, compilations or entries of caches are "
        "counted, of which verax has fewer or other ones.",
        r"(\w*(Error|Exception|Warning)) not raised": "verax allows what JAX refuses.",
        r"numpy_dtype_promotion='strict'": "Under strict promotion, verax refuses a "
        "mixture inside of a function that JAX allows, or the other way round.",
        r"is not a dtype of arrays": "verax has no such dtype.",
        r"NotImplementedError|MissingRule|NoDerivative": "verax does not have it, and "
        "says so.",
        r"Sharding|spec=|P\(|committed|device_put|reshard|mesh": "Another sharding is "
        "chosen, or one is refused.",
        r"Layout|Format|row-major": "Arrays are stored in row-major order.",
        r"": "Not yet judged.",
    }
)
"""Reasons by what a failure says, the first that fits."""


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


def reason_of(said: str) -> str:
    """Why a test fails that says this."""
    return next(why for what, why in REASONS.items() if re.search(what, said))


def write(files: Sequence[str], file: Path = LIST) -> Counter[str]:
    """Sort the failures of runs into the list; how many there are for each reason."""
    groups: dict[str, list[str]] = defaultdict(list)
    for test, said in {pair for name in files for pair in failures(name)}:
        groups[reason_of(said)].append(test)
    order = [why for why in dict.fromkeys(REASONS.values()) if why in groups]
    parts = ["\n".join([f"# {why}", *sorted(groups[why])]) for why in order]
    file.write_text("\n\n".join(parts) + "\n")
    return Counter({why: len(groups[why]) for why in order})


if __name__ == "__main__":
    for why, count in write(sys.argv[1:]).items():
        print(f"{count:5} {why}")
