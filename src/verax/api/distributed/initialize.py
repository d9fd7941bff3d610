"""Floor 5: joining the other processes of a program, and leaving them.

One idea: every process calls `initialize` before its first array, with its own number
and the address of process 0; afterwards `devices()` are those of all processes::

    verax.distributed.initialize("10.0.0.1:7777", num_processes=2, process_id=0)
"""

import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import frozen

from verax.backend.processes.connection import connect, disconnect
from verax.backend.processes.watch import split_address
from verax.backend.runtime.cluster import CLUSTER, Settings
from verax.backend.runtime.environment import first_variable
from verax.ir.records import ReprMixin

# -----------------------------------------------------------------------------
# What the launcher of a job tells each of its processes.
#
# SLURM, Open MPI and Kubernetes set environment variables for every process
# that they start, and these are all that is read::
#
#     detected(os.environ)      # Member(address="node001:62345", count=4, index=2, ...)


type Environment = Mapping[str, str]

# The coordinator of a job listens on a port made of the number of the job.
PORTS: Final = 1 << 12
FIRST_PORT: Final = (1 << 16) - PORTS
KUBERNETES_PORT: Final = 55527
PORT_VARIABLES: Final = ("VERAX_COORDINATOR_PORT", "JAX_COORDINATOR_PORT")
HNP_URI: Final = re.compile(r"^(\d+)\..*?(?:tcp://([^,:]+)|tcp6://\[([^,\]]+))")


@frozen(repr=False)
class Member(ReprMixin):
    """A process's knowledge of its job; None stands for what was not said."""

    address: str | None = None
    count: int | None = None
    index: int | None = None
    local_index: int | None = None


@frozen(repr=False)
class Launcher(ReprMixin):
    """One kind of job: which variables show that it is there, and how to read them."""

    command: str
    variables: tuple[str, ...]
    read: Callable[[Environment], Member]

    def started(self, environment: Environment) -> bool:
        """Whether this process was started so."""
        return not self.missing(environment)

    def missing(self, environment: Environment) -> list[str]:
        """The variables that it would have set, and that are not there."""
        return [name for name in self.variables if name not in environment]


def number(environment: Environment, name: str) -> int:
    """The integer in a variable.

    Raises:
        ValueError: it is not one.
    """
    try:
        return int(environment[name])
    except ValueError:
        raise ValueError(
            f"the environment variable {name} must be an integer, not "
            f"{environment[name]!r}"
        ) from None


def port_of(environment: Environment, job: int) -> int:
    """The port of the coordinator: that of the environment, or one for the job."""
    for name in PORT_VARIABLES:
        if environment.get(name):
            return number(environment, name)
    return FIRST_PORT + job % PORTS


def first_host(nodes: str) -> str:
    """The first name of a list of nodes as SLURM writes it.

    >>> first_host("node[001-015,020],other3"), first_host("a,b"), first_host("n[7]")
    ('node001', 'a', 'n7')
    """
    stem = re.match(r"[^,\[]*", nodes)
    assert stem is not None, "it matches the empty string"
    rest = nodes[stem.end() :]
    first = re.match(r"\[([^,\-\]]*)", rest)
    return stem[0] + (first[1] if first else "")


def read_slurm(environment: Environment) -> Member:
    """A process that `srun` started."""
    port = port_of(environment, number(environment, "SLURM_JOB_ID"))
    return Member(
        f"{first_host(environment['SLURM_STEP_NODELIST'])}:{port}",
        number(environment, "SLURM_NTASKS"),
        number(environment, "SLURM_PROCID"),
        number(environment, "SLURM_LOCALID"),
    )


def read_open_mpi(environment: Environment) -> Member:
    """A process that Open MPI's `mpirun` started.

    Before version 5 it says where it runs itself; since then it says nothing of other
    machines, so the address must be passed.
    """
    uri = environment.get("OMPI_MCA_orte_hnp_uri", "")
    address = None
    if match := HNP_URI.search(uri):
        # Numbers of jobs are multiples of 2**12.
        job = int(match[1]) // PORTS
        host = match[2] or f"[{match[3]}]"
        address = f"{host}:{port_of(environment, job)}"
    return Member(
        address,
        number(environment, "OMPI_COMM_WORLD_SIZE"),
        number(environment, "OMPI_COMM_WORLD_RANK"),
        number(environment, "OMPI_COMM_WORLD_LOCAL_RANK"),
    )


def read_kubernetes(environment: Environment) -> Member:
    """A pod of an indexed Job.

    Its host is called `job-index`, so that with index 0 is the coordinator, in the
    same domain. How many pods there are Kubernetes says to none of them.
    """
    host = environment.get("HOSTNAME", "")
    name, _, index = host.rpartition("-")
    address = None
    if index == environment["JOB_COMPLETION_INDEX"]:
        _, dot, domain = socket.getfqdn(host).partition(".")
        port = next((environment[n] for n in PORT_VARIABLES if environment.get(n)), "")
        address = f"{name}-0{dot}{domain}:{port or KUBERNETES_PORT}"
    return Member(address, None, number(environment, "JOB_COMPLETION_INDEX"))


