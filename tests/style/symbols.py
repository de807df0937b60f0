#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Dependencies between rooms, as the linker sees them: symbols.py BUILD.

A room (a folder of rooms.txt) may use symbols of the rooms in its row, and of none above it; what a room's headers
declare is defined in that room. A function or table that no other object uses, of a test or a program, is not global.
Read from the objects of the build by nm, so that a declaration somewhere else, or a
header that only passes something on, does not hide a dependency. With --table, the uses between rooms as text.
"""
import collections
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
PARTS = ("base", "decoders", "analysis", "server", "client")


def read_rooms():
    """{room: [what it may use]}, in the order of the file, from below to above; symbols that programs provide."""
    rooms, provided = {}, set()
    for line in (TOP / "tests/style/rooms.txt").read_text().splitlines():
        row, _, symbols = line.split("#")[0].partition(" provides ")
        words = row.split()
        if words:
            rooms[words[0]] = words[1:]
        provided.update(symbols.split())
    return rooms, provided


def room_of_object(path, build):
    """The room and the source of an object, such as server/CMakeFiles/tl_lake.dir/raw/spool.c.o."""
    m = re.match(r"(\w+)/CMakeFiles/[^/]+\.dir/(.+)\.o$", str(path.relative_to(build)))
    if not m or m[1] not in PARTS:
        return None, None
    folder, _, name = m[2].rpartition("/")
    return f"{m[1]}/{folder or '.'}", f"{m[1]}/{m[2]}"


def is_of_source(path, build):
    """False for what is left of a source that has moved."""
    source = room_of_object(path, build)[1]
    return source is not None and (TOP / source).exists()


def read_objects(build):
    """Where each symbol is defined, and {source: symbols it uses}."""
    defined, uses = {}, collections.defaultdict(set)
    objects = [p for part in PARTS for p in (build / part).rglob("*.o") if is_of_source(p, build)]
    out = subprocess.run(["nm", "-P", "-A", *map(str, objects)], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        where, name, kind = line.split()[:3] if len(line.split()) > 2 else (None, None, None)
        if not where:
            continue
        room, source = room_of_object(pathlib.Path(where.rstrip(":")), build)
        if not room:
            continue
        if kind == "U":
            uses[source].add(name)
        elif kind in "TDBRCVW" and name.startswith(("tl_", "tracelake_")):  # client/late has libraries' names
            defined.setdefault(name, (room, source))
    return defined, uses


def room_of_source(source):
    folder = source.rpartition("/")[0]
    return folder if "/" in folder else folder + "/."


def declared_functions(path):
    """Names of functions that a header declares."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)
    text = re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.S | re.M)
    return set(re.findall(r"^[A-Za-z_][\w \t*]*?\b(tl_\w+)\([^;{]*\)[^;{]*;", text, flags=re.M))


def interfaces():
    """{header of a part's top level: what it declares}; the rooms below implement it together."""
    return {h.name: declared_functions(h) for h in (TOP / "server").glob("*.h")}


def may_use(room, row, target, symbol, faces):
    short = target.split("/", 1)[1]
    if target.split("/")[0] != room.split("/")[0]:
        return short in row or target.split("/")[0] in row
    if short in row or any(w.startswith(short + "/") and w.endswith(".h") for w in row):
        return True
    return any(symbol in faces[w] for w in row if w in faces)


def check_order(rooms):
    """Each row names only rooms that stand above it in the file, which is the order from below."""
    names = {r.split("/", 1)[1]: r for r in rooms} | {r.split("/")[0]: r for r in rooms if r.endswith("/.")}
    faults, seen = [], set()
    for room, row in rooms.items():
        for word in row:
            name = names.get(word) or names.get(word.split("/")[0])
            if name and name not in seen and name != room:
                faults.append(f"rooms.txt: {room} stands before {name}, which it may use")
        seen.add(room)
    return faults


def used_by_others(build, parts_uses):
    """All symbols that objects of the build use, also of tests, programs and the fuzz targets."""
    used = set().union(*parts_uses.values())
    others = [p for p in build.rglob("*.o") if p.relative_to(build).parts[0] not in PARTS]
    for at in range(0, len(others), 500):
        out = subprocess.run(["nm", "-P", "-u", *map(str, others[at:at + 500])], capture_output=True, text=True,
                             check=True).stdout
        used.update(line.split()[0] for line in out.splitlines() if " U" in line)
    return used


def check_needless(build, defined, uses):
    """Globals without any user. The client library's are for programs that are not here."""
    used = used_by_others(build, uses)
    return [f"{source}: {name} is global, but only its own file uses it" for name, (_, source) in defined.items()
            if name.startswith("tl_") and name not in used]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    (rooms, provided), faces = read_rooms(), interfaces()
    defined, uses = read_objects(build)
    faults, table = check_order(rooms), collections.defaultdict(set)
    for source, symbols in sorted(uses.items()):
        room = room_of_source(source)
        for symbol in sorted(symbols):
            target, where = defined.get(symbol, (None, None))
            if target is None or target == room or symbol in provided:
                continue
            table[room, target].add(symbol)
            if room not in rooms:
                faults.append(f"{source}: no row for {room} in rooms.txt")
            elif not may_use(room, rooms[room], target, symbol, faces):
                faults.append(f"{source} uses {symbol} of {where}, which is not below {room}")
    for room in rooms:
        for header in sorted((TOP / room).glob("*.h")):
            for name in sorted(declared_functions(header)):
                place = defined.get(name)
                if room.endswith("/.") or not place or place[0] == room:
                    continue
                faults.append(f"{header.relative_to(TOP)} declares {name}, which {place[1]} defines")
    faults += check_needless(build, defined, uses)
    if "--table" in sys.argv:
        for (room, target), symbols in sorted(table.items()):
            print(f"{room} {target} {len(symbols)}")
    print(*sorted(set(faults)), sep="\n")
    print(f"{sum(map(len, table.values()))} uses between {len(rooms)} rooms, {len(set(faults))} not allowed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
