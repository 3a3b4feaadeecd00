"""`trebuchet prove`: verdicts, refusals, the cache, the ledger, the quick set itself."""

import sys
from dataclasses import replace

import pytest
from amaranth.hdl import Assert, Assume, ClockDomain, Cover, Elaboratable, Module, Signal
from amaranth.lib import stream
from prove_lib import NO_MUTANT, Counter, Factors, proof_of, says
from trebuchet.formal.kit import page, registry, runner
from trebuchet.formal.kit.proof import Mutant, Proof, mutated
from trebuchet.formal.stream import free, new_harness, stream_rules
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.ledger import Ledger

QUICK = [proof for proof in registry.PROOFS if proof.quick]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "BUILD", tmp_path)

    def run(state, task=0, **arguments):
        proof = proof_of(Counter(state), **arguments)
        return runner.run_tasks([runner.tasks_of(proof)[task]])[0]

    return run


def test_verdicts(run):
    assert run(says(lambda c: Assert(c <= 2))).status == "proved"
    assert run(says(lambda c: Assert(c < 2))).status == "failed"
    assert run(says(lambda c: Assert(c != 6)), depth=5, method="bmc").status == "proved"


def test_cover_verdicts(run):
    assert run(says(lambda c: Cover(c == 2)), task=1).status == "proved"
    assert run(says(lambda c: Cover(c == 3)), task=1).status == "failed"
    both = says(lambda c: Cover(c == 2), lambda c: Cover(c == 3))
    assert run(both, task=1).status == "failed"


def test_contradicting_assumptions_do_not_count_as_a_proof(run):
    """Nothing is reachable, so every assertion would hold."""
    state = says(lambda c: Assume(c == 7), lambda c: Assert(c == 6), lambda c: Cover(c <= 7))
    assert run(state).status == "unknown"
    assert run(state, task=1).status != "proved"


def test_a_harness_without_checks_is_refused(run):
    with pytest.raises(TrebuchetError, match="must have assert statements, but has none"):
        run(says(lambda c: Cover(c == 2)))
    with pytest.raises(TrebuchetError, match="must have cover statements, but has none"):
        run(says(lambda c: Assert(c <= 2)), task=1)


def test_a_harness_with_its_own_clock_is_refused(run):
    """Its clock would never tick, and every property would hold."""

    def state(m, count):
        m.domains.sync = ClockDomain()
        m.d.comb += Assert(count <= 1)

    with pytest.raises(TrebuchetError, match="must leave its clock to the runner"):
        run(state)


def test_results_are_cached_by_netlist_and_script(run):
    state = says(lambda c: Assert(c <= 2))
    assert not run(state).cached
    assert run(state).cached
    assert not run(state, depth=4).cached
    assert not run(says(lambda c: Assert(c <= 3))).cached


class BrokenProducer(Elaboratable):
    """A stream whose valid falls, or whose payload changes, while it is stalled."""

    def __init__(self, breaks):
        self.breaks = breaks

    def elaborate(self, platform):
        m = Module()
        m.submodules.harness = h = new_harness()
        s = stream.Signature(4).create(path=("s",))
        free(h, s.ready)
        h.d.comb += s.valid.eq(1)
        stalled = Signal()
        h.d.sync += stalled.eq(s.valid & ~s.ready)
        with h.If(stalled):
            h.d.comb += s.valid.eq(0) if self.breaks == "valid" else s.payload.eq(1)
        with h.Else():
            h.d.comb += s.payload.eq(2)
        stream_rules(h, s, Assert, "s")
        return m


@pytest.mark.parametrize("breaks", ["valid", "payload"])
def test_stream_rules_catch(breaks, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "BUILD", tmp_path)
    build = lambda _: BrokenProducer(breaks)  # noqa: E731
    core = "trebuchet.cores.stream"
    proof = Proof("b", "", "", core, build, 3, 3, NO_MUTANT, method="bmc", bounded="a test")
    assert runner.run_tasks(runner.tasks_of(proof)[:1])[0].status == "failed"


def test_mutant_must_match_one_place():
    from trebuchet.cores import buffers

    message = "mutant 'gone' of trebuchet.cores.buffers must match one place, not none"
    with pytest.raises(TrebuchetError, match=message):
        mutated(buffers, Mutant("gone", "no.such.text", "0"))
    bases = "(wiring.Component):"
    changed = mutated(buffers, Mutant("m", f"class SkidBuffer{bases}", f"class Other{bases}"))
    assert hasattr(changed, "Other")
    assert hasattr(buffers, "SkidBuffer")


