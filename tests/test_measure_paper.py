"""The paper's measurements, few points of each: all is measured, and stands beside its value."""

import json

import pytest
from jobd_bench import build
from trebuchet.host import cli
from trebuchet.host.jobd_build import NODE
from trebuchet.host.measure import paper, paper_values, programs
from trebuchet.host.measure.paper import FIGURES, Name, Scope
from trebuchet.models.errors import TrebuchetError

#: Figures with the paper's values at the places that are measured in a quick run.
BESIDE = {
    Name.ONE_ITEM: ("Mb/s of input", "unlimited", [(1, 236.58), (2, 464.2)]),
    Name.FOUR_ITEMS: ("ms, median", "unlimited", [(1, 539.16), (2, 389.5)]),
    Name.RATES: ("ms, mean", "2 kHz", [(1, 494.44), (2, 1.47)]),
    Name.SPEED_UP: ("speed-up", "over the paper's software", [(4, 1.3), (8, 2.6)]),
}
CHECKED = (Name.ECHO, Name.ONE_ITEM, Name.RATES)


@pytest.mark.parametrize(
    "name",
    [name if name in CHECKED else pytest.param(name, marks=pytest.mark.slow) for name in Name],
)
def test_a_quick_run_has_ours_and_the_papers(name, tmp_path):
    lines = []
    figure = FIGURES[name](Scope(0.05, True, lines.append))
    assert lines
    assert figure.rows
    for ours, theirs in figure.panels.values():
        assert ours
        assert all(y > 0 for points in ours.values() for _, y in points)
        assert theirs
    if name in BESIDE:
        panel, series, points = BESIDE[name]
        assert figure.panels[panel][1][series] == points
        assert [x for x, _ in figure.panels[panel][0][series]] == [x for x, _ in points]
    from trebuchet.host.measure.paper_plot import draw

    draw(figure, tmp_path / "figure.svg")
    assert "paper: " in (tmp_path / "figure.svg").read_text()


def test_nodes_take_the_papers_time():
    """One node with 1,117 µs a product does at most 895 a second: 234.7 Mb/s of input."""
    figure = paper.one_item(Scope(0.3, True))
    rows = [row for row in figure.rows if row["nodes"] == 1]
    assert {row["sender"] for row in rows} == {"unlimited", "bounded"}
    for row in rows:
        assert row["share_of_nodes"] <= 1.02
        assert row["mbit_per_s"] <= 1.02 * 32768 * 8 / 1117
        assert row["p50_ms"] >= 1.117


def test_the_papers_limits():
    """No row of the paper's tables has more than its nodes can do, but for some per cent."""
    for table, size, delay in (
        (paper_values.ONE_ITEM, 32768, 1117),
        (paper_values.FOUR_ITEMS, 4 * 32768, 4 * 949),
    ):
        for nodes, (megabits, milliseconds) in table.items():
            assert megabits <= 1.12 * nodes * size * 8 / delay
            assert milliseconds > delay / 1000
    assert all(len(row) == len(paper.KHZ) for row in paper_values.RATES_MBIT.values())
    assert paper_values.RATES_MS.keys() == paper_values.RATES_MBIT.keys()


def test_the_command(capsys, tmp_path):
    table = tmp_path / "table.csv"
    words = ["measure", "paper", "figure-4.5", "--quick", "--seconds", "0.05"]
    assert cli.run([*words, "--json", "--csv", str(table)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["figure"] == "figure-4.5"
    assert [row["size"] for row in found["rows"]] == [64, 128]
    assert table.read_text().startswith("size,mbit_per_s,p50_us\n64,")
    assert cli.run(words) == 0
    assert "paper, Mb/s, node: 393 at 131,072" in capsys.readouterr().out


def test_a_program_that_does_not_start_is_one_line():
    with pytest.raises(TrebuchetError, match="trebuchet-node did not start: node: --boards"):
        programs.Program(build(NODE), "--boards", 0)
