#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A source file begins with what it does and why so: two sentences in front of its first line of code."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = "base", "decoders", "analysis", "server", "client"
HEAD = re.compile(r"/\* SPDX-License-Identifier: [^*]* \*/\n(?:\s*/\*(?P<text>.*?)\*/)?", re.S)
SENTENCE = re.compile(r"[.:!?](?=\s|$)")


def count_sentences(text):
    match = HEAD.match(text)
    return len(SENTENCE.findall(re.sub(r"\n \*", "", match["text"]))) if match and match["text"] else 0


def find_silent():
    """Files whose head has fewer than two sentences."""
    names = subprocess.run(["git", "ls-files", *(f"{p}/*.c" for p in PARTS)], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split()
    return [name for name in names if count_sentences((ROOT / name).read_text()) < 2]


if __name__ == "__main__":
    silent = find_silent()
    for name in silent:
        print(f"{name}: say in two sentences at its head what the file does, and why so")
    sys.exit(1 if silent else 0)
