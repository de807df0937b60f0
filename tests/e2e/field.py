# SPDX-License-Identifier: MIT
"""Small captures of kinds that users have, each with what is right for it."""

import base64
import collections
import json
import os
import re
import struct
import urllib.request
import zlib

from e2e import only, simulated, streams, wait_sealed
from lab import check, main

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def file(lab, name, data):
    path = lab.path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return path


def ask(lab, path):
    with urllib.request.urlopen(lab.url + '/api/v1/traces/' + path, timeout=240) as reply:
        return json.load(reply)


# ---- Cortex-M ----

# nop; bl 1060; nop; nop; b .   1040: nop; nop; nop; bx lr   1060: push {r4, lr}; bl 1040; cmp r0, #0;
# beq .+4; nop; pop {r4, pc}   1080, 10a0: nop; bx lr
CODE = bytes.fromhex(
    '00bf00f02df800bf00bffee7' + '00' * 52 + '00bf00bf00bf7047' + '00' * 24 +
    '10b5fff7edff002800d000bf10bd' + '00' * 18 + '00bf7047' + '00' * 28 + '00bf7047')


def snapshot(lab, name, trace):
    """A snapshot of a Cortex-M core with an ETM of version 4.2."""
    file(lab, name + '/snapshot.ini', '[snapshot]\nversion=1.0\n[device_list]\ndevice0=cpu.ini\n'
         'device1=etm.ini\n[trace]\nmetadata=trace.ini\n')
    file(lab, name + '/cpu.ini', '[device]\nname=cpu_0\nclass=core\ntype=ARMv7-M\n[regs]\nPC=0\n'
         '[dump1]\nfile=code.bin\naddress=0x1000\nlength=0x%x\n' % len(CODE))
    file(lab, name + '/etm.ini', '[device]\nname=ETM_0\nclass=trace_source\ntype=ETM4.2\n[regs]\n'
         'TRCCONFIGR=0x800\nTRCTRACEIDR=0x10\nTRCIDR0=0x080006e1\nTRCIDR1=0x4100f401\nTRCIDR2=4\n'
         'TRCIDR8=0\n')
    file(lab, name + '/trace.ini', '[trace_buffers]\nbuffers=b0\n[b0]\nname=B0\nfile=trace.bin\n'
         'format=source_data\n[core_trace_sources]\ncpu_0=ETM_0\n[source_buffers]\nETM_0=B0\n')
    file(lab, name + '/code.bin', CODE)
    file(lab, name + '/trace.bin', trace)
    return lab.path(name)


BEGIN = bytes(11) + bytes.fromhex('8001000483' '0010000000f7f7')  # to 1060


@test
def interrupts_by_number(lab):
    """An interrupt has the architecture's number, however the trace encodes it."""
    trace = BEGIN + bytes.fromhex('062f9b211000009b40100000f7079b211000000691109b211000009b40100000f7'
                                  '079b21100000068d119b211000009b40100000f7079b21100000f7')
    text = lab.run('decode', '--snapshot', snapshot(lab, 'irq', trace), '--text').text()
    found = [line[2:-17] for line in text.splitlines() if line.startswith('X')]
    check(found == ['irq7 23', 'irq8 24', 'irq38 54'], found)


@test
def tail_chained(lab):
    """Handlers that follow each other directly have the same depth."""
    chained = '070623' '9b7fffffff' '9b50100000' 'f7'
    trace = BEGIN + bytes.fromhex('06219b211000009b40100000f7' + 4 * chained +
                                  '079b21100000f79b33100000f6f79b03100000f7f7f7')
    lab.start()
    lab.run('push', '--snapshot', snapshot(lab, 'm', trace), '--trace', 't')
    for i in range(5):
        for part in ('depth        3\n', 'begins at    %d\n' % (5 + 2 * i), 'instructions 2\n',
                     'exception    %d\n' % (17 if i else 16)):
            check(part in lab.run('call', 't.B0/cs.10', '--insn', str(5 + 2 * i)).text(), i, part)
    check('depth        2\n' in lab.run('call', 't.B0/cs.10', '--insn', '15').text())


# ---- timestamps that begin again ----

def stamp(ticks):
    """An ETM timestamp of 64 bits, all bytes sent."""
    return b'\x02' + bytes(ticks >> 7 * i & 0x7f | 0x80 for i in range(8)) + bytes([ticks >> 56 & 255])


