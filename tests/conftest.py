"""Set-up that all tests share: tools, tiers, order, reuse of results."""

import os
import signal
import sys
from pathlib import Path

import pytest

pytest_plugins = ["limits", "native"]

ROOT = Path(__file__).resolve().parent.parent

# Tests call tools by their plain names, with no virtual environment activated.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
# A shell has its background jobs ignore SIGINT, which their children would inherit: those that
# tests end by it would go on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The WebAssembly tools cannot see below /tmp, so the numbered test folders live in the tree.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(ROOT / "build" / "pytest"))
Path(os.environ["PYTEST_DEBUG_TEMPROOT"]).mkdir(parents=True, exist_ok=True)


#: Files that take minutes, the longest first. What a worker takes last should be short, or the
#: others wait for it with nothing to do.
LONGEST = (
    "prove_current",
    "e2e_board",
    "bench_ledger",
    "e2e_hostile",
    "soc_manage",
    "soc_check",
    "firmware_boot",
    "peer_stacks",
    "ecg_transaction",
    "repo_documents",
    "repo_site",
    "tcp_hostile",
    "prove_runner",
    "soc_dhcp",
    "tcp_cookies",
    "ecg_stream",
    "cluster_server",
    "boards_vendor",
    "e2e_flow",
    "bridge_station",
    "tcp_storm",
    "tcp_conformance",
    "soc_console",
    "tcp_regressions",
    "cluster_node",
    "ecg_verilator",
    "ecg_role_verilator",
    "tcp_regressions_life",
    "firmware_greeting",
    "tcp_thousand",
    "ltl_verilator",
    "ecg_e2e",
    "roles_ecg_role",
    "bridge_bridge",
    "router_verilator",
    "sim_process",
    "sim_fleet",
    "tcp_mutants",
)


def pytest_addoption(parser):
    parser.addoption(
        "--reuse", action="store_true", help="do not run again what passed with the same inputs"
    )


def pytest_configure(config):
    from reuse import Reuse  # noqa: PLC0415 - it needs the paths that are set above

    config.pluginmanager.register(Reuse(config))


def pytest_collection_modifyitems(items):
    ranks = {f"test_{name}.py": rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(LONGEST)))


@pytest.fixture(scope="session")
def root():
    """The repository's top folder."""
    return ROOT
