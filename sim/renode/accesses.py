"""The shared register-level test: one list of accesses for the gateware and for the models.

:func:`generated` makes it from the build's register maps, so that a register that is added is
tested; :func:`role_slot` and :func:`mailbox` add sequences for what the blocks do. Whoever runs it
(:func:`run`) has ``read(address)`` and ``write(address, value)``: the Verilated board without its
processor (:class:`~trebuchet.sim.renode.cosim.gateware.GatewareBus`) or Renode with its processor
halted (:class:`~trebuchet.sim.renode.client.Renode`). Each side starts after reset.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ...models.status import Status
from .platform import Build, constant_status

__all__ = ["Access", "Bus", "generated", "mailbox_idle", "role_slot", "run"]

_WORD = 0xFFFF_FFFF
_PATTERNS = (0xFFFF_FFFF, 0xA5C3_960F, 0x5A3C_69F0, 0)

#: Writing these makes the gateware do something; their sequences are written by hand.
_BY_HAND = {("mailbox", "rx_index"), ("flash", "control")}


class Bus(Protocol):
    """What can carry out accesses."""

    def read(self, address: int) -> int: ...

    def write(self, address: int, value: int) -> None: ...


@dataclass(frozen=True)
class Access:
    """A write, a read that must give ``value``, or with ``poll`` reads until one gives it."""

    what: str
    address: int
    value: int
    write: bool = False
    poll: bool = False
    mask: int = _WORD


def _words(register: dict[str, Any]) -> list[tuple[int, int]]:
    """``(offset of the word in bytes, mask of its bits)``."""
    width = register["width"]
    return [(low // 8, (1 << min(32, width - low)) - 1) for low in range(0, width, 32)]


def generated(build: Build, only: Iterable[str] | None = None) -> Iterator[Access]:
    """Reset values, width, and what a write does, for every register of ``registers.json``."""
    for block, description in build.blocks.items():
        if only is not None and block not in only:
            continue
        for name, register in description["registers"].items():
            if (block, name) not in _BY_HAND:
                yield from _register(build, f"{block}.{name}", block, name, register)


def _register(
    build: Build, label: str, block: str, name: str, register: dict[str, Any]
) -> Iterator[Access]:
    access, base = register["access"], register["address"]
    reset = register["reset"] if access != "ro" else constant_status(build, block, name)
    words = _words(register)
    for offset, mask in words:
        expected = reset >> 8 * offset & mask
        yield Access(f"{label} after reset", base + offset, expected)
    if access in ("ro", "w1c"):
        for offset, mask in words:
            expected = reset >> 8 * offset & mask
            yield Access(f"{label} := ones", base + offset, _WORD, write=True)
            yield Access(f"{label} keeps its value", base + offset, expected)
    elif access == "stb":
        for offset, _ in words:
            # Zero starts nothing anywhere; all strobes read 0.
            yield Access(f"{label} := 0", base + offset, 0, write=True)
            yield Access(f"{label} reads 0", base + offset, 0)
    elif access == "rw":
        yield from _storage(label, base, words, reset)


def _storage(label: str, base: int, words: list[tuple[int, int]], reset: int) -> Iterator[Access]:
    """Each word keeps its bits, and nothing of the others'."""
    for pattern in _PATTERNS:
        for offset, mask in words:
            yield Access(f"{label} := pattern", base + offset, pattern, write=True)
            yield Access(f"{label} keeps {pattern:#x}", base + offset, pattern & mask)
    for offset, mask in words:
        yield Access(f"{label} := reset", base + offset, reset >> 8 * offset & mask, write=True)
    for offset, mask in words:
        yield Access(f"{label} is as after reset", base + offset, reset >> 8 * offset & mask)


