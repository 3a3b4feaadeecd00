"""The session table: from (remote address, remote port, local port) to a session number."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS
from .lookup import LookupSignature
from .number_lists import NumberList, placed
from .speck import ROUNDS, Speck

__all__ = ["SessionTable"]

#: Sessions from which on the chains are in block RAM: else Yosys tries LUT RAM for a Xilinx part,
#: and fails at its depth.
LARGE = 512
#: Rounds of the cipher after which its state is good enough to choose a bucket.
BUCKET_ROUNDS = 5


class SessionTable(wiring.Component):
    """Hash table with chains in block RAM, and the stock of free session numbers.

    Twice as many buckets as sessions, chained through a RAM of next-pointers: no session is
    refused while a number is free. The bucket comes from a keyed cipher, so a peer cannot aim at
    one chain. The same cipher, run to its end, gives the initial sequence number (RFC 6528).

    ================  ===  ====================================================================
    ``lookup``        In   :class:`~trebuchet.cores.tcp.lookup.LookupSignature`; ``want_hash`` is
                           ignored: every lookup gives the hash
    ``key``           In   128-bit secret
    ``none``          Out  no number is free
    ``reap``          In   strobe: remove ``reap_session`` and make its number free
    ``in_use``        Out  numbers not free
    ``freed``         Out  strobe: a number has become free
    ================  ===  ====================================================================

    Latency ``lookup.start`` to ``done``: 9 cycles and 3 for each session in the chain;
    ``hash_valid`` 28 cycles after ``start``. ``reap`` is taken at any time; it takes effect between
    lookups, within about 5 cycles and 3 per session in the chain. Reset: empty, after a cycle per
    bucket.
    """

    def __init__(self, config):
        self.config = config
        s = config.session_bits
        super().__init__(
            {
                "lookup": In(LookupSignature(s)),
                "key": In(128),
                "none": Out(1),
                "reap": In(1),
                "reap_session": In(s),
                "in_use": Out(range(config.sessions + 1)),
                "freed": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, look = self.config, self.lookup
        n, s = config.sessions, config.session_bits
        link = data.StructLayout({"valid": 1, "session": s})
        entry = data.StructLayout({"tuple": 64, "bucket": s + 1})
        block = {"ram_style": "block"} if n >= LARGE else {}
        # No head is used that was read in the cycle in which it was written.
        attrs = placed(2 * n * link.size, config.lut_ram)
        m.submodules.heads = heads = Memory(shape=link, depth=2 * n, init=[], attrs=attrs)
        m.submodules.nexts = nexts = Memory(shape=link, depth=n, init=[], attrs=block)
        m.submodules.entries = entries = Memory(shape=entry, depth=n, init=[], attrs=NO_COLLISIONS)
        m.submodules.speck = speck = Speck()
        m.submodules.reaped = reaped = NumberList(width=s, depth=n, lut_ram=config.lut_ram)
        m.submodules.free = free = NumberList(width=s, depth=n, lut_ram=config.lut_ram)
        head_r, head_w = heads.read_port(), heads.write_port()
        next_r, next_w = nexts.read_port(), nexts.write_port()
        entry_r, entry_w = entries.read_port(), entries.write_port()

        bucket = Signal(s + 1)
        head, at = Signal(link), Signal(link)  # head of the chain; where the walk is
        step = Signal(link)  # what follows `at`
        previous = Signal(s)
        unlink = Signal()  # the walk looks for `victim`, not for the tuple
        victim = Signal(s)
        alike = Signal(8)  # bytes of the entry that are those of the tuple
        same = Signal()
        m.d.comb += [
            speck.block.eq(look.tuple),
            speck.key.eq(self.key),
            look.hash.eq(speck.result[:32]),
            look.hash_valid.eq(speck.rounds == ROUNDS),
            reaped.w_data.eq(self.reap_session),
            reaped.w_en.eq(self.reap),
            look.free_valid.eq(free.r_rdy),
            self.none.eq(~free.r_rdy),
            look.free_session.eq(free.r_data),
            head_r.addr.eq(bucket),
            head_w.addr.eq(bucket),
            next_r.addr.eq(at.session),
            entry_r.addr.eq(at.session),
            entry_w.addr.eq(look.free_session),
            entry_w.data.tuple.eq(look.tuple),
            entry_w.data.bucket.eq(bucket),
            look.session.eq(at.session),
            same.eq(Mux(unlink, at.session == victim, alike.all())),
        ]

        with m.FSM(init="CLEAR") as fsm:
            with m.State("CLEAR"):  # twice: a bucket a cycle, a free number every other
                m.d.comb += head_w.en.eq(1)
                m.d.sync += bucket.eq(bucket + 1)
                m.d.comb += [free.w_en.eq(~bucket[0]), free.w_data.eq(bucket >> 1)]
                with m.If(bucket == 2 * n - 1):
                    m.next = "IDLE"
            with m.State("IDLE"):
                m.d.comb += look.ready.eq(1)
                m.d.sync += at.session.eq(reaped.r_data)
                with m.If(look.start):
                    m.d.comb += speck.start.eq(1)
                    m.d.sync += unlink.eq(0)
                    m.next = "HASH"
                with m.Elif(reaped.r_rdy):
                    m.d.comb += reaped.r_en.eq(1)
                    m.d.sync += [victim.eq(reaped.r_data), unlink.eq(1)]
                    m.next = "VICTIM"
            with m.State("VICTIM"):
                m.next = "BUCKET"
            with m.State("BUCKET"):
                m.d.sync += bucket.eq(entry_r.data.bucket)
                m.next = "HEAD"
            with m.State("HASH"):
                m.d.sync += bucket.eq(speck.result[:32] ^ speck.result[32:])
                with m.If(speck.rounds == BUCKET_ROUNDS):
                    m.next = "HEAD"
            with m.State("HEAD"):
                m.next = "FIRST"
            with m.State("FIRST"):
                m.d.sync += [head.eq(head_r.data), at.eq(head_r.data), previous.eq(victim)]
                m.next = "READ"
            with m.State("READ"):
                m.next = "COMPARE"
                with m.If(~at.valid):
                    m.next = "DONE"
            with m.State("COMPARE"):
                m.d.sync += step.eq(next_r.data)
                for k, byte in enumerate(alike):  # block RAM is late in its cycle
                    mine, its = (t.word_select(k, 8) for t in (look.tuple, entry_r.data.tuple))
                    m.d.sync += byte.eq(mine == its)
                m.next = "NEXT"
            with m.State("NEXT"):
                with m.If(same):
                    m.next = "DONE"
                with m.Else():
                    m.d.sync += [at.eq(step), previous.eq(at.session)]
                    m.next = "READ"
            with m.State("DONE"):
                m.d.comb += [look.done.eq(~unlink), look.found.eq(at.valid)]
                with m.If(unlink):
                    m.d.comb += [free.w_en.eq(1), free.w_data.eq(victim), self.freed.eq(1)]
                    first = previous == victim  # nothing came before it in the chain
                    m.d.comb += [head_w.data.eq(step), head_w.en.eq(first)]
                    m.d.comb += [next_w.addr.eq(previous), next_w.data.eq(step)]
                    m.d.comb += next_w.en.eq(~first)
                    m.next = "IDLE"
                with m.Elif(look.finish):
                    with m.If(look.insert):
                        m.d.comb += [free.r_en.eq(1), entry_w.en.eq(1)]
                        m.d.comb += [head_w.en.eq(1), head_w.data.valid.eq(1)]
                        m.d.comb += head_w.data.session.eq(look.free_session)
                        m.d.comb += [next_w.en.eq(1), next_w.addr.eq(look.free_session)]
                        m.d.comb += next_w.data.eq(head)
                    m.next = "IDLE"
        self.fsm = fsm  # for the invariants of its proof, as what follows
        self.walk = bucket, head, at, step, same
        self.removes = unlink, victim, previous
        taken = look.finish & look.insert
        m.d.sync += self.in_use.eq(self.in_use + taken - self.freed)
        return m
