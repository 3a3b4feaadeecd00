"""Every part has a test at its default and boards' sizes, or a reason: `docs/sizes.toml`.

A board with sizes of its own, or a new part, makes the list stale: `python tests/part_sizes.py`
makes it anew, and the tests that it names run at the new sizes.
"""

import pytest
from part_sizes import LIST, at_sizes, listed, made_list, of_tests, parts
from sizes_reasons import REASONS, reason_of


def test_every_part_is_in_the_list():
    assert set(listed()) == {path for path, _ in parts()}


def test_every_part_has_a_test_or_a_reason():
    tests = of_tests()
    for part in listed():
        assert bool(tests[part]) != bool(reason_of(part)), part
        assert tests[part] == listed()[part].get("tests", []), part


def test_reasons_are_of_parts_and_name_tests(root):
    for reasons in REASONS.values():
        assert set(reasons) <= set(listed())
        for names in reasons.values():
            for file, _, function in (name.partition("::") for name in names):
                text = (root / "tests" / f"test_{file}.py").read_text()
                assert f"def {function or 'test_'}" in text, f"{file}::{function}"


def test_marks_run_all_sizes():
    """The boards', and the default if none has it."""
    depths = {size["depth"] for size in at_sizes("tcp.number_lists.NumberList", depth=7).args[1]}
    assert {7} < depths
    with pytest.raises(KeyError):
        at_sizes("no.such.Part")


@pytest.mark.slow  # elaborates the shells of all boards
def test_the_list_is_current():
    """Mend a failure with `python tests/part_sizes.py`."""
    assert LIST.read_text() == made_list()
