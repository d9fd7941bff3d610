"""What launchers put into the environment of the processes that they start."""

import socket

import pytest

from verax.api.distributed.initialize import Member, detected, first_host

SLURM = {
    "SLURM_JOB_ID": "1234567",
    "SLURM_STEP_NODELIST": "node[003-010],other",
    "SLURM_NTASKS": "16",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
}
KUBERNETES = {
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "JOB_COMPLETION_INDEX": "2",
    "HOSTNAME": "train-2",
}


def test_slurm() -> None:
    port = 65536 - 4096 + 1234567 % 4096
    assert detected(SLURM) == Member(f"node003:{port}", 16, 5, 1)
    assert detected({**SLURM, "JAX_COORDINATOR_PORT": "77"}).address == "node003:77"


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node001", "node001"),
        ("node001,host2", "node001"),
        ("node[001-0015],host2", "node001"),
        ("node[001,007-015],host2", "node001"),
        ("a-b[7]", "a-b7"),
    ],
)
def test_lists_of_nodes(nodes: str, first: str) -> None:
    assert first_host(nodes) == first


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("1531576320.0;tcp://10.96.0.1,10.148.0.1:34911", "10.96.0.1"),
        ("1531576320.0;tcp6://[fe80::b9b:1,2620:10d::2]:43370", "[fe80::b9b:1]"),
    ],
)
def test_open_mpi(uri: str, address: str) -> None:
    port = 65536 - 4096 + (1531576320 // 4096) % 4096
    actual = detected({**OPEN_MPI, "OMPI_MCA_orte_hnp_uri": uri})
    assert actual == Member(f"{address}:{port}", 8, 3, 1)


def test_open_mpi_5_says_no_address() -> None:
    assert detected(OPEN_MPI) == Member(None, 8, 3, 1)


def test_an_address_that_cannot_be_read_is_none() -> None:
    """It must be passed, as with Open MPI 5."""
    for uri in ("nonsense", "x.0;tcp://10.0.0.1:1"):
        assert detected({**OPEN_MPI, "OMPI_MCA_orte_hnp_uri": uri}).address is None


def test_kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda name: f"{name}.pods.space.svc")
    actual = detected(KUBERNETES)
    assert actual == Member("train-0.pods.space.svc:55527", None, 2)
    assert detected({**KUBERNETES, "HOSTNAME": "other"}) == Member(None, None, 2)


def test_which_launcher() -> None:
    assert detected({}) == Member()
    assert detected(SLURM, "deactivate") == Member()
    both = {**SLURM, **OPEN_MPI}
    assert detected(both).count == 16
    assert detected(both, "ompi").count == 8


def test_numbers_that_are_none() -> None:
    with pytest.raises(ValueError, match="SLURM_NTASKS must be an integer, not 'many'"):
        detected({**SLURM, "SLURM_NTASKS": "many"})
