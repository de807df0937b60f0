# SPDX-License-Identifier: MIT
"""`tracelake serve` as the host controller of simulated devices: serve_osd.py BUILD."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'interop'))

from server import Server, check, free_port, wait  # noqa: E402


def get(url):
    with urllib.request.urlopen(url, timeout=240) as reply:
        return reply.read().decode()


def traces(server, **with_members):
    rows = json.loads(get(server.url + '/api/v1/traces'))
    return [t for t in rows if all(t[k] == v for k, v in with_members.items())]


def streams(trace):
    return sorted(s['name'] for s in trace['streams'])


class Device:
    def __init__(self, build, folder, name, *options):
        self.file = os.path.join(folder, name)
        self.is_gateway = '--gateway' in options
        self.process = subprocess.Popen(
            [os.path.join(build, 'tracelake-osd-device'), '--bytes', self.file, *options],
            stdout=subprocess.PIPE, text=True)

    def sent(self):
        """The bytes that it sent: a gateway is ended, GLIP's device ends when it is switched off."""
        if self.is_gateway:
            self.process.terminate()
        out = self.process.communicate(timeout=240)[0]
        check(self.process.returncode == 0, 'exit status of the device', self.process.returncode, out)
        return os.path.getsize(self.file)


def controller(server):
    return next(line for line in server.lines if 'host controller' in line).split()[0]


def refused(build, folder, words, *options):
    out = subprocess.run([os.path.join(build, 'tracelake'), 'serve', '--data', folder + '/refused',
                          '--listen', '127.0.0.1:0', *options], stderr=subprocess.PIPE, text=True,
                         timeout=240, check=False)
    check(out.returncode == 2 and words in out.stderr, options, out.stderr)


def test_refusals(build, folder):
    name = '--osd-host-controller'
    refused(build, folder, '--insecure', name, '0.0.0.0')
    refused(build, folder, 'start=', name, '127.0.0.1:0,start=everything')
    refused(build, folder, 'go with format=di', name, '127.0.0.1:0,format=itm')
    refused(build, folder, 'rig=', name, '127.0.0.1:0,rig=a/b')
    refused(build, folder, 'ADDR:PORT', name, '127.0.0.1:port')
    refused(build, folder, 'for --source', '--raw', 'osd://127.0.0.1:0,rig=a')
    refused(build, folder, 'for --source', name, 'osd://127.0.0.1:0,rig=a')
    refused(build, folder, 'rig=NAME', '--source', 'osd://127.0.0.1')
    refused(build, folder, 'host\'s own', '--source', 'osd://127.0.0.1,rig=a,subnet=1')
    refused(build, folder, 'starts modules', '--source', 'osd://127.0.0.1,rig=a,start=no')
    refused(build, folder, 'starts modules', '--source', 'osd://127.0.0.1,rig=a,control=no')
    refused(build, folder, 'subnet= goes with osd://', '--source', 'tcp://127.0.0.1:1,format=di,rig=a,subnet=2')
    refused(build, folder, 'osd://HOST:PORT', '--source', 'udp://127.0.0.1:1,format=di,rig=a')
    refused(build, folder, 'format=di', '--source', 'tcp://127.0.0.1:1,format=itm,rig=a,start=yes')
    refused(build, folder, 'order=', '--source', 'tcp://127.0.0.1:1,format=di,rig=a,order=odd')


