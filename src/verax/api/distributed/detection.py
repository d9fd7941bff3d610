"""Floor 5: what the launcher of a job tells each of its processes.

One idea: SLURM, Open MPI and Kubernetes set environment variables for every process
that they start, and these are all that is read::

    detected(os.environ)      # Member(address="node001:62345", count=4, index=2, ...)
"""

import re
import socket
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen

from verax.ir.records import ReprMixin

type Environment = Mapping[str, str]

# The coordinator of a job listens on a port made of the number of the job.
PORTS: Final = 1 << 12
FIRST_PORT: Final = (1 << 16) - PORTS
KUBERNETES_PORT: Final = 55527
PORT_VARIABLES: Final = ("VERAX_COORDINATOR_PORT", "JAX_COORDINATOR_PORT")
HNP_URI: Final = re.compile(r"^(\d+)\..*?(?:tcp://([^,:]+)|tcp6://\[([^,\]]+))")


@frozen(repr=False)
class Member(ReprMixin):
    """What a process knows of its job; what is None was not said."""

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
    if found := HNP_URI.search(uri):
        # Numbers of jobs are multiples of 2**12.
        job = int(found[1]) // PORTS
        host = found[2] or f"[{found[3]}]"
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
    """What the launcher says; nothing if none is found, or `method` is "deactivate".

    Raises:
        ValueError: there is no method of this name, or it does not work here.
    """
    if method == OFF:
        return Member()
    if method is None:
        found = [x for x in LAUNCHERS.values() if x.started(environment)]
        return found[0].read(environment) if found else Member()
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
    """What is said of launchers that have set some of their variables, but not all.

    >>> half_set({"SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "a", "SLURM_NTASKS": "2"})
    '. SLURM_JOB_ID is set, but not SLURM_PROCID, SLURM_LOCALID: was this process
    started by srun?'
    """
    for launcher in LAUNCHERS.values():
        missing = launcher.missing(environment)
        found = [name for name in launcher.variables if name in environment]
        if missing and found:
            return (
                f". {found[0]} is set, but not {', '.join(missing)}: was this process "
                f"started by {launcher.command}?"
            )
    return ""
