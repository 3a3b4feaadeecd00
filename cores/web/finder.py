"""The head finder: reads request heads from receive rings, each byte once, and finds their ends."""

from amaranth import C, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import StreamFifo
from ..memory import ADDR_WIDTH, BEATS_WIDTH, MemorySignature
from ..stream import check_data_width
from .scan import EndScan, ScanState

__all__ = ["End", "HeadFinder", "head_beat_layout", "job_layout", "result_layout"]


class End(enum.Enum, shape=2):
    """What follows the last byte of a beat, or a byte, of a head."""

    MORE = 0  # more bytes of the head
    HEAD = 1  # nothing: the head is complete, or this byte breaks it
    CUT = 2  # bytes that have not come yet: the head is to be forgotten
    LONG = 3  # bytes that are too many: the head is longer than allowed


def head_beat_layout(width):
    """A beat of a head: bytes ``skip`` to ``stop - 1`` of ``data`` count; at least one does."""
    n = width // 8
    return data.StructLayout(
        {
            "data": unsigned(width),
            "skip": range(n),
            "stop": range(n + 1),
            "end": End,
        }
    )


def job_layout(slots, segment_log2):
    """Layout of a job of :class:`HeadFinder`."""
    return data.StructLayout(
        {
            "slot": range(max(2, slots)),
            "base": unsigned(ADDR_WIDTH - segment_log2),
            "position": unsigned(segment_log2),
            "length": unsigned(segment_log2 + 1),
            "state": ScanState,
            "parse": unsigned(1),
            "whole": unsigned(1),
        }
    )


def result_layout(slots):
    """Layout of a result of :class:`HeadFinder`."""
    return data.StructLayout(
        {
            "slot": range(max(2, slots)),
            "found": unsigned(1),
            "parse": unsigned(1),
            "state": ScanState,
        }
    )


