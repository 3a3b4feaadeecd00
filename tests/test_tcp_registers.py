"""Registers of the TCP engine: every counter, and settings that are built in."""

from dataclasses import replace

import pytest
from amaranth.hdl import Value
from streams import (
    run,
)
from tcp_bench import SMALL
from trebuchet.cores.tcp import application, receive, timer, transmit
from trebuchet.cores.tcp.engine import TcpEngine
from trebuchet.cores.tcp.registers import programmable


def test_engine_wants_a_configuration():
    with pytest.raises(TypeError, match="^Configuration must be a TcpConfig, not 64$"):
        TcpEngine(64)


def test_registers_are_complete():
    """Every counter that an engine raises is in the register block."""
    dut = TcpEngine(SMALL)
    names = {r.name for r in dut.block.registers}
    for source in (receive, transmit, timer, application):
        assert set(source.COUNTS) <= names
    assert len(Value.cast(dut.csr.unknown)) == 32


def test_fixed_settings_are_told_and_cannot_be_written():
    """`programmable=False`: the registers tell what was built in; the engine works by that."""
    config = replace(SMALL, programmable=False, time_wait=77)
    dut = TcpEngine(config)
    access = {r.name: r.access for r in dut.block.registers}
    told = programmable(config)
    assert {access[name] for name in told} == {"ro"}
    assert access["listen"] == "rw"

    async def look(ctx):
        await ctx.tick()
        for name, (_, value, _) in told.items():
            assert ctx.get(getattr(dut.csr, name)) == value
            assert ctx.get(dut.receive.settings[name]) == value

    run(dut, look, limit=10)
    assert told["time_wait"][1] == 77
