"""Wrong inputs of every command, and a part of the line that each must be answered with."""

from pathlib import Path

__all__ = ["BOARD_FILES", "CASES", "FILES", "FOLDERS", "LATE", "LATE_CASES", "MORE", "PLANS"]

_VERSA = Path(__file__).resolve().parent.parent / "boards" / "versa_ecp5.py"


def _board(old: str = "", new: str = "", name: str = "mine") -> str:
    text = _VERSA.read_text().replace('name="versa_ecp5"', f'name="{name}"')
    for module in ("ecp5", "flash", "presets", "schema"):
        text = text.replace(f"from .{module} import", f"from trebuchet.boards.{module} import")
    text = text.replace("from . import ecp5", "from trebuchet.boards import ecp5")
    text = text.replace("from .ecp5_flash", "from trebuchet.boards.ecp5_flash")
    assert old in text, old
    return text.replace(old, new, 1)


#: A board file by its stem, and what `board check` says of it.
BOARD_FILES = {
    "number": ("BOARD = 5\n", "must define BOARD"),
    "nothing": ("", "must define BOARD"),
    "syntax": ("BOARD = (\n", "was never closed"),
    "import": ("import no_such_module\n", "no_such_module"),
    "raises": ("1 / 0\n", "ZeroDivisionError"),
    "field": (_board("tcp=", "tcpp="), "tcpp"),
    "missing": (_board('    device="LFE5UM-45F-8BG381C",\n'), "device"),
    "taken": (_board(name="ecpix5"), "ecpix5"),
    "badname": (_board(name="My Board"), "My Board"),
    "memory": (_board("128 << 20", "1 << 33"), "dram_bytes"),
    "clock": (_board("60_000_000", "470_000_000"), "470000000"),
    "negative": (_board("60_000_000", "-1"), "sys_clk_hz"),
    "flow": (_board('flow="trellis"', 'flow="quartus"'), "quartus"),
    "preset": (_board('tcp="lean"', 'tcp="huge"'), "huge"),
    "package": (_board("LFE5UM-45F-8BG381C", "LFE5UM-99F-8BG381C"), "LFE5UM-99F-8BG381C"),
    "cpu": (_board('cpu_variant="lite"', 'cpu_variant="ultra"'), "ultra"),
    "type": (_board("seed=2", 'seed="two"'), "seed"),
}

#: Of these `board check` finds what is wrong after it has generated the SoC: seconds.
LATE = ("clock", "package")

#: As LATE, of plans: an option of a role is looked at when the role is made.
LATE_PLAN = "plan_option"

#: A plan by its stem, and what is said of it.
PLANS = {
    "plan_syntax": ("[[role]\n", "plan_syntax.toml"),
    "plan_unknown": ("[[rolle]]\nkind = 'ecg'\n", "rolle"),
    "plan_kind": ("[[role]]\nkind = 'ecgg'\n", "ecgg"),
    "plan_option": ("[[role]]\nkind = 'ecg'\nspeed = 3\n", "speed"),
    "plan_many": ("[[role]]\nkind = 'ecg'\ninstances = 1000\n", "instances"),
    "plan_port": (
        "[[service]]\nport = 7\nframing = 'echo'\n[[service]]\nport = 7\nframing = 'discard'\n",
        "7",
    ),
    "plan_range": ("[[service]]\nport = 70000\nframing = 'echo'\n", "70000"),
    "plan_framing": ("[[service]]\nport = 7\nframing = 'telnet'\n", "telnet"),
    "plan_role": ("[[service]]\nport = 4000\nframing = 'smp'\nrole = 'x'\n", "x"),
    "plan_value": ("role = 3\n", "role"),
}

#: Other files in the folder.
FILES = {
    "afile": "hello\n",
    "empty.bin": "",
    "text.bin": "hello, this is no image of a board\n" * 4,
    "jump.bin": "o\0\0\v",  # as firmware begins
    "broken.toml": "= = =\n",
    "other.toml": "colour = 'red'\n",
    "broken.yaml": "boards: [1, 2\n",
    "other.yaml": "boards: 3\n",
}