class HeadFinder(wiring.Component):
    """Reads the bytes of jobs from receive rings and looks for the end of a request head in each.

    Parameters
    ----------
    width : int
        Data path in bits, n bytes.
    segment_log2 : int
        log2 of the bytes of a receive ring.
    slots : int
        Jobs that may be under way at a time, 1 or more; each has a slot.
    burst : int
        Beats read by one command at most, 1 to 64.

    ==========  =========  ========================================================================
    member      dir        meaning
    ==========  =========  ========================================================================
    ``job``     In         stream of :func:`job_layout`: look at ``length`` bytes, 1 or more and not
                           more than the ring's, from ring position ``position`` on; ``base`` is the
                           ring's address without its low bits, ``state`` the finder's result for
                           the bytes before. ``parse``: the bytes are a head from its start on and
                           go to ``beat``; ``whole``: they are as many as a head may have
    ``room``    In, slots  the slot's consumer has room for ``burst`` beats; looked at only while no
                           beat of the slot is under way
    ``beat``    Out        :func:`head_beat_layout` and ``slot``: the bytes of jobs with ``parse``,
                           up to the head's end; while ``beat_valid``, which no one can hold back
    ``result``  Out        stream of :func:`result_layout`: the job is over. ``found``: the bytes
                           have the end; ``state`` goes with the next job if they have not
    ``mem``     Out        memory port that reads, tag width 0
    ==========  =========  ========================================================================

    A slot has at most one job from ``job`` to ``result``. Each byte of a job up to the head's end
    is looked at exactly once, in order; bytes behind it are read up to the end of the burst at
    most. A job of which ``burst`` beats are not enough goes on with further bursts, in turn with
    those of other slots; a burst ends at the ring's end.

    The last beat of a job on ``beat`` has ``end``: ``HEAD`` with the head's end; else ``LONG`` if
    ``whole`` and ``CUT`` if not. It is there when the result is offered,
    or before.

    Throughput: a beat a cycle, bursts of up to ``slots`` jobs outstanding. Latency: 6 cycles and
    the memory's from an idle finder. Back-pressure: while ``result`` waits no beat is taken from
    ``mem``; so where others share the memory, results must have a place each. Reset: forgets all
    jobs; the memory must be reset with it. Bad input: a ``length`` of 0 or beyond the ring, or a
    second job of a slot: results are undefined, but nothing is read outside the ring.
    """

    def __init__(self, width=64, segment_log2=15, slots=4, burst=16):
        self.width = check_data_width(width)
        if not isinstance(slots, int) or not 1 <= slots <= 16:
            raise ValueError(f"Number of slots must be 1 to 16, not {slots!r}")
        if not isinstance(burst, int) or not 1 <= burst <= 1 << BEATS_WIDTH:
            raise ValueError(f"Beats of a burst must be 1 to {1 << BEATS_WIDTH}, not {burst!r}")
        if not isinstance(segment_log2, int) or not 1 << segment_log2 >= width // 8 * 2:
            raise ValueError(f"A ring must have at least two beats, not 2**{segment_log2!r} bytes")
        self.segment_log2, self.slots, self.burst = segment_log2, slots, burst
        self.job_layout, self.result_layout = job_layout(slots, segment_log2), result_layout(slots)
        self.beat_layout = data.StructLayout(
            {**head_beat_layout(width).members, "slot": range(max(2, slots))}
        )
        super().__init__(
            {
                "job": In(stream.Signature(self.job_layout)),
                "room": In(slots),
                "beat_valid": Out(1),
                "beat": Out(self.beat_layout),
                "result": Out(stream.Signature(self.result_layout)),
                "mem": Out(MemorySignature(width, 0)),
            }
        )
        # No ports: for proofs.
        self.burst_layout = data.StructLayout(
            {"job": self.job_layout, "count": range(self.burst * width // 8 + 1)}
        )
        self.pending = StreamFifo(self.job_layout, slots + 1, registered=False)
        self.flight = StreamFifo(self.burst_layout, max(2, slots), registered=False)
        self.scan = EndScan(width)
        self.begun = Signal()  # a beat of the burst in front was taken
        self.left = Signal(range(self.burst * width // 8 + 1))  # its bytes that are not taken
        self.taken = Signal(
            data.StructLayout(
                {
                    "job": self.job_layout,  # with what is left after this burst
                    "data": width,
                    "skip": range(width // 8),
                    "stop": range(width // 8 + 1),
                    "first": 1,
                    "last": 1,
                }
            )
        )
        self.waits = Signal()  # `taken` is to be scanned
        self.state, self.done = Signal(ScanState), Signal()  # of the burst that is scanned

    # Jobs wait in `pending`, first those from `job`, later what is left of them; one whose consumer
    # has no room goes to the end of the queue. `flight` has the bursts that are outstanding: beats
    # are of the one in front. Two stages: take a beat and find which of its bytes count; scan them.
    def elaborate(self, platform):
        m = Module()
        m.submodules.pending, m.submodules.flight = self.pending, self.flight
        m.submodules.scan = self.scan
        self.step, self.again = Signal(), Signal()
        m.d.comb += self.step.eq(~self.result.valid | self.result.ready)
        self._issue(m)
        self._take(m)
        self._scan(m)
        return m

    def _issue(self, m):
        n, log2 = self.width // 8, self.segment_log2
        shift = (n - 1).bit_length()
        pending, flight, cmd, job = self.pending, self.flight, self.mem.cmd, self.pending.o.payload
        # In all but the ring's last span of a burst's bytes there is room for a burst.
        span = min(log2, (self.burst * n - 1).bit_length())
        to_ring, most, fits = (Signal(span + 1, name=s) for s in ("to_ring", "most", "fits"))
        count, beats, last_span = Signal(span + 1), Signal(span + 1), Signal()
        more = job.length[span + 1 :].any() | (job.length[: span + 1] > fits)
        m.d.comb += [
            last_span.eq(job.position[span:] == (1 << (log2 - span)) - 1),
            to_ring.eq((1 << span) - job.position[:span]),
            most.eq(self.burst * n - job.position[:shift]),
            fits.eq(Mux(last_span & (to_ring < most), to_ring, most)),
            count.eq(Mux(more, fits, job.length)),
            beats.eq((job.position[:shift] + count - 1) >> shift),
        ]
        looks, fit, rotates = Signal(), Signal(), Signal()
        m.d.comb += [
            looks.eq(pending.o.valid & flight.i.ready & (~cmd.valid | cmd.ready)),
            fit.eq(~job.parse | self.room.bit_select(job.slot, 1)),
            rotates.eq(looks & ~fit & ~self.again),
            pending.o.ready.eq(rotates | (looks & fit)),
            flight.i.valid.eq(looks & fit),
            flight.i.payload.job.eq(job),
            flight.i.payload.count.eq(count),
            pending.i.valid.eq(self.again | rotates | self.job.valid),
            pending.i.payload.eq(self.job.payload),
            self.job.ready.eq(pending.i.ready & ~self.again & ~rotates),
        ]
        with m.If(self.again):
            m.d.comb += pending.i.payload.eq(self.taken.job)
            m.d.comb += pending.i.payload.state.eq(self.scan.after)
        with m.Elif(rotates):
            m.d.comb += pending.i.payload.eq(job)
        with m.If(cmd.ready):
            m.d.sync += cmd.valid.eq(0)
        with m.If(looks & fit):
            m.d.sync += [
                cmd.valid.eq(1),
                cmd.payload.addr.eq(Cat(C(0, shift), job.position[shift:], job.base)),
                cmd.payload.beats.eq(beats),
            ]

    def _take(self, m):
        """Take a beat: which of its bytes count."""
        n = self.width // 8
        shift = (n - 1).bit_length()
        flight, rdata, taken, burst = self.flight, self.mem.rdata, self.taken, self.flight.o.payload
        takes, skip = Signal(), Signal(shift)
        left = Signal(len(self.left))
        m.d.comb += [
            rdata.ready.eq(self.step & flight.o.valid),
            takes.eq(rdata.valid & rdata.ready),
            skip.eq(Mux(self.begun, 0, burst.job.position[:shift])),
            left.eq(Mux(self.begun, self.left, burst.count)),
            flight.o.ready.eq(takes & rdata.payload.last),
            self.mem.wdone.ready.eq(1),
        ]
        with m.If(self.step):
            m.d.sync += self.waits.eq(takes)
        with m.If(takes):
            m.d.sync += [
                self.begun.eq(~rdata.payload.last),
                self.left.eq(left - (n - skip)),
                taken.job.eq(burst.job),
                taken.job.position.eq(burst.job.position + burst.count),
                taken.job.length.eq(burst.job.length - burst.count),
                taken.data.eq(rdata.payload.data),
                taken.skip.eq(skip),
                taken.stop.eq(Mux(left >= n - skip, n, skip + left)),
                taken.first.eq(~self.begun),
                taken.last.eq(rdata.payload.last),
            ]

    def _scan(self, m):
        taken, scan, beat, result = self.taken, self.scan, self.beat, self.result
        live, over, ends = Signal(), Signal(), Signal()
        m.d.comb += [
            scan.data.eq(taken.data),
            scan.skip.eq(taken.skip),
            scan.stop.eq(taken.stop),
            scan.state.eq(Mux(taken.first, taken.job.state, self.state)),
            live.eq(taken.first | ~self.done),
            over.eq(~live | scan.found),
            ends.eq(over | (taken.job.length == 0)),
            self.again.eq(self.waits & self.step & taken.last & ~ends),
        ]
        m.d.sync += self.beat_valid.eq(0)
        with m.If(self.step):
            m.d.sync += result.valid.eq(self.waits & taken.last & ends)
        with m.If(self.waits & self.step):
            m.d.sync += [
                self.state.eq(scan.after),
                self.done.eq(over),
                result.payload.slot.eq(taken.job.slot),
                result.payload.parse.eq(taken.job.parse),
                result.payload.found.eq(over),
                result.payload.state.eq(scan.after),
                self.beat_valid.eq(live & taken.job.parse),
                beat.data.eq(taken.data),
                beat.skip.eq(taken.skip),
                beat.stop.eq(scan.end),
                beat.slot.eq(taken.job.slot),
                beat.end.eq(End.MORE),
            ]
            with m.If(scan.found):
                m.d.sync += beat.end.eq(End.HEAD)
            with m.Elif(taken.last & (taken.job.length == 0)):
                m.d.sync += beat.end.eq(Mux(taken.job.whole, End.LONG, End.CUT))
