"""Drives any role in Amaranth's simulator and checks its contract (``cores/roles/contract.py``).

::

    bench = RoleBench(LoopbackRole(64), seed=seed)
    answers = bench.run([Job(b"some bytes", room=64), Write("key", 3), Job(b"")], limit=5000)
    assert answers[0].result == b"some bytes"

``Job``, ``Write`` and ``Answer`` are those of ``sim/roles.py``, which does the same in Verilator.
Jobs, answers and all streams of the memory port stall at random; the memory answers after a random
time, out of order between tags. The device is a role, or a ``RoleSlot`` with one.
"""

from streams import MemoryResponder, make_rng, plain, run, stream_checker
from trebuchet.models.status import Status
from trebuchet.sim.roles import Answer, Job, Write, place_jobs

__all__ = ["Answer", "Job", "RoleBench", "Write"]


class _Memory(MemoryResponder):
    """Asks the bench of each byte whether it may be touched now."""

    def __init__(self, bench, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.bench = bench

    def _accept(self, payload):
        super()._accept(payload)
        if not payload.write:
            self.bench.check_read(self.log[-1])

    def _store(self, payload):
        burst = self._waiting[0]
        at = burst.addr + len(burst.data) * self.n
        for lane in range(self.n):
            if payload.strb >> lane & 1:
                self.bench.check_write(at + lane)
        super()._store(payload)

    def _fetch(self, burst):
        self.bench.check_read(burst)
        super()._fetch(burst)


class RoleBench:
    """A role, its memory, and the rules.

    Parameters
    ----------
    dut
        Anything with the ports of ``RoleSignature``.
    seed : int
        Of everything random; None: no stalls, fixed latency.
    latency : (int, int)
        Bounds of the memory's answers, in cycles.
    stall : float
        Chance of each stream to pause in a cycle.
    in_flight : int
        Jobs under way, at most.
    scratch : (int, int)
        Address and size of memory that the role may use besides.

    Attributes: ``cycles`` of the last run; ``memory``, a bytearray; ``times``, (taken, answered) of
    each job.
    """

    def __init__(self, dut, *, seed, latency=(4, 40), stall=0.3, in_flight=4, scratch=(0, 0)):
        self.dut, self.seed, self.stall = dut, seed, stall if seed is not None else 0
        self.latency, self.in_flight, self.scratch = latency, in_flight, scratch
        self.n = len(dut.mem.wdata.payload.strb)

    def run(self, operations, *, limit, more=()):
        """Run jobs and register writes in this order; return an :class:`Answer` for each job.

        ``more``: further test benches, e.g. one that switches the role off.
        """
        jobs = [op for op in operations if isinstance(op, Job)]
        seed = 0 if self.seed is None else self.seed
        self.placed, size = place_jobs(jobs, seed, self.in_flight, sum(self.scratch))
        self.memory = bytearray(make_rng(seed, "contents").randbytes(size))
        self.operations = operations
        self.live = []  # numbers of the jobs taken whose answer is not offered yet
        self.busy = set()  # regions in use
        self.answers = {}
        self.taken = {}
        self.now = 0
        rng = None if self.seed is None else make_rng(seed, "memory")
        self.responder = _Memory(
            self, self.dut.mem, self.memory, rng=rng, latency=self.latency, stall=self.stall
        )
        checkers = [stream_checker(self.dut.answer, "answer")]
        benches = (self._clock, self._put, self._get, self.responder, *checkers, *more)
        self.cycles = run(self.dut, *benches, limit=limit, seed=self.seed)
        return [self.answers[number] for number in range(len(jobs))]

    def _pauses(self, rng):
        return self.stall and rng.random() < self.stall

    async def _clock(self, ctx):
        while True:
            await ctx.tick()
            self.now += 1

    _clock.background = True

    # --- what the role may touch -------------------------------------------------------------

    def _in_scratch(self, addr):
        return 0 <= addr - self.scratch[0] < self.scratch[1]

    def check_read(self, burst):
        """Rule 2: operands of jobs that are taken and not answered; their results, too."""
        for at in range(burst.addr, burst.addr + burst.beats * self.n, self.n):
            assert self._in_scratch(at) or any(self._reads(number, at) for number in self.live), (
                f"reads {at:#x}, which is in no operand of a job under way (rule 2)"
            )

    def _reads(self, number, at):
        job = self.placed[number][0]
        ring = 1 << job["ring_log2"]
        place = (at - job["base"] - job["offset"]) % ring
        inside = 0 <= at - job["base"] < ring and job["length"] > 0
        if inside and (place < job["length"] or place + self.n > ring):
            return True
        return at + self.n > job["result"] and at < job["result"] + job["room"]

    def check_write(self, addr):
        """Rule 3."""
        results = [self.placed[number][0] for number in self.live]
        assert self._in_scratch(addr) or any(
            0 <= addr - job["result"] < job["room"] for job in results
        ), f"writes {addr:#x}, which is in no result of a job under way (rule 3)"

    # --- jobs and answers --------------------------------------------------------------------

    async def _put(self, ctx):
        rng, number = make_rng(self.seed, "jobs"), 0
        for op in self.operations:
            for _ in range(op.wait):
                await ctx.tick()
            if isinstance(op, Write):
                while op.idle and len(self.answers) < number:
                    await ctx.tick()
                await self._write(ctx, op)
                continue
            fields, region = self.placed[number]
            while region in self.busy or self._pauses(rng):
                await ctx.tick()
            self.busy.add(region)
            await self._offer(ctx, op, fields, number)
            number += 1

    async def _write(self, ctx, op):
        signal = getattr(self.dut.csr, op.register)
        ctx.set(signal, op.value)
        # The block lies in the signature as the core sees it, so does the kind of the register.
        name = op.register.removesuffix("_clear")
        block = self.dut.signature.members["csr"].signature.block
        access = next(r.access for r in block.registers if r.name == name)
        await ctx.tick()
        if access in ("stb", "w1c"):
            ctx.set(signal, 0)

    async def _offer(self, ctx, op, fields, number):
        mask = (1 << fields["ring_log2"]) - 1
        for i, byte in enumerate(op.operand):
            self.memory[fields["base"] + ((fields["offset"] + i) & mask)] = byte
        ctx.set(self.dut.job.payload, fields | {"kind": op.kind})
        ctx.set(self.dut.job.valid, 1)
        while True:
            _, _, ready = await ctx.tick().sample(self.dut.job.ready)
            if ready:
                break
        self.live.append(number)
        self.taken[number] = self.now
        ctx.set(self.dut.job.valid, 0)

    async def _get(self, ctx):
        rng, ended = make_rng(self.seed, "answers"), None
        jobs = len(self.placed)
        quiet = 0  # after the last answer nothing may come any more
        while quiet < 100:
            ready = not self._pauses(rng)
            ctx.set(self.dut.answer.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(
                self.dut.answer.valid, self.dut.answer.payload
            )
            if valid and ended is None:
                ended = self._end(plain(payload))
            if valid and ready:
                self._record(ended, plain(payload))
                ended = None
            done = len(self.answers) == jobs and not self.responder.busy
            quiet = quiet + 1 if done and not valid else 0

    def _end(self, answer):
        """Rules 1 and 2, at the moment an answer is offered."""
        for number in self.live:
            job = self.placed[number][0]
            if all(job[name] == answer[name] for name in ("source", "session", "id")):
                break
        else:
            raise AssertionError("an answer to no job that is under way (rule 1)")
        first, end = job["result"], job["result"] + job["room"]
        for burst in self.responder.log:
            touches = burst.addr < end and first < burst.addr + burst.beats * self.n
            if burst.write and not burst.done and touches:
                raise AssertionError("answers before the last wdone of its result (rule 2)")
        self.live.remove(number)
        return number

    def _record(self, number, answer):
        job, region = self.placed[number]
        status, length = answer["status"], answer["length"]
        assert length == 0 or status == Status.OK, "an answer that is not OK has a length"
        assert length <= job["room"], "the result is longer than its room (rule 3)"
        result = bytes(self.memory[job["result"] : job["result"] + length])
        self.answers[number] = Answer(status, result, self.taken[number], self.now)
        self.busy.remove(region)