@test
def time_segments(lab):
    """A counter that begins again: a new segment behind the one before, with times as they are inside."""
    turns = b''.join(stamp(1000 * (1 + i % 200)) + b'\xf7' * 3 for i in range(400))
    trace = snapshot(lab, 'ts', bytes(11) + bytes.fromhex('8001000483' '0510000000') + turns)
    said = lab.run('decode', '--snapshot', trace, '--text')
    check(said.out.decode().count('\nA time-restart 200000 1000\nT 1000\n') == 1, said)
    check('timestamps begin again' in said.err.decode() and said.status == 0, said.err)
    lab.start()
    lab.run('push', '--snapshot', trace, '--trace', 't')
    where = lab.run('find', 't.B0', '--event', 'note').text().split('\n')
    check(len(where) == 3 and where[1].startswith('600 200001 ') and
          where[1].endswith('note time-restart 200000 1000'), where)
    for first, last in ((1000, 200001), (200001, 399002)):
        text = lab.run('get', 't.B0', '--text', '--time', '%d:%d' % (first, last)).text()
        check('\nT 2000\n' in text and '\nT 199000\n' in text, first, text[:300], text[-300:])
    # In the middle of both segments.
    for time, ticks in ((50000, 50000), (250001, 51000)):
        text = lab.run('get', 't.B0', '--text', '--time', '%d:%d' % (time, time + 1)).text().split('\n')
        check('T %d' % ticks in text and len([t for t in text if t[:1] == 'I']) <= 3, time, text)


# ---- printing by ITM ----

BOOT = bytes.fromhex('0162c0e807' '016f016f0174010ac00a')  # 1000: b, 1010: oot
ADC = bytes.fromhex('0161c08827' '01640163010ac00a')  # 5000 later: a, 10 later: dc
LATE = bytes.fromhex('70' '016cc0c801' '016101740165010ac00a')
SYNC = bytes.fromhex('000000000080')


def printed(lab, *args):
    return lab.run('get', *args, '--lines').text().split('\n')[1:-1]


def push_itm(lab, name, data, *options, status=0):
    lab.run('push', '--trace', name, *(options or ('--format', 'itm')), file(lab, name + '.bin', data),
            status=status)


@test
def itm_without_synchronisation(lab):
    lab.start()
    push_itm(lab, 'a', BOOT + ADC)
    check(printed(lab, 'a') == ['1000 itm 0 boot', '6010 itm 0 adc'], printed(lab, 'a'))


@test
def itm_with_a_bad_byte(lab):
    """One gap, everything behind it is decoded: also without any synchronisation."""
    lab.start()
    for name, begin in (('a', SYNC), ('b', b'')):
        push_itm(lab, name, begin + BOOT + b'\x04' + 200 * ADC, status=1)
        found = printed(lab, name)
        check(found[:3] == ['1000 itm 0 boot', '1010 gap - bad-packet', '6010 itm 0 adc'], found[:4])
        check(len(found) == 202 and found[-1] == '%d itm 0 adc' % (6010 + 199 * 5010), found[-1])


@test
def itm_time(lab):
    """Local timestamps are for what stands in front of them; the stream has a time axis."""
    config = file(lab, 'itm.ini', '[trace]\nformat=itm,id=1\nclock=400000000\n[source cs.01]\n'
                  'protocol=itm\nid=1\ncore=Cortex-M7\n')
    lab.start()
    push_itm(lab, 't', SYNC + BOOT + ADC + LATE, '--config', config)
    found = printed(lab, 't')
    check(found == ['1000 itm 0 boot', '6010 itm 0 adc', '6020 gap - overflow', '6220 itm 0 late'], found)
    # 2.5 ns a tick
    log = ask(lab, 't/log?streams=cs.01')['streams']['cs.01']['entries']
    check([(e['text'], e['time']) for e in log] == [('boot', 2500), ('adc', 15025), ('late', 15550)], log)
    for time, record in (('2500:2501', '62'), ('15025:15050', '61'), ('15550:15560', '6c')):
        text = lab.run('get', 't', '--text', '--time', time).text()
        check([line for line in text.split('\n') if line[:1] == 'S'] == ['S itm 0 ' + record], time, text)
    at = ask(lab, 't/streams/cs.01/locate?unit=time&at=15025')
    check(at['insn'] == 5 and at['time'] == 15025, at)


