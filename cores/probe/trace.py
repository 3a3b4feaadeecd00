"""Trace core: a logic analyser for signals of the shell and of roles, run-length compressed."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from ..csr import CsrSignature, Field, Register, RegisterBlock, fields

__all__ = ["MAX_WIDTH", "STAMP_WIDTH", "TIME_WIDTH", "TraceCore", "pack_fields", "trace_block"]
__all__ += ["WINDOW"]

#: Bits that are sampled, at most.
MAX_WIDTH = 512
#: Bits of a record's time stamp: in 2**24 cycles without a change there is one record more.
STAMP_WIDTH = 24
#: Bits of the cycle counter; 52 days at 62.5 MHz.
TIME_WIDTH = 48
#: Registers through which records are read.
WINDOW = 32
_WORD = 32


def pack_fields(signals):
    """Return the words of 32 bits that hold ``signals``, each a tuple of register fields.

    ``signals``: ``(name, width)``, packed from bit 0 of the first word on. A signal that crosses
    words has a field of its name in each, the lower part first.
    """
    words, at = [], 0
    for name, width in signals:
        while width:
            low = at % _WORD
            if low == 0:
                words.append([])
            part = min(width, _WORD - low)
            words[-1].append(Field(name, low, part))
            at, width = at + part, width - part
    return [tuple(word) for word in words]


def trace_block(signals, depth, stamp_width=STAMP_WIDTH, time_width=TIME_WIDTH):
    """The register block ``probe``; ``signals`` as for :func:`pack_fields`.

    The fields of ``mask_0`` … name the signals; the field of ``end_time`` says how wide stamps are.
    """
    index = (depth - 1).bit_length()
    words = pack_fields(signals)

    def per_word(name, what):
        return [
            Register(f"{name}_{k}", "rw", max(f.offset + f.width for f in word), what, fields=word)
            for k, word in enumerate(words)
        ]

    control = (
        Field("arm", 0, 1, "begin anew"),
        Field("stop", 1, 1, "end now"),
        Field("rewind", 2, 1, "show the oldest record"),
    )
    state = (
        Field("armed", 0, 1, "records are stored"),
        Field("triggered", 1, 1, "the trigger condition was met"),
        Field("done", 2, 1, "the records can be read"),
    )
    halves = (Field("low", 0, 16), Field("high", 16, 16))
    stamp = (Field("stamp", 0, stamp_width, "bits of a record's stamp"),)
    return RegisterBlock(
        "probe",
        (
            Register("control", "stb", 3, "begin or end a capture", fields=control),
            Register("state", "ro", 3, "what the trace core does", fields=state),
            Register("before", "rw", index, "records kept from before the trigger"),
            *per_word("value", "trigger: bits must be these"),
            *per_word("mask", "trigger: bits that are compared"),
            *per_word("edge", "trigger: bits of which one must change"),
            Register("records", "ro", index + 1, "records that can be read"),
            Register("trigger_time", "ro", time_width, "cycle of the sample that triggered"),
            Register("end_time", "ro", time_width, "cycle of the last sample", fields=stamp),
            Register("position", "ro", index + 1, "records whose words were all read"),
            *(
                Register(f"window_{k}", "ro", _WORD, "next word of the records", 0, halves, True)
                for k in range(WINDOW)
            ),
        ),
        "trace core: samples of signals around a trigger",
    )


class TraceCore(wiring.Component):
    """Samples ``data`` in every cycle, and keeps what changed around a trigger.

    ========  ====  ============  =================================================================
    member    dir   width         meaning
    ========  ====  ============  =================================================================
    ``data``  In    of signals    what is sampled, a bit of it in each cycle of ``sync``
    ``csr``   In    CsrSignature  :func:`trace_block`
    ========  ====  ============  =================================================================

    1. A *record* is a sample and the low ``stamp_width`` bits of its cycle number, a *stamp*. A
       sample is stored if it differs from the one before it, if its stamp is 0, if it is the first
       one of a capture, or if it triggers; else it equals the record before. So stamps of
       consecutive records are 1 to ``2**stamp_width`` cycles apart, and cycle numbers follow from
       stamps exactly, whatever the signals do.
    2. Writing bit 0 of ``control`` (arm) begins a capture, also during another one. The last
       ``depth`` records are kept.
    3. The first sample of the capture that meets the condition triggers: its bits of ``mask``
       equal those of ``value``, and, unless ``edge`` is 0, at least one of its bits of ``edge``
       differs from the sample before. ``trigger_time`` is its cycle. It has a record of its own.
    4. The capture ends with the ``depth - before``-th record from that of the trigger on; or in the
       cycle in which bit 1 of ``control`` (stop) is written. ``end_time`` is the cycle of the last
       sample; no sample from the trigger's to that one is missing, and the last record holds up to
       it. Before the trigger's there are at most ``before`` records, and more only if the capture
       was stopped.
    5. With ``done``, ``records`` are kept, and can be read word by word, the oldest first: of each
       the stamp, then the sample, 32 bits a word, the lowest first, filled up with zeros. All
       registers ``window_…`` show the same word, and reading any of them goes on to the next one,
       so that a read of many addresses in a row gets as many words. Bit 2 of ``control`` (rewind)
       goes back to the oldest record. ``position`` counts the records that were read since then.
       A word is valid three cycles after the read or write before it; buses are slower.

    ``value``, ``mask`` and ``edge`` may change at any time, and hold for samples from the cycle
    before on; ``before`` is as it is when armed. Without ``done`` the registers of records are
    undefined.

    Latency: a sample's cycle number is that of the core's counter two cycles later; this is the
    same for all samples. Throughput: a record a cycle. Back-pressure: none, ``data`` is only
    observed. Reset: idle, cycle 0. Bad input: there is none; stop without a capture does nothing,
    arm and stop at a time arm.

    Parameters
    ----------
    signals : sequence of (name, width)
        What ``data`` consists of, from bit 0 on, at most :data:`MAX_WIDTH` bits together; names
        become fields of the registers ``mask_0`` …
    depth : int
        Records, a power of two from 4 to 8,192.
    stamp_width, time_width : int
        Bits of stamps and of the cycle counter, which wraps; the latter larger, at most 64.
    """

    def __init__(self, signals, depth=1024, stamp_width=STAMP_WIDTH, time_width=TIME_WIDTH):
        self.signals = tuple(signals)
        width = sum(size for _, size in self.signals)
        if not 1 <= width <= MAX_WIDTH:
            raise ValueError(f"Trace core must sample 1 to {MAX_WIDTH} bits, not {width}")
        if not isinstance(depth, int) or not 4 <= depth <= 8192 or depth & (depth - 1):
            raise ValueError(f"Trace core depth must be a power of two, 4 to 8192, not {depth!r}")
        if not 1 <= stamp_width < time_width <= 64:
            raise ValueError(
                f"Trace core stamps must be shorter than its time of at most 64 bits, not "
                f"{stamp_width!r} and {time_width!r}"
            )
        self.width, self.depth, self.stamp_width = width, depth, stamp_width
        self.index_width = index = (depth - 1).bit_length()
        self.block = trace_block(self.signals, depth, stamp_width, time_width)
        super().__init__({"data": In(width), "csr": In(CsrSignature(self.block))})
        self.ram = Memory(shape=unsigned(width + stamp_width), depth=depth, init=[])
        self.read_port = self.ram.read_port()
        self.sample, self.past = Signal(width), Signal(width)
        self.changed, self.hit = Signal(), Signal()
        self.now = Signal(time_width)  # the cycle of `past`
        self.running, self.begins, self.triggered = Signal(), Signal(), Signal()
        self.write, self.count = Signal(index), Signal(index + 1)
        self.left = Signal(index + 1)  # records from the trigger's on that are still to come
        self.trigger_time, self.end_time = Signal(time_width), Signal(time_width)
        #: Words of a record, and which word of which record is shown.
        self.words = 1 + -(-width // _WORD)
        self.shown = Signal(width + stamp_width)
        self.place, self.word = Signal(index + 1), Signal(range(self.words))

    # Samples move through `sample` and `past`; the comparisons of a sample are registers that are
    # valid while it is in `past`, from which it is stored. `count` stops at `depth`, a power of
    # two: its top bit says that the ring is full, so that the oldest record lies at `write`.
    def elaborate(self, platform):
        m = Module()
        m.submodules.ram = self.ram
        self._compare(m)
        csr, running = self.csr, self.running
        control = fields(csr, "control")
        fires, stores, stamp = Signal(), Signal(), self.now[: self.stamp_width]
        m.d.comb += [
            fires.eq(running & ~self.triggered & self.hit),
            stores.eq(running & (self.begins | self.changed | (stamp == 0) | fires)),
        ]
        m.d.sync += self.begins.eq(0)
        with m.If(running):
            m.d.sync += self.end_time.eq(self.now)
        with m.If(fires):
            m.d.sync += [self.triggered.eq(1), self.trigger_time.eq(self.now)]
        with m.If(stores):
            m.d.sync += [
                self.write.eq(self.write + 1),
                self.count.eq(Mux(self.count[-1], self.count, self.count + 1)),
            ]
            with m.If(fires | self.triggered):
                m.d.sync += self.left.eq(self.left - 1)
                with m.If(self.left == 1):
                    m.d.sync += running.eq(0)
        with m.If(control.stop):
            m.d.sync += running.eq(0)
        with m.If(control.arm):
            m.d.sync += [
                running.eq(1),
                self.begins.eq(1),
                self.triggered.eq(0),
                self.write.eq(0),
                self.count.eq(0),
                self.left.eq(self.depth - csr.before),
            ]
        port = self.ram.write_port()
        m.d.comb += [port.addr.eq(self.write), port.data.eq(Cat(self.past, stamp))]
        m.d.comb += port.en.eq(stores)
        self._show(m)
        return m

    def _compare(self, m):
        """What is known of a sample when it is in ``past``."""
        value, mask, edge = (self._words(name) for name in ("value", "mask", "edge"))
        moved = self.sample ^ self.past
        m.d.sync += [
            self.now.eq(self.now + 1),
            self.sample.eq(self.data),
            self.past.eq(self.sample),
            self.changed.eq(moved.any()),
            self.hit.eq(
                ~((self.sample ^ value) & mask).any() & (~edge.any() | (moved & edge).any())
            ),
        ]  # fmt: skip

    def _words(self, name):
        """The registers of this name, of all words of a sample."""
        count = -(-self.width // _WORD)
        return Cat(getattr(self.csr, f"{name}_{k}") for k in range(count))

    def _show(self, m):
        """The registers that are read."""
        csr, port, words = self.csr, self.read_port, self.words
        names = [f"window_{k}" for k in range(WINDOW)]
        reads, oldest = Signal(), Mux(self.count[-1], self.write, 0)
        m.d.comb += [
            reads.eq(Cat(getattr(csr, f"{name}_read") for name in names).any()),
            port.addr.eq(self.place + oldest),
        ]
        with m.If(fields(csr, "control").rewind):
            m.d.sync += [self.place.eq(0), self.word.eq(0)]
        with m.Elif(reads):
            m.d.sync += self.word.eq(self.word + 1)
            with m.If(self.word == words - 1):
                m.d.sync += [self.word.eq(0), self.place.eq(self.place + 1)]
        shown, word = self.shown, Signal(_WORD)
        m.d.sync += shown.eq(port.data)
        sample = shown[: self.width]
        parts = [shown[self.width :], *(sample[k : k + _WORD] for k in range(0, self.width, _WORD))]
        m.d.comb += [
            word.eq(Array(parts)[self.word]),
            *(getattr(csr, name).eq(word) for name in names),
            csr.position.eq(self.place),
            csr.state.eq(Cat(self.running, self.triggered, ~self.running & (self.count != 0))),
            csr.records.eq(self.count),
            csr.trigger_time.eq(self.trigger_time),
            csr.end_time.eq(self.end_time),
        ]
