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
    "bench_ledger",
    "soc_drive",
    "e2e_smp",
    "sim_web_card",
    "prove_current",
    "sim_web_board",
    "e2e_roles",
    "e2e_board",
    "e2e_probe",
    "e2e_burnin",
    "e2e_hostile",
    "jobd_faults",
    "soc_domains",
    "jobd_streams",
    "e2e_sessions",
    "repo_site",
    "repo_documents",
    "prove_mutants_rename",
    "host_cli",
    "integration_examples",
    "peer_stacks",
    "soc_check",
    "tcp_admission",
    "web_service",
    "web_load",
    "host_demo_fleet",
    "firmware_manage",
    "net_hosts_services",
    "web_desk",
    "firmware_fuzz",
    "tcp_hostile",
    "soc_manage",
    "sim_link",
    "sim_web",
    "ltl_verilator",
    "soc_dhcp",
    "soc_console",
    "prove_memo",
    "boards_overrides",
    "jobd_reload",
    "renode_cli",
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
