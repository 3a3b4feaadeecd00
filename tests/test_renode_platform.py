"""The platform files for Renode: nothing of a build is skipped, and what is written reads back."""

import json
import re

import pytest
from trebuchet.cores.csr import Field, Register, RegisterBlock
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.renode import find_renode, need_renode
from trebuchet.models.status import Status
from trebuchet.sim.renode import accesses, emit
from trebuchet.sim.renode.cli import _with_monitor
from trebuchet.sim.renode.platform import (
    CSR_WINDOW,
    describe,
    describe_cosimulated,
    read_build,
    role_of,
)
from trebuchet.soc.csr_export import json_map

BASE = 0xF000_0000

#: LiteX's blocks of a board: registers and whether software writes them.
LITEX = {
    "ctrl": {"reset": "rw", "scratch": "rw", "bus_errors": "ro"},
    "identifier_mem": {},
    "mac": {"preamble_errors": "ro", "crc_errors": "ro"},
    "sdram": {"dfii_control": "rw", "dfii_pi0_rddata": "ro"},
    "shell_irq": {"ev_status": "ro", "ev_pending": "rw", "ev_enable": "rw"},
    "surprise": {"unheard_of": "rw"},
    "tick": {"period": "rw", "uptime": "ro"},
    "timer0": {"load": "rw"},
    "uart": {"rxtx": "rw"},
}
ROLE = RegisterBlock(
    "thinker",
    (
        Register("busy", "ro", 64),
        Register("start", "stb", 64),
        Register("interrupt_enable", "rw", 64),
        Register("interrupt_status", "w1c", 64, fields=(Field("done", 0),)),
        Register("result_status", "ro", 8),
    ),
)
OURS = (
    RegisterBlock("shell", (Register("enable", "rw", 1), Register("mac", "rw", 48, reset=2))),
    RegisterBlock("mailbox", (Register("status", "ro", 4), Register("irq_enable", "rw", 1))),
    RegisterBlock("tcp", (Register("sessions", "ro", 32), Register("port_0", "rw", 16, reset=7))),
    ROLE,
)


@pytest.fixture
def folder(tmp_path):
    """What a build leaves, for a board that is not there."""
    names = [*LITEX, *(block.name for block in OURS)]
    bases = {name: BASE + CSR_WINDOW * i for i, name in enumerate(names)}
    registers = {
        f"{block}_{name}": {"addr": bases[block] + 4 * i, "size": 1, "type": access}
        for block, words in LITEX.items()
        for i, (name, access) in enumerate(words.items())
    }
    constants = {
        "config_clock_frequency": 50_000_000,
        "config_cpu_type_vexriscv": None,
        "config_cpu_variant_minimal": None,
        "config_identifier": 'a "board"',
        "trebuchet_board": "bench",
        "trebuchet_sessions": 16,
        "shell_irq_interrupt": 2,
        "timer0_interrupt": 1,
        "uart_interrupt": 0,
    }
    memories = {
        "rom": {"base": 0, "size": 65536, "type": "cached"},
        "main_ram": {"base": 0x4000_0000, "size": 1 << 24, "type": "cached"},
        "csr": {"base": BASE, "size": 65536, "type": "io"},
    }
    csr = {
        "csr_bases": bases,
        "csr_registers": registers,
        "constants": constants,
        "memories": memories,
    }
    (tmp_path / "csr.json").write_text(json.dumps(csr))
    blocks = json_map([(block, bases[block.name]) for block in OURS])
    (tmp_path / "registers.json").write_text(blocks)
    return tmp_path


def change(folder, edit):
    """The build after ``edit`` of its csr.json."""
    csr = json.loads((folder / "csr.json").read_text())
    edit(csr)
    (folder / "csr.json").write_text(json.dumps(csr))
    return read_build(folder)


@pytest.mark.parametrize("describe", [describe, describe_cosimulated])
def test_every_region_has_a_device_at_its_address(folder, describe):
    build = read_build(folder)
    platform = describe(build)
    emit.check(platform, emit.repl(platform))
    found = [region for device in platform.devices for region in device.regions]
    assert sorted(found) == sorted(build.regions)


def test_platform_file(folder):
    text = emit.repl(describe(read_build(folder)))
    assert 'cpuType: "rv32i_zicsr_zifencei"' in text
    assert re.search(r"mac: Trebuchet.Link @ sysbus 0xF0001000\n.*\n    shell: shell\n", text)
    assert 'registers: "enable:rw:1 mac:rw:48:2"' in text
    assert 'registers: "sessions:ro:32:16 port_0:rw:16:7"' in text
    # What nobody knows keeps what is written to it.
    assert "surprise: Trebuchet.RegisterBlock" in text
    assert '"unheard_of:rw:32"' in text
    assert r'text: "a \"board\""' in text
    # The shell's sources of interrupts by name, then the one line to the processor.
    assert "IRQ -> shell_irq@0" in text.partition("mailbox:")[2].partition("\n\n")[0]
    assert "IRQ -> shell_irq@1" in text.partition("thinker:")[2].partition("\n\n")[0]
    assert "IRQ -> cpu@2" in text.partition("shell_irq:")[2].partition("\n\n")[0]