#: Words of the command, part of the line. Section 4 of the list of a newcomer's mistakes is first.
CASES = [
    ("build ecpx5", "did you mean 'ecpix5'"),
    ("boards", "No such command 'boards'. Did you mean 'board'"),
    ("stat", "No such command 'stat'. Did you mean 'status'"),
    ("build ./nofile.py", "no board file nofile.py"),
    ("board check ./nofile.py", "no board file nofile.py"),
    ("load ecpix5 --output .", "trebuchet build ecpix5"),
    ("flash ecpix5 --output .", "trebuchet build ecpix5"),
    ("status 127.0.0.1:1", "trebuchet discover"),
    ("status 999.1.1.1", "999.1.1.1"),
    ("sessions", "Missing argument 'board'"),
    ("sim --role crc23c", "crc23c"),
    ("sim bord", "did you mean 'board'"),
    ("sim --loss 200%", "--loss must be"),
    ("role new Blur", "Blur"),
    ("role new ecg", "ecg"),
    ("prove nothere", "nothere"),
    ("bench nothere", "nothere"),
    # Commands and options.
    ("build", "Missing argument 'board'"),
    ("build ecpix5 --sed 3", "--seed"),
    ("build ecpix5 --seed two", "--seed"),
    ("build ecpix5 --seed 0", "--seed"),
    ("build ecpix5 --clock fast", "fast"),
    ("build ecpix5 --clock 0MHz", "clock"),
    ("build ecpix5 --ip 1.2.3", "1.2.3"),
    ("build ecpix5 --ip 192.0.2.300", "192.0.2.300"),
    ("build ecpix5 --set uart_baud", "uart_baud"),
    ("build ecpix5 --set nothing=1", "nothing"),
    ("build ecpix5 --set dhcp=maybe", "dhcp"),
    ("build ecpix5 --tcp enormous", "enormous"),
    ("build ecpix5 --tcp lean:sessions=many", "sessions"),
    ("build ecpix5 --role ecg:colour=red", "colour"),
    ("build ecpix5 --role burnin:lanes=0", "lanes"),
    ("build ecpix5 --service 7", "7"),
    ("build ecpix5 --service 7=telnet", "telnet"),
    ("build ecpix5 --engine sideways=crc32c", "sideways"),
    ("build ecpix5 --plan none.toml", "none.toml"),
    ("build ecpix5 --roles ./nowhere", "nowhere"),
    ("board lst", "Did you mean 'list'"),
    ("demo wbe", "Invalid value for 'what': 'wbe' is not one of 'ecg', 'web'"),
    ("board new b --from machdyne_kopflos", "name it, such as --device 45F"),
    ("role csr ecgg", "ecg"),
    ("role csr ecg --base 3", "multiple of 4"),
    ("role csr ecg --c --json", "choose one"),
    ("core generate tpc", "tcp"),
    ("core generate tcp -c broken.toml", "broken.toml"),
    ("core generate tcp -c other.toml", "colour"),
    ("core generate tcp -c none.toml", "none.toml"),
    # The simulated board.
    ("sim --uart tape", "tape"),
    ("sim --time never", "never"),
    ("sim --reorder 1.5", "--reorder must be"),
    ("sim --corrupt nan", "--corrupt"),
    ("sim --delay -1", "--delay"),
    ("sim --boards 99", "--boards"),
    ("sim --topology none.yaml", "none.yaml"),
    ("sim --topology broken.yaml", "broken.yaml"),
    ("sim --topology other.yaml", "boards"),
    ("sim --tap a/b", "a/b"),
    ("sim --tap name_of_an_interface", "name_of_an_interface"),
    ("sim --web nowhere", "nowhere"),
    ("sim --trace nowhere/x.fst", "nowhere"),
    ("sim --pcap nowhere/x.pcap", "nowhere"),
    ("sim --gdb 70000", "--gdb"),
    ("sim shell --pid 1", "trebuchet sim"),
    ("sim shell --exec true", "trebuchet sim"),
    # Addresses.
    ("status 127.0.0.1:99999", "HOST:PORT"),
    ("status ::1", "HOST:PORT"),
    ("sessions 127.0.0.1:1", "trebuchet discover"),
    ("manage 127.0.0.1:1 version", "trebuchet discover"),
    ("registers 127.0.0.1:1 tcp", "trebuchet discover"),
    ("matmul run 127.0.0.1:1", "trebuchet discover"),
    ("burnin 127.0.0.1:1", "trebuchet discover"),
    ("burnin 127.0.0.1 --bytes 20", "multiple of 16"),
    ("burnin 127.0.0.1 --inject dsp", "multiplier"),
    ("health 127.0.0.1 --damaged 2000000", "--damaged"),
    ("discover --network 10.0.0.0/99", "10.0.0.0/99"),
    ("discover --interface eth99", "eth99"),
    ("status 127.0.0.1 --watch 0", "--watch"),
    ("status 127.0.0.1 --timeout nan", "--timeout"),
    ("console /dev/nowhere", "/dev/nowhere"),
    ("run ecpx5", "did you mean 'ecpix5'"),
    # Files.
    ("image show none.bin", "none.bin"),
    ("image show text.bin", "text.bin"),
    ("image show empty.bin", "empty.bin"),
    ("image pack none.bin --board ecpix5 -o x.img", "none.bin"),
    ("config show none.bin", "none.bin"),
    ("config show text.bin", "text.bin"),
    ("config pack ip -o x.cfg", "ip"),
    ("update 127.0.0.1:1 none.img", "none.img"),
    ("flash ecpix5 none.img", "none.img"),
    ("ecg run --record nowhere.hea", "nowhere"),
    ("ecg run --record synthetic --plot x.doc", "x.doc"),
    ("ecg run --record synthetic --minutes -3", "minutes"),
    ("scale --set speed=fast", "speed"),
    ("scale --plot x.doc", "x.doc"),
    ("jobd --node nowhere", "nowhere"),
    ("jobd --nodes none.txt", "none.txt"),
    ("release ecpx5", "ecpx5"),
    ("release ecpix5", "trebuchet build ecpix5"),
    ("prove skid_buffer --depth 0", "--depth"),
    ("prove ''", "there is no proof ''"),
    ("nightly ''", "no nightly work whose name begins with ''"),
    ("nightly nothere", "nothere"),
    ("demo --record none.hea", "there is no record"),
    ("demo --boards 1", "--boards"),
    *(
        (f"board check ./{stem}.py", said)
        for stem, (_, said) in BOARD_FILES.items()
        if stem not in LATE
    ),
    *(
        (f"board check ecpix5 --plan {stem}.toml", said)
        for stem, (_, said) in PLANS.items()
        if stem != LATE_PLAN
    ),
]