@test
def itm_values(lab):
    """NUL is no character."""
    lab.start()
    push_itm(lab, 'v', SYNC + bytes.fromhex('0b40000020' '0b00410020' '0a0030' '0b80000000' '0b78563412'
                                            '0b61000000' '0b61626364' '090a'))
    check([line.split(' ', 3)[3] for line in printed(lab, 'v')] ==
          ['0x20000040', '0x20004100', '0x3000', '0x00000080', '0x12345678', '0x00000061', 'abcd'],
          printed(lab, 'v'))


@test
def itm_hardware(lab):
    """Exceptions and samples are events, of which there is a profile that says that it is a statistic."""
    lab.start()
    turn = '0e0f10' 'c00a' '1710020008' '0e0f20' 'c005' '0e0030' '1700010008' '0141' 'c064'
    push_itm(lab, 'h', bytes.fromhex(turn) * 20)
    lines = lab.run('get', 'h/cs.00', '--lines').text().split('\n')
    check(lines[1:6] == ['10 dwt - exception enter 15 SysTick', '15 dwt - pc 0000000008000210',
                         '15 dwt - exception exit 15 SysTick', '115 dwt - exception return 0 thread',
                         '115 dwt - pc 0000000008000100'], lines[:6])
    profile = json.loads(lab.run('profile', 'h/cs.00', '--as', 'json').text())
    check(profile['sampled'] and profile['insns'] == 40 and profile['asleep'] == 0, profile)
    found = lab.run('find', 'h/cs.00', '--event', 'hardware', '--limit', '0').text().split('\n')
    check(len([line for line in found if ' hardware exception enter 15 SysTick' in line]) == 20, found[:5])


@test
def cortex_m_manual(lab):
    """The setup and the commands of docs/cortex-m.md do what it says."""
    source = os.path.join(os.path.dirname(__file__), '..', '..')
    with open(os.path.join(source, 'docs', 'cortex-m.md')) as manual:
        text = manual.read()
    config = file(lab, 'board.ini', re.search(r'(?s)```ini\n(.*?)```', text).group(1))
    turn = '0e0f10' 'c00a' '1710020008' '0e0f20' 'c005' '0e0030' '1700010008' '0141' '010a' 'c064'
    turn += ''.join('19%02x' % byte for byte in b'Fault\n') + '4714020008' '4e1001' '8f07000000' '85ff' 'c001'
    swo = file(lab, 'swo.bin', bytes.fromhex(turn) * 20)
    push = re.search(r'(?m)^    tracelake (push .*)$', text).group(1).replace(' --image app.elf', '')
    lab.start()
    lab.run(*push.replace('board.ini', config).replace('swo.bin', swo).split())
    answers = {a: lab.run(*a.split()).text() for a in re.findall(r'`tracelake ((?:get|profile|find|log|interrupts) [^`]*)`', text)}
    for command, wanted in (('get', ' itm 0 A\n'), ('profile', ' '), ('find run1/cs.00 --event', 'exception enter 15 SysTick'),
                            ('find run1/cs.00 --written', ' 0000000008000214 write 0x7 at 0x20000110, 4 bytes: dwt0\n'),
                            ('find run1/cs.00 text:', 'itm 3 Fault'), ('log run1', ' itm 3 Fault\n'), ('interrupts', '\n    15 ')):
        found = [answer for ask, answer in answers.items() if ask.startswith(command)]
        check(found and wanted in found[0], command, found)


@test
def chip_names(lab):
    """A chip's description names interrupts and registers, here and on the server."""
    chip = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'fuzz', 'corpus', 'svd', 'chip.svd')
    config = file(lab, 'board.ini', '[trace]\nformat=itm\n[source cs.00]\nprotocol=itm\nDWT_COMP0=0x40011004\n')
    options = ['--config', config, '--image', chip]
    lab.start()
    push_itm(lab, 'c', bytes.fromhex('0e3510' 'c00a' '4714020008' '8e4100' 'c001' '0e3520' 'c001' '0e4010' 'c001'), *options)
    lines = only(streams(lab.run('decode', *options, '--text', lab.path('c.bin')).text())['cs.00'], 'H')
    check(lines == ['H exception enter 53 USART1', 'H data write 0 40011004 0041 0000000008000214 USART1.DR',
                    'H exception exit 53 USART1', 'H exception enter 64 irq48'], lines)
    check(only(streams(lab.run('get', 'c', '--text').text())['cs.00'], 'H') == lines, 'stored')
    for asked in 'USART1.DR', '40011004':
        found = lab.run('find', 'c/cs.00', '--written', asked).text()
        check(found.count('\n') == 2 and 'write 0x41 at 0x40011004, 2 bytes: USART1.DR\n' in found, found)
    lab.fails(1, 'nothing matches', 'find', 'c/cs.00', '--written', 'USART2.DR')
    said = lab.run('interrupts', 'c/cs.00').text()
    check(' USART1' in said, said)
    written = lab.run('setup', '--check', *options, lab.path('c.bin'), '-o', lab.path('out.ini'))
    with open(lab.path('out.ini')) as f:
        check('chip.svd' in f.read(), written)
    again = lab.run('decode', '--config', lab.path('out.ini'), '--text', lab.path('c.bin')).text()
    check(only(streams(again)['cs.00'], 'H') == lines, again)
    other = file(lab, 'pom.xml', '<?xml version="1.0"?>\n<project><name>x</name></project>\n')
    lab.fails(1, 'is XML, but no description of a chip', 'decode', '--config', config, '--image', other, '--text', lab.path('c.bin'))