def test_script_joins_every_board_to_the_switch(folder):
    platform = describe(read_build(folder))
    script = emit.resc([platform] * 2, "bench", tap="tap7", gdb=3333)
    assert script.count("connector Connect sysbus.mac lan") == 2
    assert 'emulation CreateTap "tap7" "tap"' in script
    assert [int(port) for port in re.findall("StartGdbServer ([0-9]+)", script)] == [3333, 3334]
    models = re.search("^include (.*)$", script, re.M)[1].split()
    assert len(models) == len(list(emit.MODELS.glob("*.cs"))) > 0


def test_paths_with_blanks(tmp_path):
    assert emit._quote(tmp_path / "a b") == f"{tmp_path}/a\\ b"


def test_register_that_no_device_has(folder):
    def edit(csr):
        csr["csr_registers"]["stray_word"] = {"addr": BASE + 0x9000, "size": 1, "type": "rw"}

    platform = describe(change(folder, edit))
    with pytest.raises(TrebuchetError, match="register 'stray_word' of csr.json lies in no device"):
        emit.check(platform, emit.repl(platform))


def test_devices_that_overlap(folder):
    build = change(folder, lambda csr: csr["csr_bases"].update(uart=BASE + 0x400))
    platform = describe(build)
    with pytest.raises(TrebuchetError, match="'ctrl' and 'uart' overlap at 0xf0000400"):
        emit.check(platform, emit.repl(platform))


def test_text_that_is_not_the_platform(folder):
    platform = describe(read_build(folder))
    text = emit.repl(platform)
    for wrong, message in (
        (text.replace("uart: ", "usart: "), "'uart' does not read back"),
        (text.replace("    frequency", "   frequency"), "does not parse"),
        (text.replace("-> cpu@2", "-> gpu@2"), "there is no 'gpu' to interrupt"),
        (text + text, "is there twice"),
    ):
        with pytest.raises(TrebuchetError, match=message):
            emit.check(platform, wrong)


def test_builds_that_are_refused(folder):
    with pytest.raises(TrebuchetError, match=r"csr\.json is missing; remove the folder .*nowhere,"):
        read_build(folder / "nowhere")
    with pytest.raises(TrebuchetError, match="the role in Renode must be none or loopback"):
        describe(read_build(folder), role="ecg")
    build = change(folder, lambda csr: csr["constants"].pop("config_cpu_variant_minimal"))
    with pytest.raises(TrebuchetError, match="must be VexRiscv, one of minimal"):
        describe(build)
    (folder / "csr.json").write_text("{")
    with pytest.raises(TrebuchetError, match=r"csr.json is damaged"):
        read_build(folder)


class Words:
    """Registers as RegisterBlock.cs has them, in a page of Python: for tests of the test."""

    def __init__(self, build, forget=None):
        self.words, self.masks, self.access = {}, {}, {}
        for block, description in build.blocks.items():
            for name, r in description["registers"].items():
                status = accesses.constant_status(build, block, name)
                reset = status if r["access"] == "ro" else r["reset"]
                for offset, mask in accesses._words(r):
                    at = r["address"] + offset
                    self.words[at] = reset >> 8 * offset & mask
                    self.masks[at], self.access[at] = mask, r["access"]
        if forget:
            self.masks[forget] >>= 1

    def read(self, address):
        return self.words[address]

    def write(self, address, value):
        if self.access[address] == "rw":
            self.words[address] = value & self.masks[address]


def test_generated_accesses_find_a_missing_bit(folder):
    build = read_build(folder)
    assert accesses.run(Words(build), accesses.generated(build)) == []
    port = build.blocks["tcp"]["registers"]["port_0"]["address"]
    wrong = accesses.run(Words(build, forget=port), accesses.generated(build))
    assert wrong
    assert all("tcp.port_0" in line for line in wrong)
    assert accesses.run(Words(build), ()) == ["there was nothing to do"]


def test_role_is_found_by_its_registers(folder):
    assert role_of(read_build(folder)) == "thinker"


def test_status_codes_of_the_slots_model():
    """The model is C#, so it has its own copy of the few codes that a slot gives."""
    text = (emit.MODELS / "RoleSlot.cs").read_text()
    found = dict(re.findall(r"private const ulong (\w+) = (\d+);", text))
    for name in ("Ok", "BadLength", "NoRole", "Stopped", "NoRoom", "Aborted"):
        code = Status[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()]
        assert int(found[name]) == code, name


@pytest.mark.parametrize("contents", ["no program", "#!/nowhere/interpreter\n"])
def test_renode_that_cannot_run(monkeypatch, tmp_path, contents):
    launcher = tmp_path / "renode"
    launcher.write_text(contents)
    launcher.chmod(0o755)
    monkeypatch.setenv("RENODE", str(launcher))
    with pytest.raises(TrebuchetError, match=rf"^cannot run {launcher}: [^;]*; unpack the "):
        _with_monitor(tmp_path / "sim.resc", gui=False, start=True)


def test_renode_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("RENODE", str(tmp_path))
    assert find_renode() is None
    with pytest.raises(TrebuchetError, match=r"is no Renode; unpack the portable release"):
        need_renode()
    launcher = tmp_path / "renode"
    launcher.touch(mode=0o755)
    assert find_renode() == launcher
    for name in ("a" * 5000, "a\nb", str(tmp_path / "renode" / "below_a_file")):
        monkeypatch.setenv("RENODE", name)
        with pytest.raises(TrebuchetError, match=r"^RENODE=.* is no Renode; unpack the portable "):
            need_renode()
    monkeypatch.delenv("RENODE")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(TrebuchetError, match="Renode is not on PATH"):
        need_renode()
