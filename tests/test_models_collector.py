"""Python's collector is off for as long as it is to be, and then as it was before."""

import gc

import pytest
from trebuchet.models.collector import no_collector


def test_it_is_off_within_and_on_again_after():
    assert gc.isenabled()
    with no_collector():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_on_again_after_an_error():
    with pytest.raises(ValueError, match="within"), no_collector():
        raise ValueError("within")
    assert gc.isenabled()


def test_who_had_it_off_finds_it_off():
    gc.disable()
    try:
        with no_collector(), no_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