@test
def wrong_baud(lab):
    """What is no ITM at all is said to be that, here and by the server, however many faults come first."""
    state, noise = 1, bytearray()
    for _ in range(8192):
        state = (state * 1664525 + 1013904223) % 2 ** 32
        noise.append(state >> 24)
    lab.start()
    push_itm(lab, 'n', bytes(noise), status=1)
    said = lab.run('decode', '--format', 'itm', '--text', lab.path('n.bin'), status=1).err.decode()
    check(said.count('bytes not decoded') == 21 and 'check the clock and the baud rate' in said, said)
    check('check the clock and the baud rate' in lab.run('show', 'n').text(), lab.run('show', 'n').text())
    # Text received at half its rate: all of it is packets that no unit sends, and nothing is lost.
    line = ''.join('0%s1' % format(byte, '08b')[::-1] for character in b'temperature=21 ok' * 300 for byte in (1, character))
    halved, at = bytearray(), line.find('0')
    while 0 <= at and at + 20 <= len(line):
        halved.append(int(line[at + 3:at + 19:2][::-1], 2))
        at = line.find('0', line.find('1', at + 19))
    push_itm(lab, 'h', bytes(halved), status=1)
    check('no trace unit sends' in lab.run('show', 'h').text(), lab.run('show', 'h').text())


@test
def lost_ends(lab):
    """A handler whose end was lost, or not told, has no length."""
    enter, leave, pend, back = '0e0f10', '0e0f20', '0e3510', '0e0030'
    lab.start()
    whole = enter + 'c00a' + leave + 'c005' + back + 'c001'
    for name, events, counts in (
            ('overflow', enter + 'c00a' + '70' + whole, {15: ('2', '5')}),
            ('nested', enter + 'c00a' + pend + 'c005' + '70' + back + 'c00a' + whole, {15: ('2', '5'), 53: ('1', '-')}),
            ('outer', enter + 'c00a' + pend + 'c005' + leave + 'c005' + back + 'c001', {15: ('1', '10'), 53: ('1', '-')}),
            ('returned', enter + 'c00a' + back + 'c005' + whole, {15: ('2', '5')})):
        push_itm(lab, name, bytes.fromhex(events))
        rows = [line.split() for line in lab.run('interrupts', name + '/cs.00').text().splitlines() if line[0] != '#']
        check({int(r[0]): (r[1], r[2]) for r in rows} == counts, name, rows)
        ended = lab.run('sql', name, 'SELECT number, ended FROM call ORDER BY position', '--csv').text().split()[1:]
        check(sum(line.endswith(',0') for line in ended) == (2 if name == 'nested' else 1), name, ended)


@test
def delayed_times(lab):
    """What an ITM marks as delayed, and what is behind an overflow, has bounds instead of a time."""
    lab.start()
    enter = '0e0f10'
    push_itm(lab, 'd', bytes.fromhex(enter + 'c00a' + enter + 'd00a' + enter + 'e00a' + enter + 'c00a' + '70' + enter + 'c00a'))
    rows = lab.run('sql', 'd', "SELECT time, earliest, latest FROM timeline WHERE what = 'event' AND text LIKE '%exception%'", '--json').text()
    told = [tuple(json.loads(line).values()) for line in rows.splitlines()]
    check(told == [(10, 10, 10), (20, 10, 20), (30, 0, 30), (40, 40, 40), (50, 40, None)], told)


