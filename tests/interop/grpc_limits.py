# SPDX-License-Identifier: MIT
"""Long calls by gRPC's own client: they do not delay short ones, and end when the client stops
waiting."""

import os
import subprocess

import grpc

from grpc_client import Client, check
from server import Skip
from tracelake.v1 import catalog_pb2, ranges_pb2

CALLS = 64
BYTES = 12 << 20


def cpu_seconds(server):
    with open('/proc/%d/stat' % server.process.pid) as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def push(server, client, trace, n):
    path = os.path.join(server.dir, trace)
    with open(path, 'wb') as f:
        f.write(b'\0\0\0\0\0\x80' + b'\x09\x41\x09\x42' * (n // 4))
    subprocess.run([server.command, 'push', '--server', server.url, '--trace', trace, '--format',
                    'itm,id=0', path], check=True, stdout=subprocess.DEVNULL, timeout=240)
    os.remove(path)
    return client.wait_sealed(trace).streams[0].name


class Work:
    """Long calls, and the cost of one of them."""

    def __init__(self, server, client, stream):
        self.server, self.client = server, client
        self.calls = [
            lambda **k: client.catalog.Verify.future(catalog_pb2.VerifyRequest(trace='long'), **k),
            lambda **k: client.ranges.Find.future(ranges_pb2.FindRequest(
                trace='long', stream=stream, event='software', limit=100000), **k),
        ]
        before = cpu_seconds(server)
        for call in self.calls:
            call().result(timeout=240)
        self.cost = (cpu_seconds(server) - before) / len(self.calls)
        check(self.cost > 0.01, 'that is no long work:', self.cost)

    def begin(self, **options):
        return [self.calls[i % len(self.calls)](**options) for i in range(CALLS)]

    def spent_since(self, before):
        """Processor time used since `before`, once all earlier calls have ended."""
        self.client.catalog.Verify(catalog_pb2.VerifyRequest(trace='short'), timeout=240)
        return cpu_seconds(self.server) - before


def test_short_calls_pass(work):
    calls = work.begin()
    done_before = sum(c.done() for c in calls)
    for _ in range(50):
        work.client.catalog.ListTraces(catalog_pb2.ListTracesRequest(), timeout=240)
    check(sum(c.done() for c in calls) < CALLS, 'short calls waited for all long ones', done_before)
    for call in calls:
        call.cancel()
    work.spent_since(0)


def test_cancelled(work):
    calls = work.begin()
    work.client.catalog.ListTraces(catalog_pb2.ListTracesRequest())  # the calls have arrived
    before = cpu_seconds(work.server)
    for call in calls:
        call.cancel()
    spent = work.spent_since(before)
    print('  %d calls of %.2f s each; %.2f s after they were cancelled' % (CALLS, work.cost, spent))
    check(spent < CALLS * work.cost / 8, 'cancelled work went on')


def test_expired(work):
    before = cpu_seconds(work.server)
    for call in work.begin(timeout=work.cost / 4):
        try:
            call.result()
        except grpc.RpcError as e:
            check(e.code() == grpc.StatusCode.DEADLINE_EXCEEDED, e.code(), e.details())
    spent = work.spent_since(before)
    print('  %d calls of %.2f s each expired; %.2f s' % (CALLS, work.cost, spent))
    check(spent < CALLS * work.cost / 4, 'expired work went on')


def run(server):
    if not os.path.exists('/proc/self/stat'):
        raise Skip('no /proc')
    with grpc.insecure_channel(server.address) as channel:
        client = Client(channel)
        push(server, client, 'short', 400)
        work = Work(server, client, push(server, client, 'long', BYTES))
        for test in (test_short_calls_pass, test_cancelled, test_expired):
            test(work)
            print('ok', test.__name__)
