"""Cores for other designs: the files that say which, what is generated, and LiteX modules."""

import json
import re
import shutil
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from axi_bench import AxiMemory, axi_lite_read, axi_lite_write
from litedram.common import LiteDRAMNativePort
from litex.build.generic_platform import Pins
from litex.gen import LiteXModule
from migen import ClockDomain
from streams import make_rng, run
from trebuchet.boards.sim_platform import VerilogPlatform
from trebuchet.cores.csr_map import register_offsets
from trebuchet.host import cli
from trebuchet.integration.catalog import KINDS
from trebuchet.integration.config import CoreFile, default_file, load_core
from trebuchet.integration.generator import generate
from trebuchet.integration.packaged import FlatTop, Millisecond, Packaged
from trebuchet.integration.sheet import meanings
from trebuchet.litex import TrebuchetLtl, TrebuchetMatmul, TrebuchetRouter
from trebuchet.models import matmul
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc.toolchain import verilator

SMALL = {"n": 4, "macs": 4}


def test_the_cores_are_those_that_documents_name(root):
    assert set(KINDS) == {"tcp", "router", "ltl", "bridge", "ecg", "matmul"}
    for kind in KINDS.values():
        assert (root / kind.page).is_file()


@pytest.mark.parametrize("name", KINDS)
def test_the_default_file_is_valid_and_explains_each_parameter(name, tmp_path):
    kind = KINDS[name]
    text = default_file(kind)
    path = tmp_path / "core.toml"
    path.write_text(text)
    file = load_core(name, path)
    assert replace(file, parameters={}) == CoreFile(kind)
    stated = {p.name: p.default for p in kind.parameters() if p.default is not None}
    preset = {"preset": next(iter(kind.presets))} if kind.presets else {}
    assert tomllib.loads(text)["parameters"] == preset | {
        key: list(value) if isinstance(value, tuple) else value for key, value in stated.items()
    }
    assert [p.name for p in kind.parameters() if not p.meaning] == []
    kind.component(file.parameters)


