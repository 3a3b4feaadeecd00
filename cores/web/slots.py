"""Who has which job of the head finder, and what is reported to the sessions."""

from amaranth import Array, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..tcp.service import SESSION_WIDTH
from .finder import job_layout, result_layout

__all__ = ["Slots"]


class Slots(wiring.Component):
    """Gives out the slots of a :class:`~.finder.HeadFinder`: one for each lane, one for scans.

    Parameters
    ----------
    finder : HeadFinder
        Its slots are ``lanes`` and one more, the last, for jobs without ``parse``.
    lanes : int
    largest : int
        Bytes of a job at most.

    ====================  ===  ===================================================================
    member                dir  meaning
    ====================  ===  ===================================================================
    ``begin``             In   begin a job for ``session``, with ``parse``, ``whole`` and
                               ``new_job``, if a slot is ``free``; a second one in the cycle
                               after is not begun
    ``free``              Out  there is a slot for such a job
    ``new_job``           In   :func:`~.finder.job_layout`; ``slot``, ``parse``, ``whole`` are left
                               out
    ``sessions``          Out  array: the session of each lane
    ``parsed``            In   by lane, strobe: what was parsed has been taken from it
    ``job``               Out  stream to the finder
    ``result``            In   stream from it
    ``answered``          In   an answer waits, of session ``answered_session``, until ``reported``
    ``report``            Out  there is something to report, of ``report_session``; held until
                               ``reported``
    ``is_scan``           Out  it is the finder's: ``scan`` its result, ``scanned`` bytes; else the
                               answer
    ``reported``          In   strobe: it was
    ====================  ===  ===================================================================

    A lane's slot is free when the finder has given its result, and what the lane has parsed was
    taken; of a head whose end has not come nothing is parsed. A finder's result of a head that goes
    to its end is not reported, as the answer to it will be.

    Latency 1 cycle from ``begin`` to ``job``, 1 from a result or an answer to ``report``.
    Back-pressure: one report at a time; the finder's come first. Reset: all slots are free.
    """

    def __init__(self, finder, lanes, largest):
        self.lanes = lanes
        self.layout = job_layout(finder.slots, finder.segment_log2)
        results = result_layout(finder.slots)
        super().__init__(
            {
                "begin": In(1),
                "session": In(SESSION_WIDTH),
                "parse": In(1),
                "whole": In(1),
                "new_job": In(self.layout),
                "free": Out(1),
                "sessions": Out(SESSION_WIDTH).array(lanes),
                "parsed": In(1).array(lanes),
                "job": Out(stream.Signature(self.layout)),
                "result": In(stream.Signature(results)),
                "answered": In(1),
                "answered_session": In(SESSION_WIDTH),
                "report": Out(1),
                "report_session": Out(SESSION_WIDTH),
                "is_scan": Out(1),
                "scan": Out(results),
                "scanned": Out(range(largest + 1)),
                "reported": In(1),
            }
        )
        self.slot_layout = data.StructLayout(
            {
                "session": unsigned(SESSION_WIDTH),
                "length": range(largest + 1),
                "whole": 1,
                "read": 1,  # the finder has the job
                "parses": 1,  # the lane has the head
            }
        )
        self.slots = [Signal(self.slot_layout, name=f"slot{k}") for k in range(lanes + 1)]

    def elaborate(self, platform):
        m = Module()
        self._begin(m)
        self._results(m)
        for k in range(self.lanes):
            m.d.comb += self.sessions[k].eq(self.slots[k].session)
            with m.If(self.parsed[k]):
                m.d.sync += self.slots[k].parses.eq(0)
        return m

    def _begin(self, m):
        job, given = self.job, self.job.payload
        slot = Signal.like(given.slot)
        with m.If(~self.parse):
            m.d.comb += [slot.eq(self.lanes), self.free.eq(~self.slots[-1].read & ~job.valid)]
        with m.Else():
            for k in reversed(range(self.lanes)):
                with m.If(~self.slots[k].read & ~self.slots[k].parses):
                    m.d.comb += [slot.eq(k), self.free.eq(~job.valid)]
        with m.If(job.ready):
            m.d.sync += job.valid.eq(0)
        with m.If(self.begin & self.free):
            m.d.sync += [
                job.valid.eq(1),
                given.eq(self.new_job),
                given.slot.eq(slot),
                given.parse.eq(self.parse),
                given.whole.eq(self.whole),
            ]
            for k, kept in enumerate(self.slots):
                with m.If(slot == k):
                    m.d.sync += [
                        kept.session.eq(self.session),
                        kept.length.eq(self.new_job.length),
                        kept.whole.eq(self.whole),
                        kept.read.eq(1),
                        kept.parses.eq(self.parse),
                    ]

    def _results(self, m):
        result, found = self.result, self.result.payload
        kept = Array(self.slots)[found.slot]
        goes_on, takes = Signal(), Signal()
        m.d.comb += [
            goes_on.eq(found.parse & (found.found | kept.whole)),
            result.ready.eq(goes_on | ~self.report),
            takes.eq(result.valid & result.ready),
        ]
        for k, slot in enumerate(self.slots):
            with m.If(takes & (found.slot == k)):
                m.d.sync += slot.read.eq(0)
                with m.If(~goes_on):
                    m.d.sync += slot.parses.eq(0)
        with m.If(self.reported):
            m.d.sync += self.report.eq(0)
        with m.If(~self.report):
            with m.If(takes & ~goes_on):
                m.d.sync += [
                    self.report.eq(1),
                    self.is_scan.eq(1),
                    self.report_session.eq(kept.session),
                    self.scan.eq(found),
                    self.scanned.eq(kept.length),
                ]
            with m.Elif(self.answered):
                m.d.sync += [
                    self.report.eq(1),
                    self.is_scan.eq(0),
                    self.report_session.eq(self.answered_session),
                ]
