"""Mutual TLS between the coordinator and its clients, with certificates made here."""

import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.distributed.groups import free_port, run_group

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(
    OPENSSL is None, reason="openssl makes the certificates"
)


def openssl(folder: Path, *arguments: str) -> None:
    assert OPENSSL is not None
    subprocess.run([OPENSSL, *arguments], cwd=folder, check=True, capture_output=True)


def make_authority(folder: Path, name: str) -> None:
    """An authority: `name.pem` and `name.key`."""
    key = ["-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key"]
    subject = ["-subj", f"/CN={name}", "-days", "2"]
    openssl(folder, "req", "-x509", *key, "-out", f"{name}.pem", *subject)


def make_certificate(folder: Path, authority: str, name: str) -> None:
    """A certificate of the loopback address, signed by an authority."""
    key = ["-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key"]
    openssl(folder, "req", *key, "-out", f"{name}.csr", "-subj", f"/CN={name}")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost")
    signed = ["-CA", f"{authority}.pem", "-CAkey", f"{authority}.key"]
    openssl(
        folder,
        "x509",
        "-req",
        "-in",
        f"{name}.csr",
        *signed,
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        "names",
        "-out",
        f"{name}.pem",
    )


def program(address: str, index: int, security: str) -> list[str]:
    text = f"""
        import numpy as np
        import verax
        verax.distributed.initialize(
            {address!r}, 2, {index}, initialization_timeout=4, {security}
        )
        from verax.experimental.multihost_utils import process_allgather
        assert process_allgather({index}).tolist() == [0, 1]
        print("joined")
    """
    return ["-c", textwrap.dedent(text)]


def files(folder: Path, name: str, authority: str = "authority") -> str:
    return (
        f"mtls_cert_file={str(folder / name)!r} + '.pem', "
        f"mtls_key_file={str(folder / name)!r} + '.key', "
        f"mtls_ca_file={str(folder / authority)!r} + '.pem', "
        "verify_secure_credentials=True"
    )


@pytest.mark.slow(jaxlib=True)
def test_processes_with_certificates_join_and_others_do_not(tmp_path: Path) -> None:
    make_authority(tmp_path, "authority")
    make_authority(tmp_path, "stranger")
    make_certificate(tmp_path, "authority", "node")
    make_certificate(tmp_path, "stranger", "foreign")
    good = files(tmp_path, "node")
    address = f"127.0.0.1:{free_port()}"
    ended = run_group([program(address, i, good) for i in (0, 1)], tmp_path)
    assert [process.status for process in ended] == [0, 0], ended
    commands = []
    for bad in (files(tmp_path, "foreign", "stranger"), ""):
        address = f"127.0.0.1:{free_port()}"
        commands += [program(address, 0, good), program(address, 1, bad)]
    ended = run_group(commands, tmp_path)
    assert [process.status for process in ended] == [1] * 4
    assert all("could not join" in process.output for process in ended)
