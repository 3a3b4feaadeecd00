"""LiteX's packages that know nothing of the SoC are compiled once for each kind of CPU."""

import subprocess
from types import SimpleNamespace

import pytest
from trebuchet.soc import firmware
from trebuchet.soc.firmware import FirmwareBuilder
from trebuchet.soc.toolchain import provide_tools

MAKEFILE = """include ../include/variables.mak
all:
\techo $(CPUFLAGS) > lib.flags
\techo $(CPUFLAGS) >> $(PACKAGE)/compiled
\ttouch scratch
\t$(LAST)
"""


@pytest.fixture
def share(root, tmp_path, monkeypatch):
    """Share the package of a build; returns the build's folder of it."""
    monkeypatch.setattr(firmware, "BUILD", tmp_path / "build")
    provide_tools(root / "build" / "tools")
    package = tmp_path / "package"
    package.mkdir()
    (package / "Makefile").write_text(MAKEFILE)

    def share(build, flags, last="true", patterns=("*.flags",)):
        software = tmp_path / build / "software"
        include, own = software / "include", software / "lib"
        for folder in (include, own):
            folder.mkdir(parents=True, exist_ok=True)
        lines = [f"CPUFLAGS={flags}", f"PACKAGE={package}", f"LAST={last}", f"INCLUDE={include}"]
        (include / "variables.mak").write_text("\n".join(lines) + "\n")
        builder = SimpleNamespace(
            software_dir=software,
            include_dir=include,
            software_packages=[("lib", str(package))],
            _get_variables_contents=lambda: "\n".join(lines),
        )
        FirmwareBuilder._share(builder, "lib", patterns)
        return own

    share.compiled = package / "compiled"
    return share


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_boards_with_the_same_cpu_share_what_is_compiled(share):
    for build in ("one", "other", "one"):
        own = share(build, "-march=a")
        assert (own / "lib.flags").read_text() == "-march=a\n"
        assert names(own) == ["lib.flags", "shared.txt"]
    assert share.compiled.read_text() == "-march=a\n"


def test_another_cpu_has_its_own(share):
    share("one", "-march=a")
    (share("one", "-march=b") / "of_b").touch()
    own = share("one", "-march=a")
    assert (own / "lib.flags").read_text() == "-march=a\n"
    assert names(own) == ["lib.flags", "shared.txt"], "made from what was compiled for b"
    assert share.compiled.read_text() == "-march=a\n-march=b\n"


def test_nothing_is_kept_of_what_does_not_compile(share, tmp_path):
    with pytest.raises(subprocess.CalledProcessError):
        share("one", "-march=a", last="false")
    assert not [path for path in (tmp_path / "build" / "libraries").iterdir() if path.suffix == ""]
    with pytest.raises(subprocess.CalledProcessError):
        share("one", "-march=a", last="false")
    assert (share("one", "-march=a") / "shared.txt").exists()


def test_a_library_is_shared_without_debugging_information(share, tmp_path):
    """What is left of it is what is linked: its symbols and code."""
    (tmp_path / "one.c").write_text("int one(void) { return 1; }\n")
    gcc, objdump = "riscv64-unknown-elf-gcc", "riscv64-unknown-elf-objdump"
    subprocess.run([gcc, "-g", "-c", tmp_path / "one.c", "-o", tmp_path / "one.o"], check=True)
    make = f"cp {tmp_path / 'one.o'} . && riscv64-unknown-elf-ar rcs lib.a one.o && true"
    library = share("one", "-march=a", make, ("*.a",)) / "lib.a"
    sections = subprocess.run(
        [objdump, "-h", "-t", library], check=True, capture_output=True, text=True
    ).stdout
    assert ".text" in sections
    assert " one\n" in sections
    assert ".debug" not in sections