def role_slot(build: Build, role: str) -> Iterator[Access]:
    """Jobs that the slot itself answers, its switches, counters and interrupt.

    The same for every role: none of these jobs reaches one.
    """
    at = {name: r["address"] for name, r in build.blocks[role]["registers"].items()}
    irq = {
        name: csr["addr"] for name, csr in build.csrs.items() if name.startswith("shell_irq_ev_")
    }

    def write(what: str, name: str, value: int, high: bool = False) -> Access:
        return Access(f"{role}: {what}", at[name] + (4 if high else 0), value, write=True)

    def expect(what: str, name: str, value: int, poll: bool = False) -> Access:
        return Access(f"{role}: {what}", at[name], value, poll=poll)

    def start(value: int = 1) -> Iterator[Access]:
        # The write of the high word is the one that counts.
        yield write("start, low word", "start", value)
        yield write("start, high word", "start", 0, high=True)

    memory = build.constants["trebuchet_memory_base"]
    yield write("operand", "operand_addr", memory)
    yield write("result", "result_addr", memory + 4096)
    yield write("switch off", "enable", 0)
    yield from start(0)
    yield from start(2)
    yield expect("bit 1 starts nothing", "jobs", 0)
    yield from start()
    yield expect("stopped job ends", "interrupt_status", 1, poll=True)
    yield expect("it is not busy", "busy", 0)
    yield expect("status STOPPED", "result_status", Status.STOPPED)
    yield expect("no result", "result_length", 0)
    yield expect("one job", "jobs", 1)
    yield expect("one error", "errors", 1)
    yield Access("no interrupt", irq["shell_irq_ev_status"], 0)
    yield write("clear done, low word", "interrupt_status", 1)
    yield expect("only the high word's write clears", "interrupt_status", 1)
    yield write("clear done, high word", "interrupt_status", 0, high=True)
    yield expect("done is cleared", "interrupt_status", 0)
    yield write("switch on", "enable", 1)
    yield write("result at no multiple of 16", "result_addr", memory + 4104)
    yield write("interrupt on", "interrupt_enable", 1)
    yield from start()
    yield expect("refused job ends", "interrupt_status", 3, poll=True)
    yield expect("status BAD_LENGTH", "result_status", Status.BAD_LENGTH)
    yield expect("two jobs", "jobs", 2)
    yield expect("two errors", "errors", 2)
    yield Access("the shell interrupts", irq["shell_irq_ev_status"], 1)
    yield Access("pending as the level", irq["shell_irq_ev_pending"], 1)
    yield Access("clearing a level", irq["shell_irq_ev_pending"], 1, write=True)
    yield Access("does nothing", irq["shell_irq_ev_pending"], 1)
    yield write("clear both, low word", "interrupt_status", 3)
    yield write("clear both, high word", "interrupt_status", 0, high=True)
    yield expect("both are cleared", "interrupt_status", 0)
    yield Access("no interrupt any more", irq["shell_irq_ev_status"], 0)
    yield write("reset of an idle role", "reset", 1)
    yield expect("is over at once", "state", 0, poll=True)
    yield expect("and answers nothing", "jobs", 2)
    yield write("interrupt off", "interrupt_enable", 0)


def mailbox_idle(build: Build) -> Iterator[Access]:
    """With nothing pending, words, answers and drops do nothing."""
    at = {name: r["address"] for name, r in build.blocks["mailbox"]["registers"].items()}
    writes = {"tx_data": 0x1234_5678, "tx_write": 1, "send": 1 << 31 | 1 << 16 | 4, "drop": 1}
    for name, value in writes.items():
        yield Access(f"mailbox: {name} with nothing pending", at[name], value, write=True)
    for name in ("status", "requests", "responses", "dropped", "session", "request_length"):
        value = constant_status(build, "mailbox", name)
        yield Access(f"mailbox: {name} is as after reset", at[name], value)


def run(bus: Bus, accesses: Iterable[Access], polls: int = 2000) -> list[str]:
    """Carry out the accesses; returns a line for each that did not give what it must.

    ``polls``: reads of an address that is polled, one in 10 ms.
    """
    wrong, count = [], 0
    for access in accesses:
        count += 1
        if access.write:
            bus.write(access.address, access.value)
            continue
        found = bus.read(access.address) & access.mask
        for _ in range(polls if access.poll else 0):
            if found == access.value:
                break
            time.sleep(0.01)
            found = bus.read(access.address) & access.mask
        if found != access.value:
            wrong.append(
                f"{access.what}: 0x{access.address:08x} is 0x{found:x}, not 0x{access.value:x}"
            )
    if count == 0:
        wrong.append("there was nothing to do")
    return wrong
