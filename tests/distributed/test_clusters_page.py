"""The manifests of the page on clusters start processes that find each other."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from verax.api.distributed.initialize import LAUNCHERS, Member, detected

PAGE = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def manifest() -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra dev")
    (text,) = blocks("yaml")
    return yaml.safe_load(text)


def test_the_page_names_what_is_read() -> None:
    named = set(re.findall(r"`((?:SLURM|OMPI|KUBERNETES|JOB)_[A-Z_a-z]+)`", PAGE))
    read = {name for one in LAUNCHERS.values() for name in one.variables}
    assert named - {"OMPI_MCA_orte_hnp_uri"} == read


def test_slurm_starts_as_many_tasks_as_it_says() -> None:
    """`srun` of the script sets these variables for its last task."""
    script = blocks("bash")[0]
    options = dict(re.findall(r"#SBATCH --([\w-]+)=(\S+)", script))
    tasks = int(options["nodes"]) * int(options["ntasks-per-node"])
    assert options["ntasks-per-node"] == options["gpus-per-node"]
    member = detected(
        {
            "SLURM_JOB_ID": "4097",
            "SLURM_STEP_NODELIST": "gpu[01-04]",
            "SLURM_NTASKS": str(tasks),
            "SLURM_PROCID": str(tasks - 1),
            "SLURM_LOCALID": "7",
        }
    )
    assert member == Member(f"gpu01:{65536 - 4096 + 1}", 32, 31, 7)


def test_mpirun_passes_the_address_that_is_not_told() -> None:
    words = shlex.split(blocks("bash")[1].replace("\\\n", " "))
    passed = dict(w.split("=", 1) for w in words if w.startswith("VERAX_"))
    assert passed == {"VERAX_COORDINATOR_ADDRESS": "node001:7777"}
    count = words[words.index("-np") + 1]
    environment = {
        "OMPI_COMM_WORLD_SIZE": count,
        "OMPI_COMM_WORLD_RANK": "15",
        "OMPI_COMM_WORLD_LOCAL_RANK": "7",
    }
    assert detected(environment) == Member(None, 16, 15, 7)


def test_a_jobset_says_its_size_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    jobset = manifest()
    assert jobset["spec"]["network"]["enableDNSHostnames"] is True
    (job,) = jobset["spec"]["replicatedJobs"]
    spec = job["template"]["spec"]
    assert spec["completionMode"] == "Indexed"
    (container,) = spec["template"]["spec"]["containers"]
    values = {one["name"]: one["value"] for one in container["env"]}
    assert int(values["VERAX_NUM_PROCESSES"]) == spec["parallelism"]
    assert spec["parallelism"] == spec["completions"]
    base = f"{jobset['metadata']['name']}-{job['name']}-0"
    domain = "train.default.svc.cluster.local"
    monkeypatch.setattr("socket.getfqdn", lambda name: f"{name}.{domain}")
    member = detected(
        {
            "KUBERNETES_SERVICE_HOST": "10.0.0.1",
            "JOB_COMPLETION_INDEX": "3",
            "HOSTNAME": f"{base}-3",
        }
    )
    (port,) = container["ports"]
    assert member == Member(f"{base}-0.{domain}:{port['containerPort']}", None, 3)
