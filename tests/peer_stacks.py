"""TCP stacks that are not the kernel's, as hosts on the simulated board's network."""

import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.models.paths import build_folder
from trebuchet.models.plan import Plan
from trebuchet.sim.build import build
from trebuchet.sim.fabric import fabric_source

__all__ = ["SESSIONS", "STACKS", "command", "large_fabric"]

HERE = Path(__file__).resolve().parent.parent
SOURCES = HERE / "sim" / "peers"
BUILD = build_folder("peers")
SESSIONS = 1024

#: Each stack's MAC and IPv4 address; the kernel has others.
STACKS = {
    "lwip": ("02:00:00:00:00:4d", "192.0.2.77"),
    "smoltcp": ("02:00:00:00:00:4e", "192.0.2.78"),
}


@functools.cache
def large_fabric():
    """The shell with 1,024 sessions, SACK, no role; a peer can have it open connections."""
    tcp = TcpConfig(sessions=SESSIONS, active=True, runs=4, sack=True)
    return build(fabric_source(tcp, shell={"plan": Plan()}, call=True))


def _lwip():
    source = SOURCES / "lwip.c"
    if shutil.which("gcc") is None:
        pytest.skip("lwIP as a peer needs gcc: apt-get install gcc")
    if not Path("/usr/include/lwip/lwip/tcp.h").exists():
        pytest.skip("lwIP as a peer needs its library: apt-get install liblwip-dev")
    key = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    binary = BUILD / f"lwip-{key}"
    if not binary.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        new = binary.with_suffix(f".{os.getpid()}")
        flags = ["-O1", "-Wall", "-Wextra", "-std=gnu11", "-I/usr/include/lwip"]
        libraries = ["-llwip", "-lpthread"]
        subprocess.run(["gcc", *flags, "-o", new, source, *libraries], check=True)
        new.rename(binary)
    return binary


def _smoltcp():
    manifest = SOURCES / "smoltcp" / "Cargo.toml"
    # cargo may be but a link to a manager that has no compiler.
    if (
        shutil.which("cargo") is None
        or subprocess.run(["cargo", "-V"], capture_output=True).returncode
    ):
        pytest.skip("smoltcp as a peer needs cargo (Rust 1.80 or newer)")
    cargo = ["cargo", "build", "--release", "--locked", "--offline", "--quiet"]
    done = subprocess.run(
        [*cargo, "--manifest-path", manifest, "--target-dir", BUILD / "smoltcp"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "offline" in done.stderr:
        pytest.skip(
            f"smoltcp's crates are not here: cargo fetch --locked --manifest-path {manifest}"
        )
    if done.returncode and "requires rustc" in done.stderr:
        pytest.skip("smoltcp as a peer needs Rust 1.80 or newer")
    assert done.returncode == 0, done.stderr
    return BUILD / "smoltcp" / "release" / "peer"


@functools.cache
def binary(stack):
    """The program of ``stack``, compiled if need be; skips the test if it cannot be had."""
    return {"lwip": _lwip, "smoltcp": _smoltcp}[stack]()


def command(stack, board, role, port, sizes):
    """What to run on the board's network: transfers of ``sizes`` as client or as server."""
    mac, address = STACKS[stack]
    words = [binary(stack), "tap0", mac, address, board.ip, role, port, *sizes]
    return [str(word) for word in words]
