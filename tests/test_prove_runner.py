"""`trebuchet prove`: verdicts, refusals, the cache, the ledger, the quick set itself."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Assert, Assume, ClockDomain, Cover, Elaboratable, Module, Signal
from amaranth.lib import stream
from trebuchet.formal import page, registry, runner
from trebuchet.formal.proof import Mutant, Proof, mutated, mutated_source
from trebuchet.formal.stream import free, new_harness, stream_rules
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.ledger import Ledger

QUICK = [proof for proof in registry.PROOFS if proof.quick]
NO_MUTANT = (Mutant("none", "no such text", ""),)


class Counter(Elaboratable):
    """Counts 0, 1, 2, 0 …; ``state`` adds what the harness says about it."""

    def __init__(self, state):
        self.state = state

    def elaborate(self, platform):
        m = new_harness()
        count = Signal(3)
        with m.If(count == 2):
            m.d.sync += count.eq(0)
        with m.Else():
            m.d.sync += count.eq(count + 1)
        self.state(m, count)
        return m


def _proof(state, **arguments):
    arguments = {"depth": 3, "cover_depth": 6, "mutants": NO_MUTANT, **arguments}
    arguments.setdefault("bounded", "a test" if arguments.get("method") == "bmc" else "")
    return Proof(
        "test", "counter", "", "trebuchet.cores.stream", lambda _: Counter(state), **arguments
    )


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "BUILD", tmp_path)

    def run(state, task=0, **arguments):
        return runner.run_tasks([runner.tasks_of(_proof(state, **arguments))[task]])[0]

    return run


def _says(*statements):
    def state(m, count):
        for statement in statements:
            m.d.comb += statement(count)

    return state


def test_verdicts(run):
    assert run(_says(lambda c: Assert(c <= 2))).status == "proved"
    assert run(_says(lambda c: Assert(c < 2))).status == "failed"
    # True, but not inductive: from the unreachable 5 it goes to 6.
    assert run(_says(lambda c: Assert(c != 6)), depth=1).status == "unknown"
    assert run(_says(lambda c: Assert(c != 6)), depth=5, method="bmc").status == "proved"


def test_cover_verdicts(run):
    assert run(_says(lambda c: Cover(c == 2)), task=1).status == "proved"
    assert run(_says(lambda c: Cover(c == 3)), task=1).status == "failed"
    both = _says(lambda c: Cover(c == 2), lambda c: Cover(c == 3))
    assert run(both, task=1).status == "failed"


def test_contradicting_assumptions_do_not_count_as_a_proof(run):
    """Nothing is reachable, so every assertion would hold."""
    state = _says(lambda c: Assume(c == 7), lambda c: Assert(c == 6), lambda c: Cover(c <= 7))
    assert run(state).status == "unknown"
    assert run(state, task=1).status != "proved"


def test_a_harness_without_checks_is_refused(run):
    with pytest.raises(TrebuchetError, match="must have assert statements, but has none"):
        run(_says(lambda c: Cover(c == 2)))
    with pytest.raises(TrebuchetError, match="must have cover statements, but has none"):
        run(_says(lambda c: Assert(c <= 2)), task=1)


def test_a_harness_with_its_own_clock_is_refused(run):
    """Its clock would never tick, and every property would hold."""

    def state(m, count):
        m.domains.sync = ClockDomain()
        m.d.comb += Assert(count <= 1)

    with pytest.raises(TrebuchetError, match="must leave its clock to the runner"):
        run(state)


def test_results_are_cached_by_netlist_and_script(run):
    state = _says(lambda c: Assert(c <= 2))
    assert not run(state).cached
    assert run(state).cached
    assert not run(state, depth=4).cached
    assert not run(_says(lambda c: Assert(c <= 3))).cached


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


def test_mutant_must_find_its_text():
    from trebuchet.cores import buffers

    with pytest.raises(TrebuchetError, match="must find its text once in trebuchet.cores.buffers"):
        mutated(buffers, Mutant("gone", "no such text", ""))
    changed = mutated(buffers, Mutant("m", "class SkidBuffer", "class Other"))
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
        _proof(_says(), method="bmc", bounded="")
    with pytest.raises(ValueError, match="must say in `bounded` why"):
        _proof(_says(), bounded="it is not")


def test_select():
    names = [proof.name for proof in registry.PROOFS]
    assert len(set(names)) == len(names)
    assert runner.select(registry.PROOFS, ["skid"], False)[0].name == "skid_buffer"
    assert runner.select(registry.PROOFS, [], True) == list(registry.PROOFS)
    assert runner.select(registry.PROOFS, [], False) == QUICK
    with pytest.raises(TrebuchetError, match="no proof 'skid_bufer'; near it: skid_buffer.*all"):
        runner.select(registry.PROOFS, ["skid_bufer"], False)
    with pytest.raises(TrebuchetError, match="no proof '###'; near it: none"):
        runner.select(registry.PROOFS, ["###"], False)


def test_json_output_is_nothing_but_json():
    command = [Path(sys.executable).parent / "trebuchet", "prove", "skid_buffer", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    rows = json.loads(done.stdout)
    assert [row["name"] for row in rows] == ["skid_buffer", "skid_buffer.cover"]
    for row in rows:
        assert set(row) >= {"name", "core", "method", "depth", "status", "seconds"}
        assert row["status"] == "proved"


@pytest.mark.slow
@pytest.mark.parametrize("proof", QUICK, ids=lambda proof: proof.name)
def test_quick_set(proof):
    """Each property holds, each cover is reached, each mutant is caught."""
    tasks = runner.tasks_of(proof) + runner.tasks_of(proof, mutants=True)
    for result in runner.run_tasks(tasks, jobs=2):
        assert result.good, f"{result.task.name} is {result.status}, see {result.folder}"


def test_ledger_is_current():
    """Mend a failure with `make prove`."""
    ledger = Ledger(runner.LEDGER)
    tasks = {task.name: task for task in registry.tasks()}
    assert set(ledger.rows) == set(tasks)
    for name, task in tasks.items():
        row = ledger.rows[name]
        assert row["inputs"] == runner.input_hash(task), f"row {name} is stale"
        assert row["status"] == task.expected, name


def test_mutants_find_their_texts():
    for proof in registry.PROOFS:
        for mutant in proof.mutants:
            mutated_source(mutant, proof.module)


def test_page_and_badge_are_current():
    """Mend a failure with `make prove`."""
    assert page.PAGE.read_text() == page.page(registry.PROOFS)
    assert page.BADGE.read_text() == page.badge(registry.PROOFS)


def test_the_page_tells_method_and_limits(tmp_path):
    """Of a proof without bound and of one that says why it has one; a bar does not end a cell."""
    bounded = {"method": "bmc", "bounded": "a|b", "not_proved": "much"}
    proofs = [_proof(_says()), replace(_proof(_says(), **bounded), name="short")]
    ledger = Ledger(tmp_path / "ledger.json")
    row = {"depth": 4, "solver": "z3", "seconds": 1.6, "asserts": 5, "covers": 3}
    for name in ("test", "short"):
        ledger.record(name, "0", **row)
        ledger.record(f"{name}.cover", "0", **row)
    text = page.page(proofs, ledger.path)
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


def test_ledger_drops_what_is_no_more(tmp_path, run):
    path = tmp_path / "ledger.json"
    result = run(_says(lambda c: Assert(c <= 2)))
    Ledger(path).record("gone", "0", status="proved")
    runner.record([result], [result.task], path)
    assert set(Ledger(path).rows) == {"test"}


def test_without_names_what_is_stale_is_run_too(monkeypatch, tmp_path):
    proofs = [replace(proof, quick=False) for proof in registry.PROOFS[:2]]
    assert runner.select(proofs, [], False) == []
    monkeypatch.setattr(runner, "LEDGER", tmp_path / "none.json")
    assert runner.select(proofs, [], False) == proofs