@test
def itm_ports(lab):
    """What the setup tells of stimulus ports is how they are shown, found and exported."""
    config = file(lab, 'ports.ini', '[trace]\nformat=itm\nclock=1000000\n[source cs.00]\nprotocol=itm\n'
                  'port3=text\nport4=i16\nport5=float\n')
    lab.start()
    say = ''.join('19%02x' % byte for byte in b'a, "b"\x01\n')
    data = bytes.fromhex('22feff' '2b0000c03f' + say + '0178' '010a' 'c064')
    push_itm(lab, 'p', data, '--config', config)
    local = lab.run('decode', '--config', config, '--text', lab.path('p.bin')).text()
    check('S itm 4 fffe i16 -2\nS itm 5 3fc00000 float 1.5\nS itm 3 61 text\n' in local, local)
    check(lab.run('get', 'p/cs.00', '--text').text() == local, 'stored')
    said = lab.run('decode', '--format', 'itm,clock=1000000,port3=text,port4=i16,port5=float', '--text', lab.path('p.bin')).text()
    check(said == local, 'as options of the format', said)
    lab.fails(2, r"'port3=word': use text, hex, u8", 'decode', '--format', 'itm,port3=word', '--text', lab.path('p.bin'))
    lab.fails(2, r"format option 'port3=text' is not known", 'decode', '--format', 'stm,port3=text', '--text', lab.path('p.bin'))
    lab.run('decode', '--config', config, '--out', lab.path('o'), lab.path('p.bin'))
    again = lab.run('decode', '--format', 'stf', '--text', lab.path('o/cs.00.zstf')).text()
    check([line for line in again.split('\n') if line[:1] == 'S'] ==
          [line for line in local.split('\n') if line[:1] == 'S'], again)
    lines = lab.run('log', 'p').text().split('\n')
    check(lines == ['# stream cs.00', '100000 itm 4 -2', '100000 itm 5 1.5', '100000 itm 3 a, "b"\\x01', '100000 itm 0 x', ''], lines)
    head = 'stream,time,seconds,source,channel,form,text\n'
    check(lab.run('log', 'p/cs.00', '--csv').text() == head + 'cs.00,100000,0.000100000,itm,4,i16,-2\n'
          'cs.00,100000,0.000100000,itm,5,float,1.5\ncs.00,100000,0.000100000,itm,3,text,"a, ""b""\\x01"\n'
          'cs.00,100000,0.000100000,itm,0,,x\n', lab.run('log', 'p/cs.00', '--csv').text())
    one = lab.run('log', 'p', '--port', '4', '--json').text()
    check(json.loads(one) == {'stream': 'cs.00', 'time': 100000, 'seconds': '0.000100000', 'source': 'itm', 'channel': '4',
                              'form': 'i16', 'text': '-2'}, one)
    with urllib.request.urlopen(lab.url + '/api/v1/traces/p/log?streams=cs.00&port=5&format=csv', timeout=240) as reply:
        check(reply.read().decode() == 'stream,position,time,seconds,source,channel,form,text\n'
              'cs.00,1,100000,0.000100000,itm,5,float,1.5\n' and reply.headers['content-type'].startswith('text/csv'))
    log = ask(lab, 'p/log?streams=cs.00')['streams']['cs.00']['entries']
    check([(e.get('form'), e.get('value', e.get('text'))) for e in log] ==
          [('i16', '-2'), ('float', '1.5'), ('text', 'a, "b"\\x01'), (None, 'x')], log)
    for how in (['text:A*b'], ['--text', 'a, "B']):
        found = lab.run('find', 'p/cs.00', *how, '--json').text()
        check([h['text'] for h in json.loads(found)['hits']] == ['itm 3 a, "b"\\x01'], found)
    check(ask(lab, 'p/find?text=1.5')['hits'][0]['insn'] == 1, 'HTTP')
    lab.fails(2, 'port', 'log', 'p', '--port', 'x')


def function_at(path, pc):
    """The function of a 32-bit ELF file's symbols that an address is in."""
    with open(path, 'rb') as f:
        elf = f.read()
    sections = [struct.unpack_from('<10I', elf, struct.unpack_from('<I', elf, 32)[0] + 40 * i)
                for i in range(struct.unpack_from('<H', elf, 48)[0])]
    for section in sections:
        for at in range(section[4], section[4] + section[5], 16) if section[1] == 2 else ():
            name, value, size, info = struct.unpack_from('<IIIB', elf, at)
            if info & 15 == 2 and value & ~1 <= pc < (value & ~1) + size:
                text = elf[sections[section[6]][4] + name:]
                return text[:text.index(b'\0')].decode()
    return None