def test_both_ways(build, folder):
    """A device at a gateway and one with GLIP over TCP are started, traced and switched off."""
    port = free_port(2)
    server = Server(build, folder, '--osd-host-controller', '127.0.0.1:0,rig=fpga', '--source',
                    'tcp://127.0.0.1:%d,format=di,rig=far,start=yes' % port)
    try:
        server.start()
        near = Device(build, folder, 'near', '--gateway', controller(server), '--rate', '20000')
        far = Device(build, folder, 'far', '--glip', str(port), '--rate', '20000', '--width', '64')
        expected = ['di.0.1', 'di.0.2', 'di.0.3']
        for rig in ('fpga', 'far'):
            wait('the trace of ' + rig,
                 lambda r=rig: [t for t in traces(server, rig=r) if t['raw_bytes'] > 100000
                                and set(streams(t)) >= set(expected)])
        metrics = get(server.url + '/metrics')
        check('tracelake_osd_gateway_state{subnet="0",state="running"} 1' in metrics, metrics)
        check('tracelake_osd_gateway_modules{subnet="0"} 6' in metrics, metrics)
        server.stop()
        sent = {'fpga': near.sent(), 'far': far.sent()}
        server.start()
        for rig, size in sent.items():
            trace = wait(rig, lambda r=rig: traces(server, rig=r, state='sealed'))[0]
            check(trace['raw_bytes'] == size, rig, size, trace)
        server.stop()
    finally:
        server.kill()
        for device in (near, far):
            device.process.kill()


def test_restart(build, folder):
    """The server is killed, then stopped, each time started again: the gateway, which does not notice, is traced again."""
    port = free_port(2)
    server = Server(build, folder, '--osd-host-controller', '127.0.0.1:%d' % port)
    try:
        server.start()
        device = Device(build, folder, 'again', '--gateway', controller(server), '--rate', '10000')
        wait('the first trace', lambda: [t for t in traces(server) if t['raw_bytes'] > 20000])
        for number, end in ((2, server.kill), (3, server.stop)):
            end()
            server.start()
            rows = wait('trace %d' % number, lambda n=number: [t for t in traces(server)[:1 - n] if t['raw_bytes'] > 20000])
            check(rows[0]['rig'] == 'osd', rows)
            check(all(t['state'] != 'live' for t in traces(server)[1 - number:]), 'nobody goes on with an earlier one', rows)
        server.stop()
        total = device.sent()
        server.start()
        rows = traces(server)
        check(len(rows) == 3 and sum(t['raw_bytes'] for t in rows) <= total, total, rows)
        server.stop()
    finally:
        server.kill()
        device.process.kill()


def test_guest(build, folder):
    """A server joins another one's host controller: it gets the events of the modules that it starts, anew after the
    controller was started again, and switches them off at its end."""
    port = free_port(2)
    os.mkdir(folder + '/host')
    os.mkdir(folder + '/guest')
    host = Server(build, folder + '/host', '--osd-host-controller', '127.0.0.1:%d,start=no' % port)
    guest = Server(build, folder + '/guest', '--source', 'osd://127.0.0.1:%d,rig=guest' % port)
    device = None
    try:
        guest.start()
        wait('that nobody answers is said', lambda: [w for w in guest.told() if 'no host controller answers' in w])
        host.start()
        device = Device(build, folder, 'far', '--gateway', controller(host), '--rate', '10000')
        for number in (1, 2):
            rows = wait('trace %d' % number, lambda n=number: [
                t for t in traces(guest)[:1 - n or None] if t['raw_bytes'] > 20000
                and set(streams(t)) >= {'di.0.1', 'di.0.2', 'di.0.3'}])
            check(rows[0]['rig'] == 'guest', rows)
            if number == 1:
                host.stop()
                host.start()
        guest.stop()
        wait('the address is given back', lambda: 'tracelake_osd_host_modules 0' in get(host.url + '/metrics'))
        host.stop()
        guest.start()
        rows = wait('all is decoded', lambda: traces(guest, rig='guest', state='sealed')[1:] and
                    all(t['state'] == 'sealed' for t in traces(guest)) and traces(guest))
        guest.stop()
        total = device.sent()
        check(0 < sum(t['raw_bytes'] for t in rows) < total, total, rows)
    finally:
        guest.kill()
        host.kill()
        if device:
            device.process.kill()


def main(build):
    for test in (test_refusals, test_both_ways, test_restart, test_guest):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            test(build, folder)
        print('%-20s %.2f s' % (test.__name__, time.monotonic() - begin), flush=True)


main(sys.argv[1])
