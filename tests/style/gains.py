#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A file with instructions of one kind of processor says at its head what they bring to a user, and how to see it.

Its head (the comments before the first #include) has "End to end: …" with a figure in per cent and a command in
backticks, or says that no machine was there to measure it. See "The rule for speed" in HACKING.md.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = "base", "decoders", "analysis", "server", "client"
SPECIAL = re.compile(r"#include <(?:[a-z]+mmintrin|arm_neon|arm_acle)\.h>|^(?:TL_TARGET\(|TL_TARGET_BEGIN\()|target\(\"", re.M)
GAIN = re.compile(r"End to end: (?:[^`]*\d %[^`]*`[^`]+`|unknown, it has run under emulation alone)")


def find_silent():
    """Files with special instructions that do not say what they bring."""
    names = subprocess.run(["git", "ls-files", *(f"{p}/*.[ch]" for p in PARTS)], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split()
    for name in names:
        text = (ROOT / name).read_text()
        head = text.split("\n#include")[0]
        if name != "base/target.h" and SPECIAL.search(text) and not GAIN.search(re.sub(r"\n \*", "", head)):
            yield name


if __name__ == "__main__":
    silent = list(find_silent())
    for name in silent:
        print(f'{name}: its head does not say "End to end: …" with a figure in % and a `command`')
    print("files with special instructions that do not say what they bring:", len(silent))
    sys.exit(bool(silent))