WRONG = {
    'core = "ltl"': "it is for core 'ltl', not 'matmul'",
    "nmae = 3": "there is no key 'nmae', did you mean 'name'?",
    "xyz = 3": "there is no key 'xyz'; there are: core, name, clock_mhz, memory, registers, base, "
    "parameters",
    "macs = 4": "there is no key 'macs'; parameters belong below the line [parameters]",
    'name = "a b"': "name must be a Verilog identifier, not 'a b'",
    "clock_mhz = 0": "clock_mhz must be 0.01 to 2000, not 0",
    'memory = "wishbone"': "memory must be axi or native, not 'wishbone'",
    'registers = "apb"': "registers must be axi-lite or ports, not 'apb'",
    "base = 2": "base must be a 32-bit address, a multiple of 4, not 2",
    "parameters = 3": "[parameters] must be a table",
}
WRONG_PARAMETERS = {
    ("matmul", "mcas = 4"): "core matmul has no parameter 'mcas', did you mean 'macs'?",
    ("matmul", "q = 4"): "core matmul has no parameter 'q'; it has: width, jobs, macs, n",
    ("matmul", 'macs = "4"'): "macs must be an integer, not '4'",
    ("matmul", "jobs = 1"): "jobs must be true or false, not 1",
    ("matmul", "width = 33"): "width must be one of (32, 64, 128), not 33",
    ("tcp", "mss = 20"): "MSS must be 536 to 1460, not 20",
    ("tcp", 'ports = ["7"]'): "ports must be a list of integers, not ['7']",
    ("tcp", 'ip = "10.0.0"'): "ip must be an IPv4 address, not '10.0.0'",
    ("tcp", 'mac = "02:00"'): "mac must be six bytes such as 02:00:00:00:00:01, not '02:00'",
    ("tcp", 'preset = "huge"'): "preset must be one of tiny, small, full, not 'huge'",
    ("router", 'topology = "tree"'): "topology must be crossbar or ring or mesh, not 'tree'",
    ("router", "endpoints = 1"): "endpoints must be 2 to 64, not 1",
    ("bridge", 'inbound = "crc"'): "there is no engine 'crc'; there are: crc32c",
    ("ecg", "buffers = 3"): "buffers must be 1 or 2, not 3",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_file_is_one_line_that_names_it(line, tmp_path):
    path = tmp_path / "core.toml"
    path.write_text(f"{line}\n")
    with pytest.raises(TrebuchetError, match=f"^core file '{path}': {re.escape(WRONG[line])}$"):
        load_core("matmul", path)


@pytest.mark.parametrize(("name", "line"), WRONG_PARAMETERS)
def test_a_wrong_parameter_is_one_line(name, line):
    values = tomllib.loads(line)
    with pytest.raises(TrebuchetError, match=f"^{re.escape(WRONG_PARAMETERS[name, line])}$"):
        KINDS[name].component(values)


def test_commands(capsys, tmp_path):
    def output(*arguments):
        with pytest.raises(SystemExit) as ended:
            cli.main(["core", *arguments])
        return ended.value.code or 0, capsys.readouterr()

    code, said = output("list")
    assert code == 0
    lines = said.out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [*KINDS]
    assert max(map(len, lines)) <= 80
    code, said = output("generate", "matmul", "--print-config")
    assert (code, said.out) == (0, default_file(KINDS["matmul"]))
    code, said = output("generate", "matmull")
    assert (code, said.err) == (
        1,
        "trebuchet: there is no core 'matmull', did you mean 'matmul'?\n",
    )


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """A small core in files: its CoreFile and folder."""
    folder = tmp_path_factory.mktemp("core")
    file = CoreFile(KINDS["matmul"], "product", base=0x4000_0000, parameters=SMALL | {"jobs": True})
    paths = generate(file, folder)
    assert all(path.is_file() for path in paths)
    return file, folder


def test_the_verilog_and_its_template_are_clean(generated):
    _, folder = generated
    tool, environment = verilator()
    options = ["--lint-only", "-Wno-fatal", "-Wno-lint", "--top-module", "product_template"]
    done = subprocess.run(
        [tool, *options, "product_template.v", "product.v"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "PINMISSING" not in done.stderr
    assert "PINNOTFOUND" not in done.stderr


def test_the_register_map_is_the_same_in_all_forms(generated):
    _, folder = generated
    blocks = json.loads((folder / "product.json").read_text())
    assert "0x40000000" in (folder / "product.h").read_text()
    ElementTree.parse(folder / "product.svd")
    assert "products" in json.dumps(blocks)
    if shutil.which("cc"):
        command = ["cc", "-fsyntax-only", "-Wall", "-Werror", "-x", "c", str(folder / "product.h")]
        subprocess.run(command, check=True)


def test_the_data_sheet_names_all_there_is(generated):
    file, folder = generated
    sheet = (folder / "product.md").read_text()
    top = FlatTop(Packaged(file.kind.component(file.parameters)))
    for port in top.ports:
        assert f"| `{port.name}` | {'output' if port.driven else 'input'} | {port.width} |" in sheet
    for parameter in file.kind.parameters():
        assert f"| `{parameter.name}` |" in sheet
    assert "see the document" not in sheet
    assert "| `macs` | `4` |" in sheet
    for heading in ("Files", "Ports", "Parameters", "Registers", "Figures", "Proofs"):
        assert f"\n## {heading}\n" in sheet
    assert "`matmul.utilisation`" in sheet
    assert "`0x40000000`" in sheet


def test_the_clock_is_in_the_constraints(generated):
    _, folder = generated
    assert "-period 10.000 [get_ports clk]" in (folder / "product.sdc").read_text()
    assert 'FREQUENCY PORT "clk" 100 MHZ;' in (folder / "product.lpf").read_text()


@pytest.mark.parametrize("name", KINDS)
def test_every_member_of_every_core_is_explained(name):
    core = KINDS[name].component({})
    ports = FlatTop(Packaged(core)).ports
    assert {port.member for port in ports} <= meanings(core).keys()


def test_a_processor_multiplies_over_axi():
    """The core behind both buses: operands in memory, a start by registers, the product back."""
    core = Packaged(KINDS["matmul"].component(SMALL))
    (block, base), rng = core.regions[0], make_rng(0, "matrices")
    offsets = register_offsets(block)
    operand = rng.randbytes(8 * 16)
    memory = bytearray(8192)
    memory[4096 - 32 : 4096 - 32 + len(operand)] = operand  # across a page

    async def processor(ctx):
        async def write(name, value):
            for word in range(2):
                addr = base + offsets[name] + 4 * word
                await axi_lite_write(ctx, core.s_axi, addr, value >> 32 * word & 0xFFFFFFFF)

        for name, value in (
            ("operand_addr", 4096 - 32),
            ("operand_length", len(operand)),
            ("result_addr", 1024),
            ("result_room", 64),
            ("interrupt_enable", 1),
            ("start", 1),
        ):
            await write(name, value)
        await ctx.tick().until(core.irq)
        status, _ = await axi_lite_read(ctx, core.s_axi, base + offsets["result_status"])
        length, _ = await axi_lite_read(ctx, core.s_axi, base + offsets["result_length"])
        assert (status, length) == (0, 64)

    memory_bench = AxiMemory(core.m_axi, memory, make_rng(0, "axi"))
    run(core, processor, memory_bench, limit=5_000)
    assert memory[1024 : 1024 + 64] == matmul.result(operand, 4)


def test_a_millisecond_is_as_many_cycles():
    dut, seen = Millisecond(5), []

    async def watch(ctx):
        for _ in range(12):
            seen.append(ctx.get(dut.tick))
            await ctx.tick()

    run(dut, watch, limit=20)
    assert seen == [1, 0, 0, 0, 0] * 2 + [1, 0]


# --- LiteX ----------------------------------------------------------------------------------------


class _Design(LiteXModule):
    def __init__(self):
        self.cd_sys = ClockDomain()


def _platform():
    return VerilogPlatform("top", [("sys_clk", 0, Pins(1))])


def test_a_role_in_litex_has_a_bus_registers_and_an_interrupt(tmp_path):
    core = TrebuchetMatmul(_platform(), 50e6, directory=tmp_path, **SMALL)
    assert (core.bus.data_width, core.bus.address_width) == (32, 32)
    names = {csr.name for csr in core.role.get_csrs()}
    assert {"operand_addr", "start", "products"} <= names
    assert core.ev.core is not None
    assert (tmp_path / "trebuchet_matmul.v").is_file()
    design = _Design()
    design.core = core
    design.get_fragment()


def test_a_core_connects_to_litedram_by_an_adapter_of_its_own(tmp_path):
    platform = _platform()
    core = TrebuchetMatmul(platform, 50e6, "native", directory=tmp_path, **SMALL)
    assert not hasattr(core, "bus")
    assert not hasattr(core, "mem")  # one driver of its signals is enough
    port = LiteDRAMNativePort("both", address_width=20, data_width=128)
    core.connect_dram(port, 1 << 20)
    design = _Design()
    design.core = core
    design.get_fragment()
    names = {"trebuchet_matmul.v", "trebuchet_matmul_dram.v"}
    assert {Path(source[0]).name for source in platform.sources} == names


def test_streams_in_arrays_become_lists_of_endpoints(tmp_path):
    core = TrebuchetRouter(_platform(), 50e6, directory=tmp_path, endpoints=3, width=32, vcs=1)
    assert [len(ends) for ends in core.send] == [1, 1, 1]
    assert len(core.receive[2][0].data) == 32
    assert len(core.dest[1][0]) == 2


def test_what_a_beat_has_beyond_a_packet_stream_is_a_parameter(tmp_path):
    core = TrebuchetLtl(
        _platform(), 50e6, directory=tmp_path, connections=4, vcs=1, slots=2, window=2,
        max_message=64, buffer_beats=16,
    )  # fmt: skip
    assert core.send[0].description.param_layout == [("connection", 2)]
    assert len(core.deliver[0].connection) == 2
    assert {"mac", "ip"} <= {csr.name for csr in core.network.get_csrs()}


def test_a_wrong_parameter_is_refused_in_litex(tmp_path):
    with pytest.raises(TrebuchetError, match=r"^core matmul has no parameter 'mac', did you mean"):
        TrebuchetMatmul(_platform(), 50e6, directory=tmp_path, mac=4)