LAUNCHERS: Final[Mapping[str, Launcher]] = MappingProxyType(
    {
        "slurm": Launcher(
            "srun",
            (
                "SLURM_JOB_ID",
                "SLURM_STEP_NODELIST",
                "SLURM_NTASKS",
                "SLURM_PROCID",
                "SLURM_LOCALID",
            ),
            read_slurm,
        ),
        "ompi": Launcher(
            "mpirun",
            (
                "OMPI_COMM_WORLD_SIZE",
                "OMPI_COMM_WORLD_RANK",
                "OMPI_COMM_WORLD_LOCAL_RANK",
            ),
            read_open_mpi,
        ),
        "k8s": Launcher(
            "an indexed Job",
            ("KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"),
            read_kubernetes,
        ),
    }
)
OFF: Final = "deactivate"


def detected(environment: Environment, method: str | None = None) -> Member:
    """The launcher's settings; empty if none is there, or `method` is "deactivate".

    Raises:
        ValueError: there is no method of this name, or it does not work here.
    """
    if method == OFF:
        return Member()
    if method is None:
        out = [x for x in LAUNCHERS.values() if x.started(environment)]
        return out[0].read(environment) if out else Member()
    if method not in LAUNCHERS:
        known = ", ".join(map(repr, (*LAUNCHERS, OFF)))
        raise ValueError(
            f"cluster_detection_method must be one of {known}, not {method!r}"
        )
    launcher = LAUNCHERS[method]
    if not launcher.started(environment):
        raise ValueError(
            f"cluster_detection_method={method!r}, but the environment lacks "
            f"{', '.join(launcher.missing(environment))}: was this process started "
            "by it?"
        )
    return launcher.read(environment)


def half_set(environment: Environment) -> str:
    """A note on launchers that have set some of their variables, but not all.

    >>> half_set({"SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "a", "SLURM_NTASKS": "2"})
    '. SLURM_JOB_ID is set, but not SLURM_PROCID, SLURM_LOCALID: was this process
    started by srun?'
    """
    for launcher in LAUNCHERS.values():
        missing = launcher.missing(environment)
        out = [name for name in launcher.variables if name in environment]
        if missing and out:
            return (
                f". {out[0]} is set, but not {', '.join(missing)}: was this process "
                f"started by {launcher.command}?"
            )
    return ""


# -----------------------------------------------------------------------------
# Joining the other processes of a program, and leaving them.


PREFIXES: Final = ("VERAX_", "JAX_")
FILES: Final = ("mtls_cert_file", "mtls_key_file", "mtls_ca_file")


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
    mtls_cert_file: str | None = None,
    mtls_key_file: str | None = None,
    mtls_ca_file: str | None = None,
    mtls_peer_uri_prefix: str | None = None,
    verify_secure_credentials: bool | None = None,
) -> None:
    """Join the other processes of this program; each of them calls this.

    It must come before the first array. What is None is read from the environment:
    `VERAX_COORDINATOR_ADDRESS`, `VERAX_NUM_PROCESSES`, `VERAX_PROCESS_ID`,
    `VERAX_LOCAL_DEVICE_IDS`, `VERAX_COORDINATOR_BIND_ADDRESS` (or the same with
    `JAX_`), then from the variables of SLURM, Open MPI and Kubernetes.

    Process 0 listens at `coordinator_address` (`host:port`), or where
    `coordinator_bind_address` says, and nowhere else. `local_device_ids` are the GPUs
    of this process. `cluster_detection_method` is "slurm", "ompi", "k8s", or
    "deactivate" to look for none. Times are in seconds: to wait for all processes at
    the start, to take a silent one for dead, which raises `errors.ProcessFailed` in the
    others, and to wait for all at the end. Processes of one `partition_index`, formerly
    `slice_index`, have devices that are closely connected. With certificates (PEM
    files), messages to the coordinator are encrypted and both sides prove who they are:
    the other's certificate must name its host, or hold a URI that starts with
    `mtls_peer_uri_prefix`; `verify_secure_credentials` refuses to do without.

    Raises:
        RuntimeError: this process has joined already, or has started its devices; the
            coordinator cannot be reached in time; processes have the same number.
        ValueError: something is missing, or out of range.
    """
    given = (coordinator_address, num_processes, process_id)
    place, local_index = own_place(*given, cluster_detection_method)
    bind = coordinator_bind_address or variable("COORDINATOR_BIND_ADDRESS")
    settings = Settings(
        checked_address("coordinator_address", place[0]),
        checked_address("coordinator_bind_address", bind or place[0]),
        *place[1:],
        chosen_devices(local_device_ids, local_index),
        as_seconds("initialization_timeout", initialization_timeout),
        as_seconds("heartbeat_timeout_seconds", heartbeat_timeout_seconds),
        as_seconds("shutdown_timeout_seconds", shutdown_timeout_seconds),
        slice_index if partition_index is None else partition_index,
        security(
            (mtls_cert_file, mtls_key_file, mtls_ca_file),
            mtls_peer_uri_prefix,
            verify_secure_credentials,
        ),
    )
    connect(settings)


