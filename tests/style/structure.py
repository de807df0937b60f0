#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A picture of the rooms and of who uses whom, from rooms.txt and the build's symbols: structure.py BUILD > FILE.svg.

Each part is a column, its rooms from below to above as in rooms.txt, which is the order that symbols.py checks. A line
goes from a room to one that it uses, at the left of the column, the further out the further it goes.
"""
import pathlib
import sys

import symbols

WIDTH, HEIGHT, LEFT, TOP = 132, 26, 150, 34
COLOURS = {"base": "#495057", "decoders": "#0b7285", "analysis": "#a61e4d", "server": "#5f3dc4", "client": "#2b8a3e"}


def find_uses(build):
    """{(room, room it uses)} within a part; what stands in for others (rados/none) counts as the same room."""
    rooms, provided = symbols.read_rooms()
    defined, uses = symbols.read_objects(build)
    pairs = set()
    for source, names in uses.items():
        room = symbols.room_of_source(source)
        for name in names:
            target = defined.get(name, (None,))[0]
            if target and target != room and name not in provided and target.split("/")[0] == room.split("/")[0]:
                pairs.add((room, target))
    return rooms, pairs


def draw_part(part, names, pairs, x, bottom):
    """SVG of one column whose rooms are `names`, from below."""
    where = {name: bottom - (i + 1) * (HEIGHT + 8) for i, name in enumerate(names)}
    colour, out = COLOURS[part], []
    for room, target in sorted(pairs):
        if room in where and target in where:
            y, z = where[room] + HEIGHT / 2, where[target] + HEIGHT / 2
            reach = 10 + min(LEFT - 24, abs(z - y) / 5)
            out.append(f'<path d="M{x} {y:.0f}C{x - reach:.0f} {y:.0f} {x - reach:.0f} {z:.0f} {x} {z:.0f}" '
                       f'fill="none" stroke="{colour}" stroke-opacity=".35"/>')
    for name, y in where.items():
        label = name.split("/", 1)[1]
        out.append(f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="{colour}"/>'
                   f'<text x="{x + WIDTH / 2}" y="{y + 17}" text-anchor="middle" fill="#fff">'
                   f'{"(top)" if label == "." else label}</text>')
    out.append(f'<text x="{x + WIDTH / 2}" y="{bottom + 20}" text-anchor="middle" fill="{colour}" '
               f'font-weight="bold">{part}</text>')
    return out


def main():
    rooms, pairs = find_uses(pathlib.Path(sys.argv[1]).resolve())
    columns = {p: [r for r in rooms if r.startswith(p + "/") and r not in ("client/include", "server/rados/none")]
               for p in symbols.PARTS}
    bottom = TOP + max(map(len, columns.values())) * (HEIGHT + 8)
    width = len(columns) * (LEFT + WIDTH) + 30
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 34}" '
          f'font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="#fff"/>'
          f'<text x="20" y="22" fill="#444">a room uses rooms below it; lines lead to what it uses</text>')
    for i, (part, names) in enumerate(columns.items()):
        print(*draw_part(part, names, pairs, LEFT + i * (LEFT + WIDTH), bottom), sep="\n")
    print("</svg>")


if __name__ == "__main__":
    main()
