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
        self.process = subprocess.Popen(
            [os.path.join(build, 'tracelake-osd-device'), '--bytes', self.file, *options],
            stdout=subprocess.PIPE, text=True)

    def sent(self):
        """Wait for it to end by itself after it was switched off."""
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
    """The server is killed and restarted: the gateway, which does not notice, is traced again."""
    port = free_port(2)
    server = Server(build, folder, '--osd-host-controller', '127.0.0.1:%d' % port)
    try:
        server.start()
        device = Device(build, folder, 'again', '--gateway', controller(server), '--rate', '10000')
        wait('the first trace', lambda: [t for t in traces(server) if t['raw_bytes'] > 20000])
        server.kill()
        server.start()
        second = wait('the second trace', lambda: [t for t in traces(server)[:-1] if t['raw_bytes'] > 20000])
        check(second[0]['rig'] == 'osd', second)
        first = traces(server)[-1]
        check(first['state'] != 'live', 'nobody goes on with the first', first)
        server.stop()
        total = device.sent()
        server.start()
        rows = traces(server)
        check(len(rows) == 2 and sum(t['raw_bytes'] for t in rows) <= total, total, rows)
        server.stop()
    finally:
        server.kill()
        device.process.kill()


def main(build):
    for test in (test_refusals, test_both_ways, test_restart):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            test(build, folder)
        print('%-20s %.2f s' % (test.__name__, time.monotonic() - begin), flush=True)


main(sys.argv[1])
