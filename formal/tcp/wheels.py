"""Proof of ``cores/tcp/wheels.py``: a session is in one place, and is visited at its tick.

Four sessions, eight near and far slots each of which may hold all of them. The harness knows from
requests and visits alone where a session must be: nowhere, on a wheel with the tick that it is due,
in hand, or shown to the visitor. Visits come of sessions on a wheel, at the tick that they are due,
once; time does not pass while one is left; a request moves a session only to an earlier tick.

The invariants say that memory and heads are lists: what follows a session names it as the one
before (but in the slot whose tick has come, which is only emptied), the first one is the head's,
and no list has a loop: who follows was put in earlier.

The memory keeps writes in order and answers reads after any time; no read is asked for while a
write is under way.

Not proved: that what can happen does within so many cycles; other sizes and widths; a reset while
running.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal
from trebuchet.cores.tcp import wheels

from ..kit.inside import Inside
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

N = 4
NOWHERE, NEAR, FAR, HAND, SHOWN = range(5)
PLACE_KIND, NEAR_KIND, FAR_KIND = range(3)
STATES = ("CLEAR", "IDLE", "PEEK", "TAKE", "READ", "WAIT", "JUDGE", "UNLINK", "RELINK")
STATES += ("AIM", "SLOT", "HEAD", "LINK", "OTHER")
#: Where in a word a field is, and the strobe of its first byte.
FIELDS = {"next": (0, 2, 0), "last": (23, 1, 0), "prev": (24, 3, 3), "first": (47, 1, 3)}
FIELDS |= {"wake": (48, 4, 6)}


def _moves(stream):
    return stream.valid & stream.ready


class Words:
    """The memory: words as they are, and, in ``now``, with the write that is at the port."""

    def __init__(self, m, mem):
        cmd, wdata, rdata = mem.cmd, mem.wdata, mem.rdata
        free(m, cmd.ready, wdata.ready, rdata.valid, rdata.payload, mem.wdone.valid)
        stream_rules(m, cmd, Assert, "cmd")
        stream_rules(m, wdata, Assert, "wdata")
        stream_rules(m, rdata, Assume, "rdata")
        asked, at = Signal(), Signal(2)  # a write's command has gone, its data have not
        self.open, self.reading, self.read_at = Signal(5), Signal(), Signal(2)
        write, addr = cmd.valid & cmd.payload.write, cmd.payload.addr[3:5]
        here = Mux(write, addr, at)
        with m.If(_moves(cmd)):
            m.d.comb += Assert(cmd.payload.beats == 0)
            with m.If(cmd.payload.write):
                m.d.sync += [asked.eq(~_moves(wdata)), at.eq(addr)]
            with m.Else():
                m.d.comb += Assert((self.open == 0) & ~wdata.valid & ~self.reading)
                m.d.sync += [self.reading.eq(1), self.read_at.eq(addr)]
        with m.Elif(_moves(wdata)):
            m.d.sync += asked.eq(0)
        m.d.comb += [
            Assume(~wdata.ready | asked | (write & cmd.ready)),
            Assert(wdata.valid == (write | asked)),
            Assert(~(write & asked)),
            Assert(~wdata.valid | wdata.payload.last),
            Assume(~mem.wdone.valid | (self.open != 0)),
            Assume(~rdata.valid | self.reading),
            Assume(rdata.payload.last),
            Assert(mem.wdone.ready & rdata.ready),
        ]
        m.d.sync += self.open.eq(self.open + _moves(wdata) - mem.wdone.valid)
        with m.If(rdata.valid):
            m.d.sync += self.reading.eq(0)
        self.now = []
        for s in range(N):
            word = {}
            for name, (bit, width, strobe) in FIELDS.items():
                kept = Signal(width, name=f"{name}_{s}")
                found = Signal(width, name=f"{name}_{s}_now")
                mine = wdata.valid & (here == s) & wdata.payload.strb[strobe]
                value = wdata.payload.data[bit : bit + width]
                m.d.comb += found.eq(Mux(mine, value, kept))
                with m.If(_moves(wdata)):
                    m.d.sync += kept.eq(found)
                with m.If(rdata.valid & (self.read_at == s)):
                    m.d.comb += Assume(rdata.payload.data[bit : bit + width] == kept)
                word[name] = found
            self.now.append(word)


class WheelsProof(Elaboratable):
    """``course``: two sessions and a swift memory, which is how mutants are caught soonest."""

    def __init__(self, dut, course=False):
        self.dut, self.course = dut, course

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        self.inside = inside = Inside(m, dut)
        free(m, dut.tick, dut.place.valid, dut.place.payload, dut.visit.ready)
        stream_rules(m, dut.visit, Assert, "visit")
        self.words = Words(m, dut.mem)
        self.state = {name: inside.state(name) for name in STATES}
        self.where = [Signal(3, name=f"where_{s}") for s in range(N)]
        self.due = [Signal(4, name=f"due_{s}") for s in range(N)]
        heads = inside.parts["heads"]
        ports = [heads.read_port(domain="comb") for _ in range(8)]
        m.d.comb += [port.addr.eq(k) for k, port in enumerate(ports)]
        self.heads = [port.data for port in ports]
        self.newer = {(s, t): Signal(name=f"newer_{s}{t}") for s in range(N) for t in range(s)}
        self.now = Signal(4)
        m.d.comb += self.now.eq(dut.now)
        self._views(m)
        self._requests(m)
        self._changes(m)
        self._time(m)
        self._lists(m)
        self._steps(m)
        self._way(m)
        return m

    def _way(self, m):
        """One way to a visit of a session that has changed wheels, told to be found soon."""
        dut, words, mem, place = self.dut, self.words, self.dut.mem, self.dut.place
        steady, placed, changed, swift = Signal(init=1), Signal(), Signal(), Signal()
        m.d.comb += swift.eq(
            mem.cmd.ready
            & (mem.wdata.ready == mem.wdata.valid)
            & (mem.rdata.valid == words.reading)
        )
        if self.course:
            m.d.comb += Assume(swift & (~place.valid | ~place.payload.session[1]))
        first = (place.payload.session == 0) & (place.payload.wake == 4)
        m.d.sync += [
            placed.eq(placed | _moves(place)),
            changed.eq(changed | (self.where[0] == FAR)),
            steady.eq(
                steady
                & swift
                & dut.tick
                & (mem.wdone.valid == (words.open != 0))
                & (place.valid == ~placed)
                & first
            ),
        ]
        m.d.comb += Cover(steady & changed & dut.visit.valid)

    def _is_newer(self, s, t):
        return self.newer[s, t] if s > t else ~self.newer[t, s]

    def _views(self, m):
        """Of each session: what its word says when the operation under way is over; its slot."""
        dut, state, link = self.dut, self.state, self.dut.link
        self.queued = [(w == NEAR) | (w == FAR) for w in self.where]
        self.left = [Signal(4, name=f"left_{s}") for s in range(N)]
        self.distance = [Signal(3, name=f"distance_{s}") for s in range(N)]
        self.slot = [Signal(3, name=f"slot_{s}") for s in range(N)]
        self.word, self.comes = [], []
        for s in range(N):
            word, due = dict(self.words.now[s]), self.due[s]
            prev, first = Signal(3, name=f"prev_{s}_then"), Signal(name=f"first_{s}_then")
            m.d.comb += [prev.eq(word["prev"]), first.eq(word["first"])]
            with m.If(state["RELINK"] & ~link.last & (link.next == s)):
                m.d.comb += [prev.eq(link.prev), first.eq(link.first)]
            with m.If(state["OTHER"] & (dut.other == s)):
                m.d.comb += [prev.eq(dut.session), first.eq(0)]
            word["prev"], word["first"] = prev, first
            self.word.append(word)
            m.d.comb += [
                self.left[s].eq(due - self.now),
                self.distance[s].eq(due[1:] - self.now[1:]),
                self.slot[s].eq(Mux(self.where[s] == FAR, Cat(due[1:3], 1), due[:2])),
            ]
            self.comes.append((self.where[s] == NEAR) & (due == self.now))

    def _requests(self, m):
        """What is asked for, and that it is done."""
        place = self.dut.place
        asked = place.payload
        where, due = Array(self.where)[asked.session], Array(self.due)[asked.session]
        ahead, tick = Signal(4), Signal(4)
        goal, session, under_way = Signal(4), Signal(2), Signal()
        later = Signal(4)
        m.d.comb += [
            ahead.eq(asked.wake - self.now),
            tick.eq(Mux(ahead[-1] | (ahead == 0), self.now + 1, asked.wake)),
            later.eq(tick - due),
        ]
        with m.If(self.state["IDLE"]):
            m.d.sync += under_way.eq(0)
        with m.If(_moves(place)):
            m.d.comb += Assume((ahead != 7) & (asked.linked == (where != NOWHERE)))
            m.d.comb += Assert(self.state["IDLE"])
            m.d.sync += [session.eq(asked.session), under_way.eq(where != SHOWN)]
            m.d.sync += goal.eq(Mux((where != NOWHERE) & ~later[-1], due, tick))
            for s in range(N):
                with m.If((asked.session == s) & (where == NOWHERE)):
                    m.d.sync += [self.where[s].eq(HAND), self.due[s].eq(tick)]
        self.goal, self.goal_of, self.goal_on = goal, session, under_way
        with m.If(under_way & self.state["IDLE"]):
            m.d.comb += Assert(Array(self.queued)[session] & (Array(self.due)[session] == goal))

    def _changes(self, m):
        """What the operations do to the session in hand."""
        dut, state = self.dut, self.state
        for s in range(N):
            mine, where = dut.session == s, self.where[s]
            with m.If(state["UNLINK"] & (dut.link.first | dut.free) & mine):
                m.d.sync += [where.eq(HAND), self.due[s].eq(dut.wake)]
            with m.If(state["LINK"] & dut.free & mine):
                m.d.sync += where.eq(Mux(self.distance[s] <= 1, NEAR, FAR))
                for t in range(N):
                    if t != s:
                        m.d.sync += self.newer[max(s, t), min(s, t)].eq(s > t)
            with m.If(state["JUDGE"] & (dut.kind.as_value() == NEAR_KIND) & mine):
                m.d.comb += Assert((where == NEAR) & (self.due[s] == self.now))
                m.d.sync += where.eq(SHOWN)
            shown = dut.visit.valid & (dut.visit.payload == s)
            m.d.comb += Assert(~shown | (where == SHOWN))
            asked = dut.place.valid & dut.place.ready & (dut.place.payload.session == s)
            with m.If((where == SHOWN) & ~shown & ~asked & ~self._busy_with(s) & AnySeq(1)):
                m.d.sync += where.eq(NOWHERE)

    def _busy_with(self, s):
        """A request for a session that was shown is being looked at."""
        return ~self.state["IDLE"] & (self.dut.session == s)

    def _time(self, m):
        dut = self.dut
        total, before = Signal(24), Signal(24)
        m.d.comb += Assume(~(dut.tick & dut.ticks.all()))
        m.d.comb += Assert(total == (dut.now + dut.ticks)[:24])
        m.d.sync += [total.eq(total + dut.tick), before.eq(dut.now)]
        m.d.comb += Assert((dut.now == before) | (dut.now == (before + 1)[:24]))
        for s in range(N):
            left, distance, where = self.left[s], self.distance[s], self.where[s]
            with m.If(dut.taken):
                m.d.comb += Assert((where != HAND) & ~self.comes[s])
                m.d.comb += Assume((where != SHOWN) | (left == 0))
            with m.If(where == NEAR):
                m.d.comb += [Assert(distance <= 1), Assert(left <= 3)]
                m.d.comb += Assert((left != 0) | ~dut.near_done)
            with m.If(where == FAR):
                m.d.comb += [Assert((distance >= 1) & (distance <= 3)), Assert(~left[-1])]
                m.d.comb += Assert((distance != 1) | ~dut.far_done)
            with m.If(where == SHOWN):
                m.d.comb += Assert((left == 0) | (left == 15))
            with m.If(where == HAND):
                m.d.comb += Assert((left >= 1) & (left <= 6))
            m.d.comb += Assert(where <= SHOWN)
            m.d.comb += Assert(~self.state["CLEAR"] | (where == NOWHERE))

    def _lists(self, m):
        """Each slot's sessions are a list that begins at its head and ends."""
        everybody = range(N)
        for s in everybody:
            word, slot, queued = self.word[s], self.slot[s], self.queued[s]
            head = Array(self.heads)[slot]
            is_head = head.valid & (head.session == s)
            before = [
                self.queued[p] & ~self.word[p]["last"] & (self.word[p]["next"] == s)
                for p in everybody
            ]
            named = [b & (word["prev"] == p) & ~word["first"] for p, b in enumerate(before)]
            with m.If(queued | (self.where[s] == SHOWN)):
                m.d.comb += Assert(word["wake"] == self.due[s])
            with m.If(queued):
                m.d.comb += Assert((sum(before) + is_head)[:3] == 1)
                with m.If(~self.comes[s]):
                    m.d.comb += Assert(is_head == word["first"])
                    m.d.comb += Assert(Mux(is_head, word["prev"] == slot, Cat(named).any()))
            for t in everybody:
                if t == s:
                    m.d.comb += Assert(~before[s])
                    continue
                with m.If(queued & ~word["last"] & (word["next"] == t)):
                    same = self.queued[t] & (self.slot[t] == slot)
                    m.d.comb += Assert(same & self._is_newer(s, t))
                for u in everybody:
                    if len({s, t, u}) == 3:
                        chain = self._is_newer(s, t) & self._is_newer(t, u)
                        m.d.comb += Assert(~chain | self._is_newer(s, u))
        for k, head in enumerate(self.heads):
            with m.If(head.valid):
                h = head.session
                m.d.comb += Assert(Array(self.queued)[h] & (Array(self.slot)[h] == k))
                m.d.comb += Assert(~self.state["CLEAR"])

    def _steps(self, m):
        """What the registers hold in each state."""
        dut, state, words, cmd = self.dut, self.state, self.words, self.dut.mem.cmd
        kind, session, link = dut.kind.as_value(), dut.session, dut.link
        mine = {n: Array(v)[session] for n, v in (("where", self.where), ("due", self.due))}
        slot, left = Array(self.slot)[session], Array(self.left)[session]
        place, near, far = (kind == k for k in (PLACE_KIND, NEAR_KIND, FAR_KIND))
        in_hand = state["RELINK"] | state["HEAD"] | state["LINK"] | (state["SLOT"] & far)
        in_hand |= (state["AIM"] | state["SLOT"]) & ~dut.linked & place
        asking = state["READ"] | state["WAIT"] | state["JUDGE"]
        head = Array(self.heads)[dut.slot]
        writes = dut.mem.wdata.valid
        m.d.comb += [
            Assert(self.inside.fsm_bounded()),
            Assert(kind <= 2),
            Assert(~state["AIM"] | place),
            Assert(~state["SLOT"] | ~near),
            Assert(self.inside.under_way == words.open + writes),
            Assert(state["WAIT"] == (words.reading | (cmd.valid & ~cmd.payload.write))),
            Assert(~(words.reading & cmd.valid)),
            Assert(~state["WAIT"] | (self.inside.under_way == 0)),
        ]
        with m.If(state["WAIT"]):
            m.d.comb += Assert(Mux(words.reading, words.read_at, cmd.payload.addr[3:5]) == session)
        for s in range(N):
            m.d.comb += Assert((self.where[s] == HAND) == (in_hand & (session == s)))
            with m.If((session == s) & (state["JUDGE"] | state["UNLINK"] | state["RELINK"])):
                for name, value in words.now[s].items():
                    m.d.comb += Assert(link[name] == value)
        aimed = state["SLOT"] | state["HEAD"] | state["LINK"] | state["RELINK"]
        with m.If(in_hand & aimed):
            m.d.comb += Assert(dut.wake == mine["due"])
        with m.If(state["AIM"] & in_hand):
            ahead = (dut.wake - self.now)[:4]
            m.d.comb += Assert(ahead != 7)
            m.d.comb += Assert(
                mine["due"] == Mux(ahead[-1] | (ahead == 0), self.now + 1, dut.wake)[:4]
            )
        self._steps_of_placing(m, place, in_hand, asking, mine)
        with m.If((near | far) & (state["PEEK"] | state["TAKE"])):
            window = (self.now[1:] + 1)[:2]
            m.d.comb += Assert(dut.slot == Mux(far, Cat(window, 1), self.now[:2]))
        with m.If(near & (state["PEEK"] | state["TAKE"] | asking)):
            m.d.comb += [Assert(~dut.near_done), Assert(~dut.visit.valid)]
        with m.If(far & (state["PEEK"] | state["TAKE"] | asking | state["UNLINK"])):
            m.d.comb += Assert(~dut.far_done)
        with m.If(state["TAKE"] | state["LINK"]):
            m.d.comb += Assert(dut.head_r.data.as_value() == head.as_value())
        with m.If(~place & (asking | (state["UNLINK"] & far))):
            m.d.comb += Assert(head.valid & (head.session == session) & (slot == dut.slot))
            m.d.comb += Assert(mine["where"] == Mux(far, FAR, NEAR))
            m.d.comb += Assert(Mux(far, Array(self.distance)[session] == 1, left == 0))
        m.d.comb += Assert(~(state["PEEK"] | state["TAKE"]) | ~place)
        m.d.comb += Assert(~(state["UNLINK"] | state["RELINK"]) | ~near)
        with m.If(state["UNLINK"] & far):
            m.d.comb += Assert(dut.wake == mine["due"])
        taken_out = asking | state["UNLINK"] | state["RELINK"]
        with m.If(state["HEAD"] | state["LINK"] | (place & taken_out)):
            distance = (dut.wake[1:] - self.now[1:])[:3]
            target = Mux(distance <= 1, dut.wake[:2], Cat(dut.wake[1:3], 1))
            m.d.comb += Assert(dut.slot == target)
        with m.If(state["OTHER"]):
            word = Array([w["next"] for w in self.word])[session]
            last = Array([w["last"] for w in self.word])[session]
            m.d.comb += Assert(Array(self.queued)[session] & ~last & (word == dut.other))

    def _steps_of_placing(self, m, place, in_hand, asking, mine):
        """A session that is on a wheel, or was shown, while it is looked at."""
        dut, state = self.dut, self.state
        looked = place & dut.linked & (state["AIM"] | state["SLOT"] | asking | state["UNLINK"])
        aimed, ahead, later = Signal(4), Signal(4), Signal(4)
        m.d.comb += [
            ahead.eq(dut.wake - self.now),
            aimed.eq(Mux(ahead[-1] | (ahead == 0), self.now + 1, dut.wake)),
            later.eq(aimed - mine["due"]),
            Assert(~(place & (asking | state["UNLINK"] | state["RELINK"])) | dut.linked),
        ]
        with m.If(looked):
            where = mine["where"]
            m.d.comb += Assert((where == NEAR) | (where == FAR) | (where == SHOWN))
            m.d.comb += Assert(ahead != 7)
            m.d.comb += Assert((where != SHOWN) | ~later[-1])
            m.d.comb += Assert(self.goal_on == (where != SHOWN))
            with m.If(where != SHOWN):
                m.d.comb += Assert(self.goal == Mux(later[-1], aimed, mine["due"]))
            with m.If(~state["AIM"]):
                m.d.comb += Assert(dut.wake == aimed)
            with m.If(state["UNLINK"]):
                m.d.comb += Assert(later[-1] & (where != SHOWN))
        with m.If(self.goal_on & ~state["IDLE"]):
            m.d.comb += Assert(~state["CLEAR"])
            m.d.comb += Assert(place & (self.goal_of == dut.session))
            with m.If(in_hand | state["OTHER"]):
                m.d.comb += Assert(self.goal == mine["due"])
        with m.If(place & (in_hand | state["OTHER"])):
            m.d.comb += Assert(self.goal_on)