def shutdown() -> None:
    """Leave the other processes, after all have called this; does nothing when alone.

    At its end a process does so by itself.

    Raises:
        RuntimeError: the others do not come within `shutdown_timeout_seconds`.
    """
    disconnect()


def is_initialized() -> bool:
    """Whether this process has joined others with `initialize`.

    >>> is_initialized()
    False
    """
    return CLUSTER.connection is not None


def variable(name: str) -> str | None:
    """The value of `VERAX_name`, else `JAX_name`."""
    out = first_variable(tuple([prefix + name for prefix in PREFIXES]))
    return None if out is None else out[1]


def integer(value: int | None, name: str, default: int | None) -> int | None:
    """An argument, else what a variable or the launcher says."""
    if value is not None or (text := variable(name)) is None:
        return default if value is None else value
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"the environment variable for {name} must be an integer, not {text!r}"
        ) from None


def own_place(
    address: str | None, count: int | None, index: int | None, method: str | None
) -> tuple[tuple[str, int, int], int | None]:
    """Coordinator, number of processes and own number; the number on this machine.

    What is None says the environment.
    """
    member = detected(os.environ, method)
    place = checked_member(
        address or variable("COORDINATOR_ADDRESS") or member.address,
        integer(count, "NUM_PROCESSES", member.count),
        integer(index, "PROCESS_ID", member.index),
    )
    return place, member.local_index


def checked_member(
    address: str | None, count: int | None, index: int | None
) -> tuple[str, int, int]:
    """The place of this process among the others, if it is complete and possible."""
    for name, value in (
        ("coordinator_address", address),
        ("num_processes", count),
        ("process_id", index),
    ):
        if value is None:
            raise ValueError(
                f"distributed.initialize needs {name}, which neither the arguments nor "
                f"the environment say: pass it, or set VERAX_{name.upper()}"
                f"{half_set(os.environ)}"
            )
    assert address is not None
    assert count is not None
    assert index is not None
    if not isinstance(index, int) or isinstance(index, bool):
        raise TypeError(f"process_id must be a nonnegative int, not {index!r}")
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"num_processes must be a positive int, not {count!r}")
    if not 0 <= index < count:
        raise ValueError(
            f"process_id and num_processes must be nonnegative, with process_id < "
            f"num_processes; got process_id={index}, num_processes={count}"
        )
    return address, count, index


def checked_address(name: str, address: str) -> str:
    """`host:port`, if it is one."""
    try:
        host, port = split_address(address)
        fits = bool(host) and 0 < port < 1 << 16
    except (ValueError, AttributeError):
        fits = False
    if not fits:
        raise ValueError(f"{name} must be a string 'host:port', not {address!r}")
    return address


def as_seconds(name: str, value: object) -> int:
    """A time, which must be a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} takes an integer of seconds, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1 second, not {value}")
    return value


def chosen_devices(
    given: int | Sequence[int] | None, local_index: int | None
) -> tuple[int, ...] | None:
    """The GPUs of this process; where a launcher numbers its processes, one each."""
    if given is None and (text := variable("LOCAL_DEVICE_IDS")) is not None:
        if re.fullmatch(r"\d+(,\d+)*", text) is None:
            raise ValueError(
                "the environment variable for LOCAL_DEVICE_IDS must be integers with "
                f"commas between them, not {text!r}"
            )
        return tuple([int(part) for part in text.split(",")])
    if given is None:
        return None if local_index is None else (local_index,)
    chosen = (given,) if isinstance(given, int) else tuple(given)
    if any([isinstance(x, bool) or not isinstance(x, int) for x in chosen]):
        raise TypeError(
            f"local_device_ids must be an int or a sequence of ints, not {given!r}"
        )
    return chosen


def security(
    paths: Sequence[str | None], prefix: str | None, strict: bool | None
) -> tuple[tuple[str, str | bool], ...]:
    """The options of mutual TLS; its three files go together.

    Raises:
        ValueError: only some of them were passed.
        FileNotFoundError: one does not exist.
    """
    files = dict(zip(FILES, paths, strict=True))
    missing = [name for name, path in files.items() if path is None]
    if 0 < len(missing) < len(files):
        raise ValueError(
            f"mutual TLS needs a certificate, its key and the authorities: pass "
            f"{' and '.join(missing)} too"
        )
    for name, path in files.items():
        if path is not None and not Path(path).is_file():
            raise FileNotFoundError(f"{name}={path!r} does not exist")
    options = {
        **files,
        "mtls_peer_uri_prefix": prefix,
        "verify_secure_credentials": strict,
    }
    return tuple([(name, x) for name, x in options.items() if x is not None])
