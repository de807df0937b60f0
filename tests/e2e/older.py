#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ETMv3: what only it traces, end to end. usage: older.py BUILD [NAME…]"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import check, main, only, same_streams, streams  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


# An ETMv3 with data trace: LDR of 0x5004, STRB to 0x5008, LDM of two words at 0x20000000.
DATA_TRACE = bytes.fromhex('000000000080 082101200000 84 2e84a00111223344 84 26087f 84 2a80808080023412 0656 84')
DATA_CODE = bytes.fromhex('0868' '0870' '03c9') + bytes.fromhex('0046') * 8
DATA_SETUP = ('[trace]\nformat=etm3,id=0x10\n[source cs.10]\nid=0x10\nprotocol=etm3\ncore=Cortex-A7\n'
              'ETMIDR=0x410CF250\nETMCR=0xC\n')
DATA_LINES = ['I 0000000000002000 6808',
              'A INST_MEM_ACCESS addr=0x5004 size=4 attr=0x0 access=1', 'A INST_MEM_CONTENT data=0x44332211',
              'I 0000000000002002 7008',
              'A INST_MEM_ACCESS addr=0x5008 size=1 attr=0x0 access=2', 'A INST_MEM_CONTENT data=0x7f',
              'I 0000000000002004 c903',
              'A INST_MEM_ACCESS addr=0x20000000 size=4 attr=0x0 access=1', 'A INST_MEM_CONTENT data=0x1234',
              'A INST_MEM_ACCESS addr=0x20000004 size=4 attr=0x0 access=1', 'A INST_MEM_CONTENT data=0x56',
              'I 0000000000002006 4600']


@test
def traced_data(lab):
    """Accesses to memory: with their instruction in text and STF, decoded here and served, found by address."""
    for name, content in ('data.bin', DATA_TRACE), ('code.bin', DATA_CODE), ('data.ini', DATA_SETUP.encode()):
        with open(lab.path(name), 'wb') as f:
            f.write(content)
    args = ['--config', lab.path('data.ini'), '--image', lab.path('code.bin') + '@0x2000']
    text = lab.run('decode', *args, '--text', lab.path('data.bin')).text()
    check(only(streams(text)['cs.10'], 'IA') == DATA_LINES, text)
    lab.run('decode', *args, '--out', lab.path('out'), lab.path('data.bin'))
    lab.start()
    lab.run('push', '--trace', 'd', *args, lab.path('data.bin'))
    same_streams(streams(text), streams(lab.run('get', 'd', '--format', 'text').text()), 'served')
    lab.run('get', 'd/cs.10', '-o', lab.path('served.stf'))
    for path in lab.path('out/cs.10.zstf'), lab.path('served.stf'):
        lab.run('check', path)
        records = re.findall(r'(?m)^\d+ \d+ \d+ (INST_(?:MEM|16).*?)(?: ;.*)?$', lab.run('dump', path).text())
        wanted = [line[2:] if line[0] == 'A' else 'INST_16 opcode=0x' + line.split()[2] for line in DATA_LINES]
        places = [i for i, line in enumerate(wanted) if line.startswith('INST_16')]
        groups = [wanted[i + 1:j] + [wanted[i]] for i, j in zip(places, places[1:] + [len(wanted)])]
        check(records == sum(groups, []), path, records)
    # The same, pushed as STF.
    lab.run('push', '--trace', 's', '--format', 'stf', lab.path('out/cs.10.zstf'))
    check(lab.run('find', 's', 'data:5000:0x30000000').text().count('\n') == 5, 'pushed STF')
    for what, insns in ('data:5004', ['0']), ('data:5000:5008', ['0']), ('data:5007', ['0']), ('data:5009', []), \
            ('data:0x5000:0x30000000', ['0', '1', '2', '2']):
        hits = [line.split()[0] for line in lab.run('find', 'd/cs.10', what, status=0 if insns else 1).text().splitlines()[1:]]
        check(len(hits) == len(insns), what, hits)
    lab.fails(2, r'no address', 'find', 'd/cs.10', 'data:x')
    for stream in 'd/cs.10', 's':
        told = [line.split(' ', 4)[3:] for line in lab.run('find', stream, '--data', '5000:30000000').text().splitlines()[1:]]
        check(told == [['0000000000002000', 'read 0x44332211 at 0x5004, 4 bytes'],
                       ['0000000000002002', 'write 0x7f at 0x5008, 1 byte'],
                       ['0000000000002004', 'read 0x1234 at 0x20000000, 4 bytes'],
                       ['0000000000002004', 'read 0x56 at 0x20000004, 4 bytes']], stream, told)
        asked = lab.run('sql', stream.split('/')[0], 'SELECT position, kind, address(pc) AS pc, address(address) AS address, '
                        'size, value FROM access WHERE address >= 20480 ORDER BY position', '--json').text()
        check([list(json.loads(line).values()) for line in asked.splitlines()] == [
            [0, 'read', '0x2000', '0x5004', 4, 0x44332211], [1, 'write', '0x2002', '0x5008', 1, 0x7f],
            [2, 'read', '0x2004', '0x20000000', 4, 0x1234], [2, 'read', '0x2004', '0x20000004', 4, 0x56]], stream, asked)
        one = lab.run('sql', stream.split('/')[0], 'SELECT address(pc) AS pc FROM access WHERE position = 1', '--json').text()
        check(one == '{"pc":"0x2002"}\n', stream, one)
        written = lab.run('find', stream, '--written', '5000:30000000').text()
        check(written.count('\n') == 2 and 'write 0x7f at 0x5008' in written, stream, written)
    # The instruction of an access may be in the shard before it.
    lab.stop()
    lab.start('--shard-insns', '1')
    lab.run('push', '--trace', 'd1', *args, lab.path('data.bin'))
    question = 'SELECT position, kind, pc, address, size, value FROM access'
    one, many = (lab.run('sql', trace, question, '--json').text() for trace in ('d', 'd1'))
    check(one == many and len(one.splitlines()) > 3, one, many)


