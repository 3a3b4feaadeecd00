"""Registers on the SoC's buses: Migen's simulator, random slaves, masters that give up."""

import random

import pytest
from litex.gen import LiteXModule
from litex.soc.interconnect import csr_bus, wishbone
from litex.soc.interconnect.csr import CSRStatus, CSRStorage
from migen import passive, run_simulation
from trebuchet.soc.slices import AnswerSlice, BusSlice, CsrBridge, CsrInterconnect

WORDS = 16


def _bus(addressing="word"):
    return wishbone.Interface(32, address_width=32, addressing=addressing)


@passive
def _slave(bus, words, rng, starts):
    """A memory that answers after some cycles, and forgets an access that is given up.

    ``starts`` gets every access that began, and whether it ended.
    """
    left = None
    while True:
        if (yield bus.ack):
            yield bus.ack.eq(0)
            left = None
        elif (yield bus.cyc) and (yield bus.stb):
            if left is None:
                left = rng.randint(0, 5)
                starts.append([(yield bus.adr), (yield bus.we), False])
            if left == 0:
                addr = yield bus.adr
                if (yield bus.we):
                    for byte in range(4):
                        if (yield bus.sel) >> byte & 1:
                            mask = 0xFF << 8 * byte
                            words[addr] = words[addr] & ~mask | (yield bus.dat_w) & mask
                yield bus.dat_r.eq(words[addr])
                yield bus.ack.eq(1)
                starts[-1][2] = True
            left -= 1
        else:
            left = None
        yield


def _access(bus, addr, data=None, sel=15, patience=50):
    """The word read, or None: given up after ``patience`` cycles."""
    yield bus.adr.eq(addr)
    yield bus.we.eq(data is not None)
    yield bus.dat_w.eq(data or 0)
    yield bus.sel.eq(sel)
    yield bus.cyc.eq(1)
    yield bus.stb.eq(1)
    word = None
    for _ in range(patience):
        yield
        if (yield bus.ack):
            word = yield bus.dat_r
            break
    yield bus.cyc.eq(0)
    yield bus.stb.eq(0)
    return word


def _before_slave():
    """A slice, the end for its master, and the end for its slave."""
    slave = _bus()
    dut = BusSlice(slave)
    return dut, dut.bus, slave


def _behind_master():
    master = _bus()
    dut = AnswerSlice(master)
    return dut, master, dut.bus


@pytest.mark.parametrize("make", [_before_slave, _behind_master])
@pytest.mark.parametrize("seed", range(4))
def test_every_access_reaches_the_slave_once(make, seed):
    rng = random.Random(seed)
    dut, bus, inner = make()
    words, model = [0] * WORDS, [0] * WORDS
    starts, asked = [], []

    def master():
        for _ in range(200):
            addr, sel = rng.randrange(WORDS), rng.randint(1, 15)
            data = rng.getrandbits(32) if rng.random() < 0.5 else None
            asked.append((addr, int(data is not None)))
            word = yield from _access(bus, addr, data, sel)
            assert word is not None, "no answer in 50 cycles"
            if data is None:
                assert word == model[addr]
            mask = sum(0xFF << 8 * byte for byte in range(4) if sel >> byte & 1)
            if data is not None:
                model[addr] = model[addr] & ~mask | data & mask
            for _ in range(rng.choice((0, 0, 1, 3))):
                yield

    run_simulation(dut, [master(), _slave(inner, words, rng, starts)])
    assert [(addr, we) for addr, we, _ in starts] == asked
    assert all(ended for *_, ended in starts)
    assert words == model