def test_a_mutant_in_a_part_of_the_package():
    """The core is imported anew around the part; nothing of it is left behind."""
    import trebuchet.cores.router as package
    from trebuchet.cores.router import router

    before, classes = set(sys.modules), (router.Router, package.router)
    where = "trebuchet.cores.router.credits"
    changed = mutated(router, Mutant("m", "self.lent != shared", "1", where=where))
    assert changed.CreditCounter is not router.CreditCounter
    from trebuchet.cores.router import router as again

    assert (again.Router, package.router) == classes
    assert set(sys.modules) == before
    with pytest.raises(TrebuchetError, match="must be in the package of trebuchet.cores.router"):
        mutated(router, Mutant("m", "", "", where="trebuchet.cores.tcp.store"))


def test_a_bounded_check_says_why():
    with pytest.raises(ValueError, match="must say in `bounded` why"):
        proof_of(Counter(says()), method="bmc", bounded="")
    with pytest.raises(ValueError, match="must say in `bounded` why"):
        proof_of(Counter(says()), bounded="it is not")


def test_select():
    names = [proof.name for proof in registry.PROOFS]
    assert len(set(names)) == len(names)
    assert runner.select(registry.PROOFS, ["skid"], False)[0].name == "skid_buffer"
    assert runner.select(registry.PROOFS, [], True) == list(registry.PROOFS)
    with pytest.raises(TrebuchetError, match="no proof 'skid_bufer'; near it: skid_buffer.*all"):
        runner.select(registry.PROOFS, ["skid_bufer"], False)
    with pytest.raises(TrebuchetError, match="no proof '###'; near it: none"):
        runner.select(registry.PROOFS, ["###"], False)


def _tiers(proofs):
    """One in twelve with the others of `make test`, by way of example; all in the nightly tier."""
    for number, proof in enumerate(proofs):
        marks = [pytest.mark.nightly] if number % 24 else []
        yield pytest.param(proof, marks=marks, id=proof.name)


@pytest.mark.slow
@pytest.mark.parametrize("proof", _tiers(QUICK))
def test_quick_set(proof):
    """Each property holds, each cover is reached, each mutant is caught; without the ledger."""
    tasks = runner.tasks_of(proof) + runner.tasks_of(proof, mutants=True)
    for result in runner.run_tasks(tasks, jobs=2):
        assert result.good, f"{result.task.name} is {result.status}, see {result.folder}"


def test_the_page_tells_method_and_limits(tmp_path):
    """Of a proof without bound and of one that says why it has one; a bar does not end a cell."""
    bounded = {"method": "bmc", "bounded": "a|b", "not_proved": "much"}
    proofs = [
        proof_of(Counter(says())),
        replace(proof_of(Counter(says()), **bounded), name="short"),
    ]
    ledger = Ledger(tmp_path / "ledger")
    row = {"depth": 4, "solver": "z3", "seconds": 1.6, "asserts": 5, "covers": 3}
    for name in ("test", "short"):
        ledger.record("g", name, "0", **row)
        ledger.record("g", f"{name}.cover", "0", **row)
    text = page.page(proofs, ledger.folder)
    assert "2 named sets of properties: 1 hold without bound" in text
    assert "| induction, k = 4 (z3, 5 assertions) | 3 within 4 | 1 | 2 |" in text
    assert "| checked for 4 cycles (z3, 5 assertions) |" in text
    assert "much; not unbounded: a\\|b |" in text
    assert "1 unbounded, 1 bounded" in page.badge(proofs)


def test_most_is_proved_without_bound():
    """The project's promise: 40 named properties or more, four of five without bound."""
    unbounded = [proof for proof in registry.PROOFS if proof.method == "induction"]
    assert len(registry.PROOFS) >= 40
    assert len(unbounded) >= 0.8 * len(registry.PROOFS)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"status": "unknown", "seconds": 1, "solver": "z3"}',
        *(
            pytest.param(text, marks=pytest.mark.nightly)
            for text in ("", "[]", '{"status": "proved"}')
        ),
    ],
)
def test_a_result_that_is_not_whole_is_made_again(run, content):
    state = says(lambda c: Assert(c <= 2))
    result = run(state)
    (result.folder.parent / "result.json").write_text(content)
    assert not run(state).cached
    again = run(state)
    assert again.cached
    assert (again.counts, again.folder) == (result.counts, result.folder)


def test_a_cached_result_needs_no_netlist(run, monkeypatch):
    state = says(lambda c: Assert(c <= 2))
    assert run(state).counts == {"assert": 1, "assume": 1, "cover": 0}
    monkeypatch.setattr(runner, "_netlist", None)
    assert run(state).counts == {"assert": 1, "assume": 1, "cover": 0}


