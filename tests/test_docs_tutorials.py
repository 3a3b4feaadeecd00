"""The tutorials run: what a reader types is extracted from them and tried."""

import random
import re

import pytest
from amaranth.back import rtlil
from role_bench import Job, RoleBench
from trebuchet.cores.roles.catalog import load_role
from trebuchet.formal.kit import runner
from trebuchet.models.role_folders import add_roles
from trebuchet.models.status import Status
from trebuchet.soc import role_template

ROLE, PROOF = "docs/tutorials/role.md", "docs/tutorials/prove.md"


def blocks(root, document):
    return re.findall(r"^```python\n(.*?)^```", (root / document).read_text(), re.M | re.S)


@pytest.fixture
def role(root, tmp_path):
    """The folder of the tutorial's role, with the files as the tutorial has them in the end."""
    role_template.create("xor_scan", tmp_path)
    model, gateware = blocks(root, ROLE)
    (tmp_path / "xor_scan" / "model.py").write_text(model)
    (tmp_path / "xor_scan" / "role.py").write_text(gateware)
    return tmp_path / "xor_scan"


@pytest.mark.parametrize("width", [32, 64])
def test_the_role_equals_its_model(role, width):
    space = {}
    exec(compile((role / "model.py").read_text(), "model.py", "exec"), space)
    add_roles(role)
    rng = random.Random(width)
    sizes = [0, 1, 3, 4, 5, 8, 9, 40]
    jobs = [Job(rng.randbytes(size), room=rng.choice([16, 64])) for size in sizes]
    answers = RoleBench(load_role("xor_scan")(width), seed=width).run(jobs, limit=20_000)
    for job, answer in zip(jobs, answers, strict=True):
        status, result = space["result"](job.operand, job.room)
        assert answer.status == status
        assert status != Status.OK or answer.result == result


def test_the_generated_files_are_those_that_the_tutorial_names(root, tmp_path):
    named = set(re.findall(r"`(xor_scan/\w+\.py)`", (root / ROLE).read_text()))
    assert {str(path) for path in role_template.create("xor_scan", tmp_path)} == named


@pytest.fixture
def proof(root):
    """The tutorial's proof, as a module of ``formal/`` would have it."""
    (text,) = blocks(root, PROOF)
    space = {"__name__": "trebuchet.formal.tutorial", "__package__": "trebuchet.formal"}
    exec(compile(text, "formal/tutorial.py", "exec"), space)
    (found,) = space["PROOFS"]
    return found


def test_the_proof_has_properties(proof):
    text = rtlil.convert(proof.harness(), name="top", platform="formal", ports=[])
    for flavour in ("assert", "assume", "cover"):
        assert f'parameter \\FLAVOR "{flavour}"' in text


@pytest.mark.slow
def test_the_proof_holds_and_catches_its_mutant(proof):
    tasks = [*runner.tasks_of(proof), *runner.tasks_of(proof, mutants=True)]
    results = runner.run_tasks(tasks)
    assert [str(result) for result in results if not result.good] == []
