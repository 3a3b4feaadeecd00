"""Plans: what they say, what is refused, and in which words."""

import pytest
from trebuchet.models.plan import (
    Plan,
    PlanError,
    RoleEntry,
    ServiceEntry,
    load_plan,
)

USUAL = [(7, "echo", None), (9, "discard", None), (80, "http", None), (8080, "page", None)]


def services(plan):
    return [(s.port, s.framing, s.role) for s in plan.services]


def test_usual_services():
    assert services(Plan()) == sorted([*USUAL, (4000, "smp", None)])
    two = Plan.of_roles("ecg", "loopback:name=wire")
    assert services(two) == sorted([*USUAL, (4000, "smp", "ecg"), (4001, "smp", "wire")])
    many = Plan.of_roles(*(f"loopback:name=r{k}" for k in range(16)))
    assert len(many.services) == 8  # the others are named by their numbers
    assert [many.number(f"r{k}") for k in range(16)] == list(range(16))


def test_texts():
    entry = RoleEntry.parse("ecg:instances=2,name=heart,preset=second,stream=true,buffers=0x2")
    assert (entry.kind, entry.name, entry.instances) == ("ecg", "heart", 2)
    assert entry.options == {"preset": "second", "stream": True, "buffers": 2}
    assert RoleEntry.parse("matmul") == RoleEntry(kind="matmul")
    assert ServiceEntry.parse("4001=smp:matmul") == ServiceEntry(
        port=4001, framing="smp", role="matmul"
    )
    assert ServiceEntry.parse("7=echo").role is None


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: RoleEntry(kind="ECG"), "a role must be a lower-case name .*, not 'ECG'"),
        (lambda: RoleEntry(kind="ecg", name="tcp"), "role 'ecg': its name must be .*, not 'tcp'"),
        (lambda: RoleEntry(kind="a", instances=0), "role 'a': instances must be 1 to 64, not 0"),
        (lambda: RoleEntry(kind="a", instances=True), "role 'a': instances .*, not True"),
        (lambda: RoleEntry(kind="a", options={"x": 1.5}), "role 'a': options must be .*1.5"),
        (lambda: RoleEntry(kind="a", options=3), "role 'a': options must be .*, not 3"),
        (lambda: RoleEntry.parse("a:b"), "a role must be KIND or KIND:KEY=VALUE.*, not 'a:b'"),
        (lambda: RoleEntry.parse("a:=1"), "a role must be KIND or .*, not 'a:=1'"),
        (lambda: ServiceEntry(port=0, framing="echo"), "a service's TCP port must .*, not 0"),
        (lambda: ServiceEntry(port=7, framing="ftp"), "port 7: framing must be one of .*'ftp'"),
        (lambda: ServiceEntry(port=7, framing="echo", role="a"), "port 7: only framing smp has"),
        (lambda: ServiceEntry.parse("x=echo"), "a service must be PORT=FRAMING .*, not 'x=echo'"),
        (lambda: ServiceEntry.parse("7"), "a service must be PORT=FRAMING or .*, not '7'"),
        (lambda: Plan.of_roles("a", "a"), "two roles of the plan are called 'a'"),
        (lambda: Plan.of_roles(*(f"r{k}" for k in range(17))), "a plan must have at most 16 roles"),
        (lambda: Plan(("ecg",)), "a plan's roles must be a tuple of RoleEntry, not "),
        (lambda: _plan("7=echo", "7=discard"), "two services of the plan have TCP port 7: "),
        (
            lambda: _plan("7=echo", "8=echo"),
            "only smp may be on several TCP ports, not echo on",
        ),
        (lambda: _plan("7=smp:a"), "port 7: there is no role 'a' in the plan; there are: none"),
        (lambda: _plan(*(f"{k}=smp" for k in range(1, 10))), "a plan must have at most 8 services"),
        (
            lambda: Plan((RoleEntry(kind="a"),), (ServiceEntry(port=7, framing="echo"),)),
            "a plan with roles must have a service of framing smp",
        ),
    ],
)
def test_what_cannot_be_is_one_line(make, says):
    with pytest.raises(PlanError, match=f"^{says}") as caught:
        make()
    assert "\n" not in str(caught.value)


def _plan(*texts):
    return Plan((), tuple(map(ServiceEntry.parse, texts)))


def test_a_file(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(
        '[[role]]\nkind = "ecg"\ninstances = 2\nstream = true\n'
        '[[service]]\nport = 4000\nframing = "smp"\nrole = "ecg"\n'
    )
    plan = load_plan(path)
    assert plan.roles == (RoleEntry(kind="ecg", instances=2, options={"stream": True}),)
    assert services(plan) == [(4000, "smp", "ecg")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[role]", "Expected"),
        ("role = 3", "role must be tables"),
        ("[[rolle]]", r"it may have \[\[role\]\], .* and \[probes\], not \['rolle'\]"),
        ("[probes]\ndepth = 64", r"\[probes\] must have signals, may have depth, and nothing"),
        ("[probes]\nsignals = 'tx'", r"signals of \[probes\] must be a list of paths"),
        ("[probes]\nsignals = ['Tx']", "a probe must be names joined by dots"),
        ("[probes]\nsignals = ['tx']\ndepth = 9", "the depth of probes must be a power of two"),
        ("[[role]]\nname = 'a'", r"each \[\[role\]\] must have a kind"),
        ("[[role]]\nkind = 'a'\nx = [1]", "role 'a': options must be"),
        ("[[service]]\nport = 3", r"each \[\[service\]\] must have port and framing"),
        ("[[service]]\nport = '3'\nframing = 'echo'", "a service's TCP port must be"),
    ],
)
def test_a_file_that_cannot_be(tmp_path, text, says):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(PlanError, match=f"^plan '.*plan.toml': .*{says}"):
        load_plan(path)
    with pytest.raises(PlanError, match="^plan '.*nothing' cannot be read: "):
        load_plan(tmp_path / "nothing")
