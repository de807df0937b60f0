# SPDX-License-Identifier: MIT
"""Small captures of kinds that users have, each with what is right for it."""

import base64
import os
import zlib

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


if __name__ == '__main__':
    main(TESTS)
