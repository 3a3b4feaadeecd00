"""Fuzzes the parsers on this machine: ``make fuzz``; those in C with ASan and UBSan.

A target is one file ``tests/fuzz/target_NAME.c`` (``fuzz.h`` says what is in it) with its corpus in
``tests/fuzz/corpus/NAME``. ``http_model`` is the golden model of the web service's parser against
two other parsers (``http_fuzz.py``); ``head_parser`` the gateware's parser, in Verilator, against
that model (``head_cases.py``). The same number of inputs and seed give the same inputs.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import head_cases
import http_fuzz
from firmware_host import FIRMWARE, WARNINGS, generated

FOLDER = Path(__file__).resolve().parent / "fuzz"
#: The golden model of the web service's parser, in Python.
MODEL = "http_model"
#: The gateware's parser, in Verilator.
HEADS = "head_parser"
TARGETS = tuple(sorted(p.stem.removeprefix("target_") for p in FOLDER.glob("target_*.c")))


def corpus(target):
    """Files of a target's corpus."""
    return sorted((FOLDER / "corpus" / target).iterdir())


def compiled(target, folder):
    """Compile a target into ``folder``; returns the driver's path."""
    source = FOLDER / f"target_{target}.c"
    first = source.read_text().splitlines()[0]
    names = re.fullmatch(r"// firmware: ([a-z_0-9/ ]+)", first)
    if names is None:
        raise ValueError(f"the first line of {source.name} must be '// firmware: NAME…'")
    sources = [FIRMWARE / f"{name}.c" for name in names[1].split()]
    flags = [*WARNINGS, "-O2", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    # Comparisons of strings with constants inline would not be seen by ASan.
    flags += ["-fno-builtin", f"-I{generated(folder)}", f"-I{FIRMWARE}", f"-I{FOLDER}"]
    path = folder / target
    command = ["gcc", *flags, "-o", path, FOLDER / "driver.c", source, *sources]
    subprocess.run(command, check=True)
    return path


def fuzz(target, inputs, seed, folder):
    """Run a target; returns ``(exit code, what it printed, path of an input with a fault)``."""
    fault = folder / f"{target}.fault"
    command = [compiled(target, folder), str(inputs), str(seed), fault, *corpus(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr, fault


def fuzz_heads(target, inputs, seed):
    """Fuzz the web service's parser, its model or gateware; exits with the first fault."""
    start = time.process_time()
    accepted, fault = IN_PYTHON[target](inputs, seed)
    if fault is not None:
        sys.exit(f"{target}: {fault}")
    rate = inputs / max(time.process_time() - start, 1e-9)
    print(f"{target}: {inputs} heads, {accepted} accepted, no fault, {rate / 1000:.0f} k a second")


#: Targets that are no C.
IN_PYTHON = {MODEL: http_fuzz.fuzz, HEADS: head_cases.fuzz}


def main():
    """Fuzz what the command line names."""
    parser = argparse.ArgumentParser(description="Fuzz the parsers.")
    targets = (*TARGETS, *IN_PYTHON)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(targets))
    parser.add_argument("--inputs", type=int, default=10_000_000, help="per target")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    unknown = set(options.targets) - set(targets)
    if unknown:
        parser.error(f"targets are {', '.join(targets)}, not {', '.join(sorted(unknown))}")
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for target in options.targets or targets:
        if target in IN_PYTHON:
            fuzz_heads(target, options.inputs, options.seed)
            continue
        code, text, _ = fuzz(target, options.inputs, options.seed, folder)
        if code:
            sys.exit(f"{target}: {text}")
        done = json.loads(text)
        rate = done["inputs"] / max(done["seconds"], 1e-9)
        print(f"{target}: {done['inputs']} inputs, no fault, {rate / 1000:.0f} k a second")


if __name__ == "__main__":
    main()
