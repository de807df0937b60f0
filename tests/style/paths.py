#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every file and folder of the tree that a manual or a comment names exists, as does every section that a link names.

A path begins at the top of the tree, or where an #include's does, in a room (`flow/item.h`) or a folder of tests.
Names with a wildcard or a placeholder in them (`test_*.c`, `bench_NAME.c`, `unit/test_<module>.c`) are no paths.
"""
import posixpath
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
TOPS = "base", "decoders", "analysis", "server", "client", "tests", "web", "packaging", "proto", "docs"
# What names a file even where it does not begin at the top.
SOURCE = re.compile(r"[\w./-]+\.(?:c|h|py|sh|md|ts|mjs|proto)")
# Where files of other projects and of the system begin.
OTHERS = "include/uapi/", "tools/perf/", "inc/", "llvm-c/", "google/"
# A path: parts with slashes between them, of which the last one is a file's name or any folder's.
PATH = re.compile(r"(?<![\w./~$@:{}<>*-])((?:[\w.-]+/)+(?:[\w-]+(?:\.[\w-]+)*)?)(?![\w*<{/$-])")
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(/\*.*?\*/|//[^\n]*)', re.S)


def list_files():
    """All files of the tree but those that git ignores."""
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True)
    return {f for f in out.stdout.split("\n") if f and (ROOT / f).exists()}


def list_tails(file):
    """How the file and the folders that it is in can be named: from the top, or from any folder below it."""
    parts = file.split("/")
    for end in range(1, len(parts) + 1):
        for begin in range(end):
            yield "/".join(parts[begin:end])


def find_sections(text):
    """What a link may name behind '#': headings in lower case, without marks, blanks as hyphens."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


def take_comments(text):
    """The text with all but its comments blank, so that lines keep their numbers."""
    kept, at = [], 0
    for m in COMMENT.finditer(text):
        kept.append("\n" * text.count("\n", at, m.start()))
        kept.append(m.group(1) or "\n" * m.group(0).count("\n"))
        at = m.end()
    return "".join(kept)


class Tree:
    def __init__(self):
        self.files = list_files()
        self.tails = {tail for f in self.files for tail in list_tails(f)}

    def has(self, path, beside):
        """Whether `path` is there from the top, beside the file that names it, or as the end of a path."""
        path = path.rstrip("/")
        near = posixpath.normpath(PurePosixPath(beside).parent / path)
        return not self.tails.isdisjoint((path, near))

    def is_path(self, token):
        """A path of the tree, and not something else with slashes in it (MB/s, a URL's, a system's folder)."""
        return token.split("/")[0] in TOPS or bool(SOURCE.fullmatch(token)) and not token.startswith(OTHERS)

    def check_text(self, name, text):
        for line, words in enumerate(text.split("\n"), 1):
            for token in (t.rstrip(".") for t in PATH.findall(words)):
                if self.is_path(token) and not self.has(token, name):
                    yield f"{name}:{line}: {token} is not in the tree"

    def check_links(self, name, text):
        for line, words in enumerate(text.split("\n"), 1):
            for target in LINK.findall(words):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, section = target.partition("#")
                file = (ROOT / name).parent / path if path else ROOT / name
                if not file.exists():
                    yield f"{name}:{line}: the link to {target} leads nowhere"
                elif section and section not in find_sections(file.read_text()):
                    yield f"{name}:{line}: {target}: no such section"


def check_tree():
    tree = Tree()
    for name in sorted(tree.files):
        if name.endswith(".md"):
            text = (ROOT / name).read_text()
            yield from tree.check_text(name, text)
            yield from tree.check_links(name, text)
        elif name.endswith((".c", ".h")):
            yield from tree.check_text(name, take_comments((ROOT / name).read_text()))


if __name__ == "__main__":
    faults = list(check_tree())
    print("\n".join(faults) if faults else "paths in manuals and comments: fine")
    sys.exit(bool(faults))