PROOFS = (
    Proof(
        name="tcp_wheels",
        core="cores.tcp.wheels.TimerWheels(4 sessions, 64 bits, 4 windows of 2 ticks)",
        says="a session placed is in one place, and is visited once, at its tick; requests move it "
        "only to an earlier one; time waits for visits and for sessions that change wheels",
        module="trebuchet.cores.tcp.wheels",
        build=lambda cores: WheelsProof(
            cores.TimerWheels(N, 64, window=2, windows=4), course=cores is not wheels
        ),
        depth=2,
        cover_depth=50,
        mutants=(
            Mutant(
                "moves_back",
                "(self.kind == Kind.PLACE) & ~earlier[-1]",
                "(self.kind == Kind.PLACE) & (earlier == 0)",
                34,
            ),
            Mutant(
                "forgets_who_follows",
                '{"prev": self.session, "first": 0}',
                '{"prev": self.session, "first": 1}',
                24,
            ),
            Mutant("reads_too_early", "with m.If(self.settled):", "with m.If(self.free):", 24),
            Mutant(
                "a_window_too_far", "self._far(self.now[g:] + 1)", "self._far(self.now[g:] + 2)", 26
            ),
            Mutant("a_tick_late", "self.wake.eq(self.now + 1)", "self.wake.eq(self.now + 2)", 16),
        ),
        assumes="requests tell whether the session was placed and not visited since; a visit is "
        "handed back before the window is over; the memory keeps the rules of cores/memory.py",
        not_proved="when things happen; other sizes and widths; a reset while running",
    ),
)
