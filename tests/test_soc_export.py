"""Registers as C header, JSON and SVD, and that LiteX exports the same map for a bridged block."""

import ctypes
import json
import subprocess
from xml.etree import ElementTree

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator
from firmware_lib import RAM, map_memory
from litex.soc.integration import export
from litex.soc.integration.soc import SoCCSRRegion
from soc_placeholder import SHELL_BLOCK
from trebuchet.cores.csr import CsrSignature, Field, Register, RegisterBlock, fields
from trebuchet.cores.roles.contract import role_block
from trebuchet.cores.services.framer import SMP_BLOCK
from trebuchet.models.status import Status
from trebuchet.soc.bridge import CsrBank
from trebuchet.soc.csr_export import (
    block_size,
    c_header,
    json_map,
    register_offsets,
    register_words,
    svd,
)
from trebuchet.soc.firmware import status_codes_header, status_table_header

ODD = RegisterBlock(
    "odd",
    (
        Register("sync", "rw", 33, "named like a Migen attribute", reset=(1 << 32) + 5),
        Register("wide", "ro", 64, fields=(Field("low", 0, 8), Field("across", 30, 4))),
        Register("go", "stb", 1, "do it */ now"),
        Register("seen", "w1c", 3, "events", fields=(Field("late", 2),)),
    ),
    "corners",
)
BASE = 0xF000_1000
BLOCKS = (SHELL_BLOCK, ODD, role_block("role"))


def test_a_roles_block_begins_with_the_standard_layout():
    offsets = register_offsets(role_block("role"))
    standard = ("busy", "start", "interrupt_enable", "interrupt_status")
    assert [offsets[name] for name in standard] == [0x00, 0x08, 0x10, 0x18]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.name)
def test_litex_exports_the_same_map(block):
    csrs = CsrBank(block).get_csrs()
    region = SoCCSRRegion(origin=BASE, busword=32, obj=csrs)
    litex = json.loads(export.get_csr_json({block.name: region}))["csr_registers"]
    ours, address = {}, BASE
    for register in block.registers:
        for name, _, _ in register_words(register):
            kind = "ro" if register.access == "ro" else "rw"
            ours[f"{block.name}_{name}"] = {"addr": address, "size": 1, "type": kind}
            address += 4
    assert litex == ours
    assert address - BASE == block_size(block)


def test_litex_exports_the_fields():
    csrs = CsrBank(ODD).get_csrs()
    region = SoCCSRRegion(origin=BASE, busword=32, obj=csrs)
    header = export.get_csr_header({"odd": region}, {}, csr_base=BASE)
    for line in (
        "#define CSR_ODD_WIDE_ACROSS_OFFSET 30",
        "#define CSR_ODD_WIDE_ACROSS_SIZE 2",
        "#define CSR_ODD_WIDE_HIGH_ACROSS_OFFSET 0",
        "#define CSR_ODD_WIDE_HIGH_ACROSS_SIZE 2",
        "#define CSR_ODD_SEEN_LATE_OFFSET 2",
    ):
        assert line in header.splitlines()


def test_json_map():
    found = json.loads(json_map([(ODD, BASE)]))["blocks"]["odd"]
    assert found["base"] == BASE
    assert found["size"] == 24
    assert found["registers"]["seen"] == {
        "address": BASE + 20,
        "offset": 20,
        "width": 3,
        "access": "w1c",
        "reset": 0,
        "description": "events",
        "fields": {"late": {"offset": 2, "width": 1, "description": ""}},
    }


def test_svd_names_every_word_and_its_access():
    root = ElementTree.fromstring(svd([(ODD, BASE)]))
    registers = {
        node.findtext("name"): (node.findtext("addressOffset"), node.findtext("access"))
        for node in root.iter("register")
    }
    assert registers == {
        "SYNC": ("0x0000", "read-write"),
        "SYNC_HIGH": ("0x0004", "read-write"),
        "WIDE": ("0x0008", "read-only"),
        "WIDE_HIGH": ("0x000c", "read-only"),
        "GO": ("0x0010", "write-only"),
        "SEEN": ("0x0014", "read-write"),
    }
    high = next(node for node in root.iter("register") if node.findtext("name") == "SYNC_HIGH")
    assert high.findtext("resetValue") == "0x00000001"


def test_c_header_reads_and_writes_what_it_says(tmp_path):
    # Compiled for this machine, with the base at memory of this process.
    code = """
#include "regs.h"
uint64_t read_wide(void) { return trebuchet_odd_wide_read(); }
void write_sync(uint64_t value) { trebuchet_odd_sync_write(value); }
void go(void) { trebuchet_odd_go_write(1); }
"""
    map_memory()
    words = (ctypes.c_uint32 * 5).from_address(RAM)
    (tmp_path / "regs.h").write_text(c_header([(ODD, RAM)]))
    (tmp_path / "test.c").write_text(code)
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", tmp_path / "test.so", tmp_path / "test.c"], check=True)
    lib = ctypes.CDLL(str(tmp_path / "test.so"))
    lib.read_wide.restype = ctypes.c_uint64
    words[2], words[3] = 0x89ABCDEF, 0x01234567
    assert lib.read_wide() == 0x0123456789ABCDEF
    lib.write_sync(ctypes.c_uint64(0x1_0000_0002))
    lib.go()
    assert [words[i] for i in (0, 1, 4)] == [2, 1, 1]


def test_a_core_reads_and_assigns_the_fields_that_the_maps_show():
    csr = CsrSignature(ODD).create()
    m = Module()
    m.d.comb += fields(csr, "wide").across.eq(fields(csr, "seen").late * 5)

    async def bench(ctx):
        ctx.set(csr.seen, 0b100)
        assert ctx.get(csr.wide) == 5 << 30
        ctx.set(csr.seen, 0b011)
        assert ctx.get(csr.wide) == 0

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    with pytest.raises(AttributeError, match="early"):
        fields(csr, "seen").early  # noqa: B018
    with pytest.raises(AttributeError, match="absent"):
        fields(csr, "absent")


def test_firmware_tables_list_codes_and_counters():
    codes = status_codes_header()
    for code in Status:
        assert f"#define TREBUCHET_STATUS_{code.name} {int(code)} " in codes
    table = status_table_header([(SHELL_BLOCK, BASE), (ODD, BASE + 0x800)])
    assert '{ "shell", "ticks", 0xf0001020u, 1 },' in table
    assert "#define STATUS_TABLE_COUNT 1u" in table  # `wide` has fields: no gauge


def test_the_status_page_has_every_reason_for_an_error_answer():
    table = status_table_header([(SMP_BLOCK, BASE)])
    for register in SMP_BLOCK.registers:
        assert f'"smp", "{register.name}", ' in table