def handled(lines, number):
    """How long a handler ran each time, and how long it was from one entry to the next, by the truth of an ITM. What the
    trace unit lost ends both."""
    lengths, periods, entered, last, time = [], [], None, None, 0
    for line in lines:
        words = line.split()
        if words[0] == 'T':
            time = int(words[1])
        elif words[0] == 'G':
            entered = last = None
        elif words[:2] == ['H', 'exception'] and words[3] == number:
            if words[2] == 'enter':
                periods += [time - last] if last else []
                entered = last = time
            elif words[2] == 'exit' and entered:
                lengths.append(time - entered)
                entered = None
    return lengths, periods


@test
def simulated_cortex_m(lab):
    """The same for a microcontroller: its program, and what ITM and DWT tell, with names and time."""
    simulated(lab, 120000, 'cortex-m')
    wait_sealed(lab, 'sim')
    with open(lab.path('truth')) as f:
        truth = streams(f.read())
    stored = streams(lab.run('get', 'sim', '--text').text())
    check(sorted(stored) == ['cs.01', 'cs.10'], sorted(stored))
    check(len(truth['cs.01']) > 1000 and stored['cs.01'] == truth['cs.01'], 'ITM differs from the truth')
    a, b = only(truth['cs.10'], 'I'), only(stored['cs.10'], 'I')
    check(len(a) > 10000 and a == b, 'instructions differ from the truth', len(a), len(b))
    a, b = only(truth['cs.10'], 'T'), only(stored['cs.10'], 'T')
    check(len(a) > 100 and a == b, 'its times differ', a[:3], b[:3])
    check(not only(stored['cs.10'], 'A'), 'its time begins again', only(stored['cs.10'], 'A')[:3])
    ends = [[int(line.split()[-1]) for line in only(truth[s], 'T')] for s in ('cs.01', 'cs.10')]
    check(abs(ends[0][-1] - ends[1][-1]) < 500000, 'one clock', ends[0][-1], ends[1][-1])
    # Samples of the DWT are no instructions of the trace, nor calls of its functions.
    whole, flow, itm = [ask(lab, 'sim/' + of) for of in ('stats', 'streams/cs.10/stats', 'streams/cs.01/stats')]
    check(whole['insns'] == len(only(truth['cs.10'], 'I')) and whole['functions'] == flow['functions'], whole['insns'])
    check(whole['items']['software'] == itm['items']['software'] > 100, whole['items'], itm['items'])
    # Who wrote the variable, how long SysTick takes, where the processor is, what was printed.
    check('ticks' in lab.run('log', 'sim', '--csv').text(), 'the variable')
    said = [e['text'] for e in ask(lab, 'sim/log?streams=cs.01&limit=300')['streams']['cs.01']['entries'] if 'text' in e]
    check(any(re.match(r'data write 0 \S+ \S+ \S+ ticks <SysTick_Handler', t) for t in said), 'who wrote it', said)
    written = re.findall(r'(?m)^\d+ (\d+) \d+ 0*(\S+) write 0x(\S+) by (\w+)\S* at (\S+), 4 bytes: ticks$',
                         lab.run('find', 'sim/cs.01', '--written', 'ticks', '--limit', '0').text())
    wanted, time = [], 0
    for line in truth['cs.01']:
        word = line.split()
        if word[0] == 'T':
            time = word[1]
        elif word[:3] == ['H', 'data', 'write']:
            wanted.append((time, word[6].lstrip('0'), word[5].lstrip('0'), 'SysTick_Handler', '0x' + word[4]))
    question = ("SELECT time, printf('%x', pc) AS pc, printf('%x', value) AS value, function, address(address) AS address FROM access "
                "WHERE stream = 'cs.01' AND variable = 'ticks' AND kind = 'write' ORDER BY position")
    rows = [tuple(map(str, json.loads(line).values())) for line in
            lab.run('sql', 'sim', question, '--json', '--limit', '1M').text().splitlines()]
    check(rows == written, 'the table of accesses', rows[:3], written[:3])
    check(len(wanted) > 10 and [(str(int(time) // 10), *what) for time, *what in written] == wanted, written[:3], wanted[:3])
    for asked in ('ticks', 'data:20000100', 'data:0x200000ff:20000101', 'written:ticks'):
        check(len(ask(lab, 'sim/find?limit=10000&q=' + asked)['hits']) == len(wanted), asked)
    check(not ask(lab, 'sim/find?q=data:20000104')['hits'], 'another variable')
    check(any(re.match('pc [0-9a-f]{16} <task_motor', t) for t in said), 'where it was', said)
    profile = json.loads(lab.run('profile', 'sim/cs.01', '--as', 'json').text())
    sampled = [line.split() for line in truth['cs.01'] if line.startswith('H pc ')]
    slept = sum(line == 'H sleep' for line in truth['cs.01'])
    check(profile['sampled'] and profile['insns'] == len(sampled) > 100 and profile['asleep'] == slept > 0, profile)
    counts = collections.Counter(function_at(lab.path('demo.elf'), int(words[2], 16)) for words in sampled)
    check({f['name']: f['self'] for f in profile['functions']} == counts, profile['functions'], counts)
    folded = [line.rsplit(' ', 1) for line in lab.run('profile', 'sim/cs.01', '--as', 'folded').text().splitlines()]
    check({name: int(n) for name, n in folded} == counts, folded, counts)
    found = json.loads(lab.run('find', 'sim/cs.01', 'text:sensor', '--json').text())['hits']
    check(all('sensor' in h['text'] for h in found) and any('itm 0 sensor ' in h['text'] for h in found) and
          any('<task_sensor' in h['text'] for h in found), found)
    log = ask(lab, 'sim/log?streams=cs.01&limit=3')['streams']['cs.01']['entries']
    begin = next(i for i, line in enumerate(truth['cs.01']) if line[0] == 'H')
    check(log[0]['time'] == 10 * int(only(truth['cs.01'][:begin], 'T')[-1].split()[1]), 'its time is the trace\'s', log, begin)
    slices = ask(lab, 'sim/streams/cs.01/slices')['slices']
    check({s['name'] for s in slices if s['depth'] == 0} == {'thread mode'} and
          any(s['name'].endswith('SysTick_Handler') for s in slices if s['depth'] == 1), slices[:9])
    said = lab.run('interrupts', 'sim/cs.01').text()
    check(re.search(r'(?m)^ *15 .* SysTick_Handler$', said), said)
    # What port 4 said around the fault: the times of one answer are those of the next.
    fault = next(h for h in json.loads(lab.run('find', 'sim/cs.01', '--text', 'fault', '--json').text())['hits'])['time']
    around = lab.run('log', 'sim', '--port', '4', '--time', '%d:%d' % (fault - 3000000, fault + 1)).text().splitlines()[1:]
    check(len(around) == 3 and around[-1].split()[0] == str(fault) and all(l.split()[1:3] == ['itm', '4'] for l in around), around)
    took = next(e for e in ask(lab, 'sim/streams/cs.01/interrupts')['exceptions'] if e['number'] == 15)['time']
    shortest, longest = re.search(r'(?m)^ *15 +\d+ +(\S+) µs +\S+ µs +(\S+) µs ', said).groups()
    check([round(1000 * float(t)) for t in (shortest, longest)] == [took['min'], took['max']], said, took)
    lengths, periods = handled(truth['cs.01'], '15')
    check([10 * min(lengths), 10 * max(lengths)] == [took['min'], took['max']], 'how long SysTick takes', took, lengths)
    asked = next(e for e in ask(lab, 'sim/streams/cs.01/interrupts')['exceptions'] if e['number'] == 15)
    check([10 * min(periods), 10 * max(periods)] == [asked['period_min'], asked['period_max']], 'how late it is', asked, periods)
    # Another program is said not to be this one.
    other = lab.path('other.elf')
    with open(lab.path('demo.elf'), 'rb') as f:
        image = bytearray(f.read())
    at = image.index(b'\x7fELF') + 84 + 512
    image[at:at + 4000] = image[at + 40:at + 4000] + image[at:at + 40]
    with open(other, 'wb') as f:
        f.write(image)
    with open(lab.path('sim.ini')) as f:
        config = f.read().split('\n[image')[0]
    with open(lab.path('bare.ini'), 'w') as f:
        f.write(config)
    wrong = lab.run('decode', '--format', 'tpiu,sync=fsync', '--config', lab.path('bare.ini'), '--image', other,
                    '--text', lab.path('raw'), status=1)
    check(b'other.elf is not the program that ran' in wrong.err, wrong.err)
    told = lab.run('push', '--trace', 'wrong', '--format', 'tpiu,sync=fsync', '--config', lab.path('bare.ini'), '--image', other,
                   lab.path('raw'), status=1)
    check(b'other.elf is not the program that ran' in told.err, told.err)
    check('other.elf is not the program that ran' in lab.run('show', 'wrong').text(), lab.run('show', 'wrong').text())


def cobs(data):
    out = b''
    for part in data.split(b'\0'):
        while len(part) >= 254:
            out, part = out + b'\xff' + part[:254], part[254:]
        out += bytes([len(part) + 1]) + part
    return out


def orbflow(tag, data):
    frame = bytes([tag]) + data
    return cobs(frame + bytes([-sum(frame) & 255])) + b'\0'


@test
def itm_by_orbflow(lab):
    """Borders of frames mean nothing for packets; a damaged one is a gap."""
    config = file(lab, 'orb.ini', '[trace]\nformat=orbflow\n[source cs.01]\nprotocol=itm\nid=1\n')
    check(orbflow(1, b'\1A\0') == bytes.fromhex('040101410' '2bd00'), orbflow(1, b'\1A\0'))
    damaged = bytearray(orbflow(1, b'\1xxx'))
    damaged[3] ^= 4
    text = b''.join(b'\1' + bytes([c]) for c in b'hello\n')
    numbers = b'\x0b\0\0\0\x80' * 300
    lab.start()
    push_itm(lab, 'o', orbflow(1, text[:3]) + b'\0\0' + orbflow(1, text[3:]) + bytes(damaged) +
             orbflow(1, text) + orbflow(1, numbers), '--config', config, status=1)
    found = printed(lab, 'o')
    check(found[:3] == ['- itm 0 hello', '- gap - transport', '- itm 0 hello'], found[:5])
    check(len(found) == 303 and found[-1] == '- itm 1 0x80000000', found[-1])


# ---- Intel PT ----

# _start: call work   work: nop; nop; nop; ret   handler: inc %ecx; ret   restorer: mov $15, %eax; syscall
SIGNAL_ELF = zlib.decompress(base64.b85decode(
    'c-pIX^>JfjWMqH=CI&kOFi*e%%y)o_YY4)X0L3hT>KqtY8Cbw-Ss0Lk0}8zX%7f7i0uTzMj}?gzvkyj#LWM=q^o@d1FbYP&C'
    '>RB!U=)mkQ7{Td!6+C7qkweqf(b~x{yAa7gv0+29^SzZ<ngoOQO^g&LZIF|w4ct-fauSI#JQp3%usPoaMv9utKfiQjwn<;AD'
    'TIGIMl1+5Z8j5!wxkEJ{FOYn3s~1TEq|^pHy5NUtE${RKie{T3nJ}1QJY5Ni0bOQh6y1<@rU~3=De3mANH}NkF=!2tsGTSS6'
    '_yB@~CVG&GFZU;^;*4n%k$14b--CM@PkK=mJh@|mG(IbiZg@xY8l{|%^qeFF9i;?U0y9T!q0pdSDLGBFt'))
SIGNAL_PT = bytes.fromhex('0282028202820282028202820282028299015d0010400002233d081001990131'
                          '0b102d0e100199013108102d05103d051001')


@test
def a_signal(lab):
    """The callers stay under a signal's handler, and are there again behind it."""
    elf, trace = file(lab, 'signal.elf', SIGNAL_ELF), file(lab, 'signal.pt', SIGNAL_PT)
    lab.start()
    lab.run('push', '--trace', 's', '--format', 'pt', '--image', elf, trace)
    found = lab.run('profile', 's', '--as', 'folded').text().split('\n')
    check(found == ['_start 1', '_start;work 4', '_start;work;handler 2', '_start;work;restorer 2', ''],
          found)


@test
def pt_time_segments(lab):
    """A TSC that begins again between two system calls."""
    def tsc(ticks):
        return b'\x19' + ticks.to_bytes(7, 'little')
    elf, begin = file(lab, 'signal.elf', SIGNAL_ELF), SIGNAL_PT.index(bytes.fromhex('990131081031'[:10]))
    for second, restarts in ((1000, True), (199900, False), (300000, False)):
        trace = SIGNAL_PT[:16] + tsc(200000) + SIGNAL_PT[16:begin] + tsc(second) + SIGNAL_PT[begin:]
        said = lab.run('decode', '--format', 'pt', '--image', elf, '--text', file(lab, 'tsc.pt', trace))
        times = [line for line in said.text().split('\n') if line[:2] in ('T ', 'A ')]
        check(times == ['T 200000'] + restarts * ['A time-restart 200000 1000'] + ['T %d' % second], times)
        check(('timestamps begin again' in said.err.decode()) == restarts, said.err)


if __name__ == '__main__':
    main(TESTS)
