"""Register blocks behind AXI4-Lite: for designs without LiteX.

Source: AMBA AXI and ACE protocol specification (ARM IHI 0022E), section B1.
"""

from amaranth import unsigned
from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .csr import CsrSignature
from .csr_map import WORD_BITS, WORD_BYTES, block_size, register_words

__all__ = ["AxiLiteRegisters", "AxiLiteSignature", "register_map"]

#: Answers of AXI: done, and an address at which there is nothing.
OKAY, SLVERR = 0, 2


def register_map(blocks):
    """``(block, base address)`` of each of ``blocks``, one after the other.

    Each lies at a multiple of its size, rounded up to a power of two.
    """
    regions, at = [], 0
    for block in blocks:
        size = 1 << max(WORD_BYTES, block_size(block) - 1).bit_length()
        at = -(-at // size) * size
        regions.append((block, at))
        at += size
    return regions


class AxiLiteSignature(wiring.Signature):
    """An AXI4-Lite interface with 32 bits of data, from the manager's side.

    Members ``aw`` (``addr``), ``w`` (``data``, ``strb``), ``b`` (``resp``), ``ar`` (``addr``) and
    ``r`` (``data``, ``resp``) are streams; ``addr_width`` is that of ``addr``, in bits. ``prot`` is
    left out: nothing depends on it.
    """

    def __init__(self, addr_width):
        self.addr_width = addr_width
        address = stream.Signature(data.StructLayout({"addr": unsigned(addr_width)}))
        w = {"data": unsigned(WORD_BITS), "strb": unsigned(WORD_BYTES)}
        r = {"data": unsigned(WORD_BITS), "resp": unsigned(2)}
        super().__init__(
            {
                "aw": Out(address),
                "w": Out(stream.Signature(data.StructLayout(w))),
                "b": In(stream.Signature(data.StructLayout({"resp": 2}))),
                "ar": Out(address),
                "r": In(stream.Signature(data.StructLayout(r))),
            }
        )

    def __eq__(self, other):
        return isinstance(other, AxiLiteSignature) and self.addr_width == other.addr_width

    def __repr__(self):
        return f"AxiLiteSignature({self.addr_width})"


class AxiLiteRegisters(wiring.Component):
    """Drives the register ports of cores as an AXI4-Lite subordinate.

    ==============  =============================  ===============================================
    member          signature                      meaning
    ==============  =============================  ===============================================
    ``bus``         In(AxiLiteSignature)           the processor's side
    ``csr_NAME``    Out(CsrSignature)              one for each block, to the core that declares it
    ==============  =============================  ===============================================

    Addresses are those of :func:`register_map`, modulo the size of the whole map. A register wider
    than 32 bits has two words, the low one first; its strobes take effect with the write of the
    high word, so software writes the low word first. Reading the two is not atomic. Bytes that
    ``strb`` leaves out keep their value in a register that is stored (``rw``) and count as 0 in one
    that is not.

    *Latency*: a write takes effect in the cycle in which address and data are accepted, and is
    answered in the next; a read is answered 2 cycles after its address. *Throughput*: a write every
    2 cycles, a read every 3. *Back-pressure*: one write and one read at a time; each waits for its
    answer to be taken. *Reset*: stored registers have their declared values. *Bad input*: an
    address without a register is answered SLVERR and reads as 0; so does a register that can only
    be written. Writing one that can only be read changes nothing.

    Parameters
    ----------
    blocks : sequence of RegisterBlock
        At least one; no two with the same name.
    """

    def __init__(self, blocks):
        blocks = tuple(blocks)
        names = [block.name for block in blocks]
        if not blocks or len(set(names)) != len(names):
            raise ValueError(f"Register blocks must have different names, not {names!r}")
        self.regions = register_map(blocks)
        last, base = self.regions[-1]
        self.addr_width = max(3, (base + block_size(last) - 1).bit_length())
        super().__init__(
            {
                "bus": In(AxiLiteSignature(self.addr_width)),
                **{f"csr_{block.name}": Out(CsrSignature(block)) for block in blocks},
            }
        )

    def words(self):
        """``(address in words, register, low bit, width, port)`` of each word, by address."""
        for block, base in self.regions:
            at = base // WORD_BYTES
            port = getattr(self, f"csr_{block.name}")
            for register in block.registers:
                for _, low, width in register_words(register):
                    yield at, register, low, width, port
                    at += 1

    def elaborate(self, platform):
        m = Module()
        self._write(m)
        self._read(m)
        return m

    def _write(self, m):
        aw, w, b = self.bus.aw, self.bus.w, self.bus.b
        en = Signal()
        mask = Cat(bit.replicate(8) for bit in w.p.strb)
        known = Signal()
        m.d.comb += [
            en.eq(aw.valid & w.valid & ~b.valid),
            aw.ready.eq(en),
            w.ready.eq(en),
        ]
        with m.If(b.ready):
            m.d.sync += b.valid.eq(0)
        with m.If(en):
            m.d.sync += [b.valid.eq(1), b.p.resp.eq(Mux(known, OKAY, SLVERR))]
        held = {}  # low words of wide strobes, by register
        with m.Switch(aw.p.addr[2:]):
            for at, register, low, width, port in self.words():
                with m.Case(at):
                    m.d.comb += known.eq(1)
                    self._write_word(m, en, w.p.data & mask, mask, register, low, width, port, held)

    def _write_word(self, m, en, value, mask, register, low, width, port, held):
        """A write to one word, which begins at bit ``low`` of the register."""
        whole = low + width == register.width
        if register.access == "rw":
            target = getattr(port, register.name)[low : low + width]
            with m.If(en):
                m.d.sync += target.eq(value | (target & ~mask))
        elif register.access != "ro":
            suffix = "" if register.access == "stb" else "_clear"
            strobe = getattr(port, register.name + suffix)
            key = (id(port), register.name)
            if not whole:
                held[key] = kept = Signal(width, name=f"{register.name}_low")
                with m.If(en):
                    m.d.sync += kept.eq(value)
            else:
                below = held.get(key, Const(0, 0))
                with m.If(en):
                    m.d.comb += strobe.eq(Cat(below, value[:width]))

    def _read(self, m):
        ar, r = self.bus.ar, self.bus.r
        addr, pending = Signal.like(ar.p.addr[2:]), Signal()
        m.d.comb += ar.ready.eq(~pending & ~r.valid)
        with m.If(ar.valid & ar.ready):
            m.d.sync += [pending.eq(1), addr.eq(ar.p.addr[2:])]
        with m.If(r.ready):
            m.d.sync += r.valid.eq(0)
        with m.If(pending):
            m.d.sync += [pending.eq(0), r.valid.eq(1), r.p.data.eq(0), r.p.resp.eq(SLVERR)]
            with m.Switch(addr):
                for at, register, low, width, port in self.words():
                    with m.Case(at):
                        m.d.sync += r.p.resp.eq(OKAY)
                        if register.access != "stb":
                            value = getattr(port, register.name)
                            m.d.sync += r.p.data.eq(value[low : low + width])
