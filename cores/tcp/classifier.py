"""How a segment relates to its session: the acceptability tests of RFC 9293, 3.4 and 3.10.7.4."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .record import Phase, opening, record_layout
from .segment import rx_segment_layout

__all__ = ["DEPTH", "KINDS", "SegmentClassifier", "judgement_layout"]

#: Cycles from stable inputs to a right judgement.
DEPTH = 4

#: What a segment can be to its session: RFC 9293, 3.10.7.3 and 3.10.7.4 in their order, with RFC
#: 5961. Others change nothing.
KINDS = (
    "closed",  # there is nobody who could take it
    "opens",  # for SYN-SENT
    "lingers",  # for TIME-WAIT
    "reset",  # a RST at RCV.NXT
    "resyn",  # the SYN of the handshake that is under way, once more
    "challenged",  # it could be anybody's: a challenge ACK
    "wild",  # that for the sake of its ACK
    "refused",  # acknowledges something else than our SYN
    "outside",  # not acceptable
    "answered",  # that, and told where we are
    "beyond",  # not acceptable, since the window is closed; but what it acknowledges counts
    "takes",  # acceptable
)


def judgement_layout(config):
    """What there is to know of a segment."""
    fields = {name: 1 for name in KINDS} | {
        "text": 1,  # it has bytes or a FIN
        # The segment's text.
        "exact": 1,  # SEG.SEQ = RCV.NXT
        "previous": 1,  # SEG.SEQ = RCV.NXT - 1
        "ahead": 1,  # SEG.SEQ > RCV.NXT
        "in_window": 1,  # RCV.NXT <= SEG.SEQ < right edge
        "valid": 1,  # acceptable: it starts or ends in the window, or starts at its right edge
        "skip": 16,  # bytes at the front that we have already
        "take": 16,  # new bytes after them that fit the window
        "whole": 1,  # nothing behind them is cut off
        "next": 32,  # RCV.NXT after `take` bytes
        "keep": 1,  # there is text, ahead and whole in the window, and no FIN before it
        "end": config.place_bits,  # where it ends
        # Its acknowledgement.
        "ack_new": 1,  # SND.UNA < SEG.ACK <= SND.MAX
        "ack_same": 1,  # SEG.ACK = SND.UNA
        "ack_bad": 1,  # of unsent data, or more than the largest window ago
        "ack_all": 1,  # SEG.ACK = end of all that is queued
        "ack_past_nxt": 1,  # SEG.ACK > SND.NXT
        "ack_recovered": 1,  # SEG.ACK >= recover
        "ack_timed": 1,  # covers the segment being timed
        "duplicate": 1,  # it is a duplicate one (RFC 5681), of which three are counted
        "third": 1,  # the third, and something is to be retransmitted (RFC 6582)
        "acked": config.place_bits,  # SEG.ACK - SND.UNA
        "out": config.place_bits,  # SND.MAX - SND.UNA
    }
    return data.StructLayout(fields)


class SegmentClassifier(wiring.Component):
    """Compares a segment with a record; every number modulo 2**32, by signs of differences.

    =============  ===  ========================================================
    ``segment``    In   rx_segment_layout
    ``record``     In   session record
    ``judgement``  Out  judgement_layout, :data:`DEPTH` cycles after its inputs are stable
    =============  ===  ========================================================

    No control: a pipeline of registers that always runs.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "segment": In(rx_segment_layout(config)),
                "record": In(record_layout(config)),
                "judgement": Out(judgement_layout(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._text(m)
        self._ahead(m)
        self._ack(m)
        self._kind(m)
        return m

    def _text(self, m):
        seg, r, j = self.segment, self.record, self.judgement
        n = self.config.window_bits
        off, room = Signal(signed(32)), Signal(n)
        width = (r.rcv_edge - r.rcv_nxt)[: n + 1]  # -1: a FIN came right behind the edge
        exact, near = Signal(), Signal()  # near: at most 65,535 bytes behind
        left = Signal(signed(18))  # bytes of text from RCV.NXT on
        room_2, take, whole = Signal(n), Signal(16), Signal()
        starts, ends, edge = Signal(), Signal(), Signal()
        self.shut = shut = Signal()  # it begins beyond a window that is closed
        behind = off[31]
        m.d.comb += near.eq(off[16:31].all())
        m.d.sync += [
            # 1
            off.eq(seg.seq - r.rcv_nxt),
            room.eq(Mux(width[n], 0, width[:n])),
            # 2
            exact.eq(off == 0),
            j.ahead.eq(~behind & (off != 0)),
            j.previous.eq(off == -1),
            starts.eq((off == 0) | (~behind & (off[n:31] == 0) & (off[:n] < room))),
            # A peer that has filled the window acknowledges from there (as Linux takes it).
            edge.eq(~behind & (off[n:31] == 0) & (off[:n] == room)),
            shut.eq(~behind & (off != 0) & (off[n:31] == 0) & (room == 0)),
            ends.eq(behind & near),
            left.eq(Mux(behind, seg.length + off[:18].as_signed(), seg.length)),
            room_2.eq(room),
            # 3
            j.exact.eq(exact),
            j.in_window.eq(starts),
            j.valid.eq(starts | edge | (ends & ((left > 0) | ((left == 0) & seg.flags.fin)))),
            take.eq(Mux(left > room_2, room_2, left)),
            whole.eq(~(left > room_2)),
            # 4
            j.skip.eq(Mux(behind, -off, 0)),
            j.take.eq(Mux(r.fin_seen | j.ahead, 0, take)),
            j.whole.eq(whole),
            j.next.eq(r.rcv_nxt + Mux(r.fin_seen | j.ahead, 0, take)),
        ]

    def _ahead(self, m):
        """Of text beyond a gap: whether it may be kept."""
        seg, r, j = self.segment, self.record, self.judgement
        bits = self.config.place_bits
        end, off, room = (Signal(bits, name=n) for n in ("end", "off_ahead", "room_ahead"))
        space = Signal(signed(bits))  # between the segment's begin and the right edge
        whole = Signal()
        m.d.sync += [
            # 1
            end.eq(seg.seq + seg.length),
            off.eq(seg.seq - r.rcv_nxt),
            room.eq(r.rcv_edge - r.rcv_nxt),
            # 2
            j.end.eq(end),
            space.eq(room - off),
            # 3
            whole.eq(seg.length <= space),
            # 4
            j.keep.eq(j.in_window & j.ahead & whole & (seg.length != 0) & ~r.fin_seen),
        ]

    def _ack(self, m):
        seg, r, j = self.segment, self.record, self.judgement
        n = self.config.place_bits
        gained, out = Signal(signed(32)), Signal(n)
        to_nxt = Signal(signed(n))  # SND.NXT is at most a window on
        to_recover, to_timed = Signal(signed(32)), Signal(signed(32))
        back = gained[31]
        m.d.sync += [
            # 1
            gained.eq(seg.ack - r.snd_una),
            out.eq((r.snd_max - r.snd_una)[:n]),
            to_nxt.eq(seg.ack - r.snd_nxt),
            to_recover.eq(seg.ack - r.recover),
            to_timed.eq(seg.ack - r.rtt_seq),
            # 2
            j.ack_new.eq(~back & (gained != 0) & (gained[n:31] == 0) & (gained[:n] <= out)),
            j.ack_same.eq(gained == 0),
            j.ack_bad.eq(
                Mux(back, ~gained[n - 2 : 31].all(), (gained[n:31] != 0) | (gained[:n] > out))
            ),
            j.ack_all.eq(seg.ack == r.snd_end),
            j.ack_past_nxt.eq(~to_nxt[-1] & (to_nxt != 0)),
            j.ack_recovered.eq(~to_recover[31]),
            j.ack_timed.eq(~to_timed[31]),
            j.acked.eq(gained),
            j.out.eq(out),
        ]

    def _kind(self, m):
        """What it is to the session, from what the stages before have found out."""
        seg, r, j = self.segment, self.record, self.judgement
        f, live = seg.flags, Signal()
        text = (seg.length != 0) | f.fin
        # 2 and 3
        quiet, plain, half, same = (Signal(name=n) for n in ("quiet", "plain", "half", "same"))
        repeats = same & j.ack_same & (j.out != 0)
        m.d.sync += [
            live.eq((r.phase == Phase.OPEN) | (r.phase == Phase.SYN_RCVD)),
            half.eq(r.phase == Phase.SYN_RCVD),
            plain.eq(~f.rst & ~f.syn),
            j.text.eq(text),
            quiet.eq(~text & ~j.previous),
            same.eq((seg.window == r.snd_wnd) & ~text),
        ]
        resyn = half & j.previous & ~f.ack
        beyond = self.shut & f.ack & ~j.ack_bad & ~half
        outside, taken = live & plain & ~j.valid, live & plain & j.valid & f.ack
        wild = j.ack_bad & ~half  # in SYN-RECEIVED it is refused
        near = f.rst & ~j.exact & j.in_window
        m.d.sync += [
            # 4
            j.closed.eq(r.phase == Phase.CLOSED),
            j.opens.eq(opening(self.config, r)),
            j.lingers.eq(r.phase == Phase.TIME_WAIT),
            j.reset.eq(live & f.rst & j.exact),
            j.resyn.eq(live & ~f.rst & f.syn & resyn),
            j.challenged.eq(
                (live & (near | (~f.rst & f.syn & ~resyn)))
                | (outside & quiet & ~beyond)
                | (taken & wild)
            ),
            j.wild.eq(taken & wild),
            j.refused.eq(taken & half & ~j.ack_new),
            j.outside.eq(outside & ~(beyond & ~j.text)),
            j.answered.eq(outside & ~quiet),
            j.beyond.eq(outside & beyond),
            j.takes.eq(taken & Mux(half, j.ack_new, ~j.ack_bad)),
            j.duplicate.eq(repeats & (r.dup_acks != 3)),
            j.third.eq(repeats & (r.dup_acks == 2) & ~r.recovering & j.ack_recovered),
        ]