class Widening(Elaboratable):
    """A core: ``count`` is at most 3."""

    def elaborate(self, platform):
        m = new_harness()
        count = Signal(2)
        m.d.sync += count.eq(count + 1)
        m.d.comb += Assert(count <= LIMIT)
        return m


LIMIT = 3


def test_a_mutant_is_caught_or_missed(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "BUILD", tmp_path)
    where = (
        Mutant("low", "LIMIT = 3\n", "LIMIT = 2\n"),
        Mutant("same", "LIMIT = 3\n", "LIMIT = 4\n"),
    )
    proof = replace(
        proof_of(None), module=__name__, build=lambda module: module.Widening(), mutants=where
    )
    results = runner.run_tasks(runner.tasks_of(proof, mutants=True))
    assert [result.status for result in results] == ["caught", "missed"]
    assert [result.row()["status"] for result in results] == ["caught", "missed"]
    assert [result.good for result in results] == [True, False]
    assert str(results[1]) == "test.mutant.same is missed, must be caught"
    again = runner.run_tasks(runner.tasks_of(proof, mutants=True))
    assert [(result.status, result.cached) for result in again] == [
        ("caught", True),
        ("missed", True),
    ]


def test_the_first_failure_ends_the_others(tmp_path, monkeypatch):
    """Those that run, and those that wait; what came before it has a result."""
    monkeypatch.setattr(runner, "BUILD", tmp_path)
    bounded = {"method": "bmc", "cover_depth": 6}
    good = proof_of(Counter(says(lambda c: Assert(c <= 2))), name="good", **bounded)
    bad = proof_of(Counter(says(lambda c: Assert(c < 2))), name="bad", depth=4, **bounded)
    endless = proof_of(Factors(), name="endless", **bounded)
    tasks = [runner.tasks_of(proof)[0] for proof in (good, endless, bad, endless)]
    runner.run_tasks(tasks[:1])
    seen = []
    results = runner.run_tasks(tasks, jobs=2, fail_fast=True, progress=seen.append)
    assert [result.task.name for result in results] == ["good", "bad"]
    assert seen == results


def test_a_limit_makes_a_task_unknown(tmp_path, monkeypatch):
    """It is neither kept nor part of the key, so that a longer run decides it."""
    monkeypatch.setattr(runner, "BUILD", tmp_path)
    task = runner.tasks_of(proof_of(Factors(), method="bmc"))[0]
    result = runner.run_tasks([task], limit=1)[0]
    assert (result.status, result.searched) == ("unknown", None)
    assert "timeout 1\n" in (result.folder / "task.sby").read_text()
    assert runner._cached(task, runner.input_hash(task)) is None


def test_the_ledger_takes_good_results_only(tmp_path, run):
    path = tmp_path / "ledger"
    good = run(says(lambda c: Assert(c <= 2)))
    runner.record([good], [good.task], path)
    bad = run(says(lambda c: Assert(c < 2)))
    runner.record([bad], [bad.task], path)
    row = Ledger(path).rows["test"]
    assert (row["status"], row["inputs"]) == ("proved", good.inputs)


def test_ledger_drops_what_is_no_more(tmp_path, run):
    path = tmp_path / "ledger"
    result = run(says(lambda c: Assert(c <= 2)))
    Ledger(path).record("g", "gone", "0", status="proved")
    runner.record([result], [result.task], path)
    assert set(Ledger(path).rows) == {"test"}


def test_without_names_the_quick_and_the_stale_are_run(monkeypatch, tmp_path):
    """Stale: the properties, the cover or, if they are asked for, the mutants have changed."""
    monkeypatch.setattr(runner, "LEDGER", tmp_path / "ledger")
    slow = proof_of(Counter(says()), name="slow")
    quick = replace(slow, name="quick", quick=True)
    assert runner.select([slow, quick], [], False) == [slow, quick]
    ledger = Ledger(runner.LEDGER)
    for task in runner.tasks_of(slow) + runner.tasks_of(slow, mutants=True):
        ledger.record("g", task.name, runner.input_hash(task), status=task.expected)
    assert runner.select([slow, quick], [], False) == [quick]
    deeper = replace(slow, cover_depth=9)
    assert runner.select([deeper, quick], [], False) == [deeper, quick]
    assert runner.select([deeper, quick], [], False, mutants=True) == [quick]
    other = replace(slow, mutants=(replace(NO_MUTANT[0], new="another"),))
    assert runner.select([other], [], False, mutants=True) == [other]