@pytest.mark.parametrize("make", [_before_slave, _behind_master])
def test_an_error_comes_back(make):
    dut, bus, inner = make()
    seen = []

    @passive
    def slave():
        while True:
            asked = (yield inner.cyc) and (yield inner.stb) and not (yield inner.err)
            yield inner.err.eq(asked)
            yield

    def master():
        for addr in (3, 4):
            yield bus.adr.eq(addr)
            yield bus.cyc.eq(1)
            yield bus.stb.eq(1)
            yield
            for _ in range(20):
                if (yield bus.err):
                    seen.append(((yield bus.adr), (yield bus.ack)))
                    break
                yield
            yield bus.cyc.eq(0)
            yield bus.stb.eq(0)
            yield
            yield
            assert not (yield bus.err)

    run_simulation(dut, [master(), slave()])
    assert seen == [(3, 0), (4, 0)]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_given_up_answers_nobody(seed):
    rng = random.Random(seed)
    inner = _bus()
    dut = BusSlice(inner)
    words = [0x1000 + i for i in range(WORDS)]
    starts, given_up = [], []

    def master():
        for _ in range(300):
            addr = rng.randrange(WORDS)
            word = yield from _access(dut.bus, addr, patience=rng.choice((1, 2, 3, 4, 5, 50)))
            assert word in (None, 0x1000 + addr)
            given_up.append(word is None)
            yield
            yield  # an access that is given up ends before the next one begins
            for _ in range(rng.choice((0, 1, 3))):
                assert not (yield dut.bus.ack), "an answer that nobody waits for"
                yield

    run_simulation(dut, [master(), _slave(inner, words, rng, starts)])
    assert 20 < sum(given_up) < 280
    assert any(ended for *_, ended in starts)
    assert not all(ended for *_, ended in starts)


class _Banks(LiteXModule):
    """Two banks, the second with a register whose reads are counted."""

    def __init__(self):
        self.first, self.second = LiteXModule(), LiteXModule()
        self.first.a = CSRStorage(32, name="a", reset=1)
        self.first.b = CSRStorage(32, name="b", reset=2)
        self.second.c = CSRStorage(32, name="c", reset=3)
        self.second.taken = CSRStatus(32, name="taken")
        self.sync += self.second.taken.status.eq(self.second.taken.status + self.second.taken.we)
        places = {"first": 0, "second": 5}
        self.csr_bankarray = csr_bus.CSRBankArray(
            self, lambda name, memory: places.get(name), data_width=32, address_width=14
        )
        self.bridge = CsrBridge(_bus(), csr_bus.Interface(32, 14))
        self.ways = CsrInterconnect(self, self.bridge.csr)


def _expect(bus, words):
    for addr, word in words:
        found = yield from _access(bus, addr)
        assert found == word, f"{found:#x} at {addr:#x}, not {word:#x}"


def test_each_register_answers_for_itself():
    dut = _Banks()
    bus, c, taken, nowhere = dut.bridge.wishbone, 5 << 9, (5 << 9) + 1, (9 << 9, 31 << 9)

    def master():
        yield from _expect(bus, [(0, 1), (1, 2), (c, 3)])
        yield from _access(bus, 1, 0xDEAD_BEEF)
        yield from _access(bus, c, 0x1234_5678)
        yield from _expect(bus, [(0, 1), (1, 0xDEAD_BEEF), (c, 0x1234_5678)])
        # A read is one read, however long the master waits; one of no byte is none.
        yield from _expect(bus, [(taken, reads) for reads in range(4)])
        yield from _access(bus, taken, sel=0)
        yield from _access(bus, 1, 0, sel=0)
        yield from _expect(bus, [(taken, 4), (1, 0xDEAD_BEEF)])
        # Where nothing is: zero, and nothing happens.
        yield from _expect(bus, [(addr, 0) for addr in nowhere])
        yield from _expect(bus, [(taken, 5)])

    run_simulation(dut, master())


def test_the_number_that_stands_for_nobody_is_refused():
    dut = _Banks()
    (name, csrs, _, bank), *others = dut.csr_bankarray.banks
    dut.csr_bankarray.banks = [(name, csrs, 31, bank), *others]
    with pytest.raises(ValueError, match="^No bank may have the number 31$"):
        run_simulation(dut, iter(()))
