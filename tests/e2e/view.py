# SPDX-License-Identifier: MIT
"""`tracelake view`: from files to the page with one command, which leaves nothing behind."""

import json
import os
import re
import signal
import subprocess
import urllib.parse
import urllib.request

from e2e import simulated, wait_sealed
from field import BEGIN, snapshot
from lab import TIMEOUT, check, main, wait

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


class View:
    """A running `view`, with a browser that only notes the address."""

    def __init__(self, lab, *args, display=True):
        tools = lab.path('tools')
        os.makedirs(tools, exist_ok=True)
        self.opened, self.cache = lab.path('opened'), lab.path('cache')
        browser = os.path.join(tools, 'xdg-open')
        with open(browser, 'w') as f:
            f.write('#!/bin/sh\necho "$1" >%s.new && mv %s.new %s\n' % ((self.opened,) * 3))
        os.chmod(browser, 0o755)
        env = dict(os.environ, XDG_CACHE_HOME=self.cache, PATH=tools + ':' + os.environ['PATH'],
                   TRACELAKE_SERVER='http://127.0.0.1:1', TRACELAKE_TOKEN='/there/is/none')
        for name in ('DISPLAY', 'WAYLAND_DISPLAY', 'BROWSER'):
            env.pop(name, None)
        if display:
            env['DISPLAY'] = ':0'
        os.makedirs(self.cache, exist_ok=True)
        if os.path.exists(self.opened):
            os.unlink(self.opened)
        self.process = subprocess.Popen([lab.tracelake, 'view', *args], env=env, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        lab.children.append(self.process)
        self.address = self.process.stdout.readline().strip()
        check(self.address.startswith('http://'), 'no address:', self.address, '' if self.address else self.process.communicate())
        self.url = self.address.partition('/#/')[0]

    def place(self):
        """The trace that the page opens, and the rest of the place."""
        trace, _, query = self.address.partition('/#/trace/')[2].partition('?')
        return urllib.parse.unquote(trace), {k: v[0] for k, v in urllib.parse.parse_qs(query).items()}

    def said_until(self, word):
        """What it said on standard error, to the line with this word."""
        said = ''
        while word not in said:
            line = self.process.stderr.readline()
            check(line, 'it ended with', said)
            said += line
        return said

    def end(self, number=signal.SIGINT):
        """End it; returns what it said."""
        self.process.send_signal(number)
        said = self.process.communicate(timeout=TIMEOUT)[1]
        check(self.process.returncode == 0 or number == signal.SIGKILL, self.process.returncode, said)
        return said

    def folders(self):
        return os.listdir(os.path.join(self.cache, 'tracelake'))

    def answers(self):
        try:
            with urllib.request.urlopen(self.url + '/', timeout=240) as reply:
                return reply.status == 200
        except OSError:
            return False


def prepare(lab, n, kind='etm'):
    """Files of a simulated capture; its server is gone."""
    simulated(lab, n, kind)
    wait_sealed(lab, 'sim')


@test
def view_captures(lab):
    """Raw trace with its program and configuration is shown, opened in the browser, and removed at the end."""
    prepare(lab, 60000)
    wanted = lab.run('sql', 'sim', 'SELECT count(*) FROM insn').text()
    lab.stop()
    view = View(lab, lab.path('raw'), lab.path('demo.elf'), lab.path('sim.ini'))
    wait('the browser is open', lambda: os.path.exists(view.opened))
    with open(view.opened) as f:
        check(f.read().strip() == view.address, 'the browser opens another address than', view.address)
    check(view.answers() and len(view.folders()) == 1, view.folders())
    check(view.place()[0] == 'raw', view.address)
    found = lab.run('sql', 'raw', 'SELECT count(*) FROM insn', '--server', view.url).text()
    check(found == wanted, found, wanted)
    said = view.end()
    check('Ctrl-C ends it' in said, said)
    check(not view.answers() and view.folders() == [], view.folders())


@test
def view_many(lab):
    """A snapshot, STF and a second file of one name; no display; the folder is kept and shown again."""
    prepare(lab, 60000)
    lab.run('get', 'sim/cs.10', '--insn', ':1000', '-o', lab.path('part.zstf'))
    os.mkdir(lab.path('b'))
    lab.run('get', 'sim/cs.10', '--insn', ':2000', '-o', lab.path('b/part.zstf'))
    lab.stop()
    folder = snapshot(lab, 'board', BEGIN)
    kept = lab.path('kept')
    with open(lab.path('model.log'), 'w') as f:
        f.write('core   0: 3 0x0000000080000000 (0x00000297) x5  0x0000000080000000\n')
    view = View(lab, folder, lab.path('model.log'), lab.path('part.zstf'), lab.path('b/part.zstf'), '--keep', kept,
                display=False)
    names = set(lab.run('ls', '--server', view.url).text().split())
    check({'board.B0', 'model.log', 'part.zstf', 'part.zstf-2'} <= names, names)
    check(view.place()[0] == 'part.zstf-2', 'the trace with the most instructions is opened, not', view.address)
    check('no display' in view.end(signal.SIGTERM), 'nothing is said of the missing display')
    check(os.path.exists(os.path.join(kept, 'catalog.db')) or os.listdir(kept), 'nothing is kept')
    again = View(lab, '--keep', kept, '--no-browser', display=False)
    check({'board.B0', 'part.zstf', 'part.zstf-2'} <= set(lab.run('ls', '--server', again.url).text().split()), 'it is gone')
    check(not re.search('display|browser', again.end()), 'a browser is spoken of')


@test
def view_left_behind(lab):
    """After a crash its server ends with it; the next run removes its folder, but not one in use."""
    prepare(lab, 20000)
    lab.run('get', 'sim/cs.10', '--insn', ':1000', '-o', lab.path('part.zstf'))
    lab.stop()
    other, killed = View(lab, lab.path('part.zstf')), View(lab, lab.path('part.zstf'))
    before = set(killed.folders())
    check(len(before) == 2, before)
    killed.end(signal.SIGKILL)
    wait('its server ends', lambda: not killed.answers())
    third = View(lab, lab.path('part.zstf'))
    check(len(set(third.folders()) & before) == 1 and len(third.folders()) == 2, third.folders(), before)
    check(other.answers(), 'the folder of another one is removed')
    other.end()
    third.end()
    check(third.folders() == [], third.folders())


@test
def view_place(lab):
    """The page is opened at a call that took much longer than the others of its function."""
    prepare(lab, 400000)
    lab.stop()
    view = View(lab, lab.path('raw'), lab.path('demo.elf'), lab.path('sim.ini'))
    name, times = re.search(r'a call of (\S+) took (\d+) times', view.said_until('took')).groups()
    if 'lane' not in view.place()[1]:  # it was not decoded yet; the place is told afterwards
        view.address = view.process.stdout.readline().strip()
    trace, place = view.place()
    told = lab.run('calls', trace + '/' + place['lane'], name, '--limit', '20000', '--json', '--server', view.url)
    calls = [json.loads(line) for line in told.text().splitlines()]
    view.end()
    lengths = [call['time']['value'] for call in calls if 'time' in call]
    usual = lengths[len(lengths) // 2]  # the longest are first
    check(len(lengths) >= 8 and abs(lengths[0] / usual - int(times)) <= 1 + int(times) / 20, name, times, lengths[:3], usual)
    check(int(place['from']) < calls[0]['from'] < calls[0]['to'] < int(place['to']), place, calls[0])


@test
def view_mistakes(lab):
    """What is no capture is named for what it is, and nothing is started."""
    for name, data in (('a.gz', b'\x1f\x8b\x08' + bytes(90)), ('a.xz', b'\xfd7zXZ\0' + bytes(90)),
                       ('a.zip', b'PK\3\4' + bytes(90)), ('a.tar', bytes(257) + b'ustar' + bytes(300)),
                       ('text', b'int main(void) { return 0; }'), ('none', b''), ('raw', bytes(range(1, 200)))):
        with open(lab.path(name), 'wb') as f:
            f.write(data)
    os.mkdir(lab.path('folder'))
    for status, pattern, *args in (
            (1, 'packed by gzip', 'a.gz'), (1, 'packed by xz', 'a.xz'), (1, 'zip archive', 'a.zip'),
            (1, 'tar archive', 'a.tar'), (1, 'is text', 'text'), (1, 'is empty', 'none'),
            (1, 'No such file', 'absent'), (2, 'is a folder', 'folder'), (2, '--format etm4', 'raw')):
        lab.fails(status, pattern, 'view', *(lab.path(a) for a in args))
    lab.fails(2, 'give a capture', 'view')
    lab.fails(2, 'no capture among', 'view', os.path.realpath('/bin/sh'))
    lab.fails(1, 'does not start', 'view', '--listen', '192.0.2.1:1', '--format', 'pt', lab.path('raw'))


if __name__ == '__main__':
    main(TESTS)