@test
def data_alone(lab):
    """Data trace without instructions: each access has a place of its own, in the order of the trace."""
    accesses = b''.join(bytes([0x2a]) + bytes([address & 0x7f | 0x80, address >> 7 & 0x7f | 0x80, address >> 14]) + i.to_bytes(2, 'little')
                        for i in range(300) for address in [0x5000 + 4 * i])
    trace = bytes.fromhex('000000000080 0821') + accesses + bytes.fromhex('000000000080 0801') + accesses
    for name, content in ('data.bin', trace), ('data.ini', DATA_SETUP.replace('ETMCR=0xC', 'ETMCR=0x10000C').encode()):
        with open(lab.path(name), 'wb') as f:
            f.write(content)
    lab.start()
    pushed = lab.run('push', '--trace', 'd', '--config', lab.path('data.ini'), lab.path('data.bin')).text()
    check('d/cs.10 etm3-data: 600 records' in pushed, pushed)
    told = [line.split() for line in lab.run('find', 'd/cs.10', '--data', '5000:6000', '--limit', '0').text().splitlines()[1:]]
    check(len(told) == 600 and [int(t[0]) for t in told] == list(range(600)), told[:3], len(told))
    places = [int(t[2]) for t in told]
    check(all(trace[at:at + 1] == b'\x2a' for at in places) and len(set(places)) == 600, places[:5])
    check([t[4:] for t in told[7:8]] == [['access', '0x7', 'at', '0x501c']], told[7])
    asked = lab.run('sql', 'd', 'SELECT position, value FROM access WHERE address = 0x5004 ORDER BY position', '--json').text()
    check([list(json.loads(line).values()) for line in asked.splitlines()] == [[1, 1], [301, 1]], asked)


@test
def wrong_unit(lab):
    """A configuration that is of another unit, or of another mode of this one, is told by `setup --check`."""
    with open(lab.path('data.bin'), 'wb') as f:
        f.write(DATA_TRACE * 20)
    for name, change, wanted in (
            ('right', ('', ''), 'nothing in its packets contradicts'), ('ptm', ('=etm3', '=ptm'), 'are no packets of ptm'),
            ('only', ('ETMCR=0x', 'ETMCR=0x10000'), 'ETMCR says data only 1 (no instructions), the packets say 0')):
        setup = DATA_SETUP.replace(*change)
        check(name == 'right' or setup != DATA_SETUP, setup)
        with open(lab.path(name + '.ini'), 'w') as f:
            f.write(setup)
        told = lab.run('setup', '--check', '--config', lab.path(name + '.ini'), lab.path('data.bin'), status=int(name != 'right')).text()
        check(wanted in told, name, told)


if __name__ == '__main__':
    main(TESTS)
