"""Long runs in Verilator: content, order and credits of every flit under load and back-pressure."""

import pytest
from trebuchet.cores.router.contract import LinkConfig
from trebuchet.cores.router.network import Network
from trebuchet.cores.router.router import Router
from trebuchet.cores.router.routing import mesh
from trebuchet.sim.router import RouterFault, RouterSimulator

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def router():
    return RouterSimulator(Router(4, LinkConfig(vcs=4, buffer_flits=32)))


@pytest.mark.parametrize(
    ("length", "least"), [pytest.param(1, 0.85, marks=pytest.mark.nightly), (8, 0.8)]
)
def test_saturation(router, length, least):
    assert router.run(length).throughput >= least


@pytest.mark.parametrize("length", [1, 3, 40])
@pytest.mark.parametrize("back", [1.0, 0.2, 0.02])
def test_drains_under_back_pressure(router, length, back):
    traffic = router.run(length, back=back, warm_up=100, cycles=20_000, seed=length)
    assert traffic.packets > 50


def test_below_saturation_all_that_is_offered_arrives(router):
    assert router.run(4, load=0.5, cycles=50_000).throughput == pytest.approx(0.5, abs=0.01)


def test_the_harness_sees_faults():
    """A router that sends every packet on to the next port."""
    wrong = Router(2, LinkConfig(buffer_flits=8), lambda p, v, d: (1 - d, v) if d < 2 else None)
    with pytest.raises(RouterFault, match="a flit at the wrong port"):
        RouterSimulator(wrong).run()


@pytest.mark.nightly
def test_a_saturated_mesh():
    config = LinkConfig(vcs=2, buffer_flits=16, dest_width=4)
    simulator = RouterSimulator(Network(mesh(3, 3), config))
    for length in (1, 20):
        assert simulator.run(length, back=0.5).packets > 100