#: Folders, and the files in them.
FOLDERS = {"adir": ("x",), "emptydir": (), "adir.py": (), "adir.toml": (), "adir.fst": ()}

#: As CASES: files that are folders, folders that are files, numbers out of range, ports in use.
#: PORT is a port of this machine that is taken, HANGS_UP an address where connections are closed,
#: ANOTHER the address of a server that is no board and has a page /status.
MORE = [
    # The simulated board: all before anything is generated.
    ("sim --loss=", "--loss must be"),
    ("sim --loss 5", "--loss must be"),
    ("sim --delay 99999999999999999999", "--delay"),
    ("sim --delay 5ms", "--delay"),
    ("sim --max-rate inf", "--max-rate"),
    ("sim --max-rate nan", "--max-rate"),
    ("sim --drive afile/x", "--drive afile/x: Not a directory"),
    ("sim --drive afile", "truncate --size %512 afile"),
    ("sim --sd none.img", "--sd none.img: No such file"),
    ("sim --sd emptydir", "this is no file"),
    ("sim --flash afile", "--flash afile: must have 1048576 bytes, not 6"),
    ("sim --flash afile/x", "--flash afile/x"),
    ("sim --trace x.vcd", "end the name in .fst"),
    ("sim --trace adir.fst", "this is a folder"),
    ("sim --uart file:adir", "--uart adir: this is a folder"),
    ("sim --uart file:afile/x", "--uart afile/x: there is no folder"),
    ("sim web --web emptydir", "there is no file in it"),
    ("sim --web afile", "--web afile is no folder"),
    ("sim --fabric web", "--fabric is another top than 'web'"),
    ("sim bridge --fabric", "--fabric is another top than 'bridge'"),
    ("sim --gdb PORT", "choose another port"),
    ("sim --ip 192.0.2.0", "must be 1 to 254"),
    ("sim --ip 192.0.2.255", "must be 1 to 254"),
    ("sim --exec=", "--exec must be a command"),
    ("sim --role ecg:instances=2,instances=3", "says instances twice"),
    ("sim --role ecg:", "KIND:KEY=VALUE"),
    ("sim --tcp lean:", "PRESET:FIELD=VALUE"),
    ("sim --tcp lean:sessions=2,sessions=4", "says sessions twice"),
    ("sim --gdb 0 --tcp lean", "--gdb and --tcp exclude each other; leave"),
    ("sim --boards 2 --gdb 3333", "leave it out"),
    ("sim --topology adir", "adir"),
    # Builds, and boards.
    ("build ./adir.py", "adir.py is a folder, not a board file"),
    ("build ecpix5 --output afile", "afile is a file; choose another folder"),
    ("build ecpix5 --output afile/x", "Not a directory"),
    ("build ecpix5 --seeds 0", "--seeds"),
    ("build ecpix5 --clock 1THz", "1THz"),
    ("board new afile/x --from machdyne_kopflos --device 45F", "afile/x"),
    ("board new ecpix5 --from machdyne_kopflos --device 45F", "ecpix5"),
    ("flash ecpix5 emptydir --output .", "cannot read emptydir: Is a directory"),
    ("flash sim", "docs/porting.md"),
    ("flash ecpix5 text.bin", "make one with trebuchet image pack"),
    ("update 127.0.0.1:1 text.bin", "make one with: trebuchet image pack"),
    # One command to a result: its parts are checked before the board is compiled.
    ("run sim -- nothere", "No such command 'nothere'"),
    ("run sim -- status --nonsense", "No such option: --nonsense"),
    ("run sim -- ecg rn", "Did you mean 'run'"),
    ("run sim -- burnin --bytes twenty", "--bytes"),
    ("run sim -- sim", "'sim' talks to no board"),
    ("run ecpix5 -- build ecpix5", "'build' talks to no board"),
    ("run ecpix5 --address 1.2.3.400", "1.2.3.400"),
    ("run ecpix5 --address a:b:c", "HOST:PORT"),
    ("run ecpix5 --port /dev/nowhere", "/dev/nowhere"),
    ("run ecpix5 --port adir", "there is no serial port"),
    ("run sim --port /dev/ttyUSB0", "leave them out"),
    # Boards that are none.
    ("status HANGS_UP", "is it a Trebuchet board"),
    ("sessions HANGS_UP", "trebuchet health"),
    ("manage HANGS_UP version", "trebuchet health"),
    ("registers HANGS_UP tcp", "is it a Trebuchet board"),
    ("probe HANGS_UP", "is it a Trebuchet board"),
    ("web status HANGS_UP", "trebuchet health"),
    ("web load HANGS_UP adir", "trebuchet health"),
    ("matmul run HANGS_UP", "trebuchet health"),
    ("status ANOTHER", "is it a Trebuchet board"),
    ("status ANOTHER --json", "trebuchet discover"),
    ("registers ANOTHER tcp.rto_min", "is it a Trebuchet board"),
    ("sessions ANOTHER", "is it a Trebuchet board"),
    ("status ' '", "HOST:PORT"),
    ("status http://127.0.0.1", "HOST:PORT"),
    ("status 127.0.0.1:80/status", "HOST:PORT"),
    ("health 127.0.0.1:99999", "HOST:PORT"),
    ("health a:b:c", "HOST:PORT"),
    ("probe 127.0.0.1:1 --list --arm", "choose one of them"),
    ("probe 127.0.0.1:1 --list -o x.fst", "--output is for records that are read"),
    ("probe 127.0.0.1:1 --arm -o x.fst", "--output is for records that are read"),
    ("probe 127.0.0.1:1 --list --trigger a:rise", "--list captures nothing"),
    ("registers 127.0.0.1:1 --map empty.bin", "empty.bin is no register map"),
    # Files.
    ("store make emptydir -o afile/x", "cannot write afile/x: Not a directory"),
    ("store make adir -o nofolder/x.img", "nofolder/x.img"),
    ("store make adir -o x.img --size 4 --fat 32", "give --size 33"),
    ("config send 127.0.0.1:1 empty.bin", "trebuchet config message"),
    ("config pack empty.bin -o emptydir", "cannot write emptydir: Is a directory"),
    ("config pack empty.bin -o afile/x", "cannot write afile/x: Not a directory"),
    ("image show afile/x", "afile/x"),
    ("image pack jump.bin --board ecpix5 -o adir", "cannot write adir: Is a directory"),
    ("image pack text.bin --board ecpix5 -o x.img", "text.bin: this is no firmware"),
    ("image pack text.bin --board ecpix5 --kind bitstream -o x.img", "this is no bitstream"),
    ("image send /dev/null text.bin", "`trebuchet image pack` makes one"),
    ("core generate tcp -c adir.toml", "adir.toml"),
    ("ecg run --record synthetic --weights adir", "cannot read adir: Is a directory"),
    ("ecg run --record synthetic --weights text.bin", "text.bin does not hold weights"),
    ("ecg run --record synthetic --preset nope", "faithful"),
    ("scale --plot emptydir.png/x.png --probes 1", "--probes"),
    # Servers and models.
    ("jobd --node 127.0.0.1:99999", "HOST:PORT"),
    ("jobd --node 127.0.0.1:1@70000", "HOST:PORT"),
    ("jobd --node 127.0.0.1:1 --user-port PORT", "choose another port, or 0"),
    ("jobd --node 127.0.0.1:1 --address 1.2.3", "1.2.3"),
    ("jobd --node 127.0.0.1:1 --address 203.0.113.1", "an IPv4 address of this machine"),
    ("jobd --node 127.0.0.1:1 --congestion nope --user-port 0 --node-port 0", "nope"),
    ("jobd --user-port 0 --node-port 0 --job-log adir", "--job-log adir: this is a folder"),
    ("jobd --user-port 0 --node-port 0 --job-log afile/x", "--job-log afile/x"),
    ("jobd --nodes text.bin", "--nodes text.bin, line 1:"),
    ("node --port 65535 --boards 3", "at most 65533"),
    ("node --port PORT", "choose another port"),
    ("node --server x", "--server must be HOST:PORT"),
    ("renode sim --tap a/b --print-only", "a/b"),
    ("renode sim --flash adir --print-only", "--flash adir: this is a folder"),
    ("renode sim --firmware none.elf --print-only", "none.elf"),
    ("renode sim --firmware text.bin --print-only", "no ELF file"),
    ("renode sim --role ecg --print-only", "none or loopback"),
    # Demonstrations, and the tree.
    ("demo web --folder emptydir", "--folder emptydir: there is no file in it"),
    ("demo web --folder adir --port PORT", "choose another with --port"),
    ("demo web --boards 2", "leave them out"),
    ("demo --users 3", "--boards N"),
    ("demo --plot adir/x.doc", "x.doc"),
]

LATE_CASES = [(f"board check ./{stem}.py", BOARD_FILES[stem][1]) for stem in LATE]
LATE_CASES.append((f"board check ecpix5 --plan {LATE_PLAN}.toml", PLANS[LATE_PLAN][1]))
