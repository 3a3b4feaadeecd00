"""Every proof and its mutants: a current result in the ledger or of this machine, or a new one.

A failure is explained by its counterexample. What takes long is left to `make nightly`.
"""

import pytest
from trebuchet.formal.kit import assumptions, page, registry, runner
from trebuchet.formal.kit.proof import mutated_tree
from trebuchet.formal.kit.trace import explain
from trebuchet.models.ledger import Ledger

#: Expected seconds up to which a stale task is run here.
LONGEST, LONGEST_MUTANT = 120, 10

by_name = pytest.mark.parametrize("proof", registry.PROOFS, ids=lambda proof: proof.name)


@pytest.fixture(scope="module")
def ledger():
    return Ledger(runner.LEDGER)


@by_name
def test_proof(proof, ledger):
    """Its properties hold, its cover statements are reached."""
    _hold(runner.check_current(proof, longest=LONGEST, ledger=ledger))


@by_name
def test_mutants(proof, ledger):
    """Each is caught."""
    _hold(runner.check_current(proof, mutants=True, longest=LONGEST_MUTANT, ledger=ledger))


def _hold(results):
    deferred = [result for result in results if result.status == "deferred"]
    for result in results:
        if result not in deferred and not result.good:
            pytest.fail(f"{result}\n{explain(result.folder)}", pytrace=False)
    if deferred:
        seconds = sum(result.seconds for result in deferred)
        pytest.skip(f"expected {seconds:.0f} s: left to `make nightly`")


def test_rows_of_the_ledger(ledger):
    """One for each task, with a good result; `trebuchet prove --record` adds those of a new one."""
    tasks = {task.name: task for task in registry.tasks()}
    for name in set(ledger.rows) - set(tasks):
        pytest.fail(f"formal/ledger/{ledger.groups[name]}.json: row {name!r} is of no proof", False)
    for name in set(tasks) - set(ledger.rows):
        pytest.fail(f"{name} has no row: run `trebuchet prove {tasks[name].proof.name} --record`")
    for name, task in tasks.items():
        assert ledger.rows[name]["status"] == task.expected, name
        assert ledger.rows[name]["seconds"] >= 0, name


def test_each_mutant_matches_one_place():
    for proof in registry.PROOFS:
        for mutant in proof.mutants:
            mutated_tree(mutant, proof.module)


def test_every_assumption_rests_on_something():
    """On an assertion of the part that it is about, or on a reason: `formal/laws` names it."""
    statements = {proof.name: runner.statements_of(proof) for proof in registry.PROOFS}
    assert assumptions.faults(statements, assumptions.laws()) == []


def test_pages_and_badge_are_current():
    """Mend a failure with `trebuchet prove --record`."""
    assert assumptions.PAGE.read_text() == page.assumed(registry.PROOFS)
    assert page.PAGE.read_text() == page.page(registry.PROOFS)
    assert page.BADGE.read_text() == page.badge(registry.PROOFS)
