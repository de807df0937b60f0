# SPDX-License-Identifier: MIT
"""gRPC's own Python client against the server: every kind of call, and errors."""

import concurrent.futures
import random
import subprocess
import threading
import time

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from server import check
from tracelake.v1 import (catalog_pb2, catalog_pb2_grpc, images_pb2, images_pb2_grpc, ingest_pb2,
                          ingest_pb2_grpc, lookups_pb2, lookups_pb2_grpc, ranges_pb2, ranges_pb2_grpc)

SETUP = '[trace]\nformat=itm,id=0\n'
CASTAGNOLI = []


def crc32c(data):
    if not CASTAGNOLI:
        for i in range(256):
            c = i
            for _ in range(8):
                c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
            CASTAGNOLI.append(c)
    crc = 0xffffffff
    for b in data:
        crc = crc >> 8 ^ CASTAGNOLI[(crc ^ b) & 255]
    return crc ^ 0xffffffff


def capture(n, seed):
    """ITM: a synchronisation packet, then one-byte software packets on port 1."""
    rng = random.Random(seed)
    out = bytearray(b'\0\0\0\0\0\x80')
    while len(out) < n:
        out += bytes((0x09, rng.randrange(256)))
    return bytes(out[:n])


def expect(code, call):
    try:
        call()
    except grpc.RpcError as e:
        check(e.code() == code, 'expected', code, 'got', e.code(), e.details())
        return e
    raise AssertionError('expected %s, but it worked' % code)


class Client:
    def __init__(self, channel):
        self.channel = channel
        self.ingest = ingest_pb2_grpc.IngestStub(channel)
        self.catalog = catalog_pb2_grpc.CatalogStub(channel)
        self.images = images_pb2_grpc.ImagesStub(channel)
        self.ranges = ranges_pb2_grpc.RangesStub(channel)
        self.lookups = lookups_pb2_grpc.LookupsStub(channel)
        self.channel = channel

    def push(self, trace, data, step=3000, rig='python', resume=False):
        def requests():
            yield ingest_pb2.PushRequest(open=ingest_pb2.Open(
                rig=rig, trace=trace, setup=SETUP, resume=resume))
            for at in range(0, len(data), step):
                piece = data[at:at + step]
                yield ingest_pb2.PushRequest(chunk=ingest_pb2.Chunk(
                    offset=at, data=piece, crc32c=crc32c(piece)))
            yield ingest_pb2.PushRequest(finish=ingest_pb2.Finish(length=len(data)))

        acked = -1
        finished = False
        for reply in self.ingest.Push(requests()):
            step_name = reply.WhichOneof('step')
            if step_name == 'ack':
                check(reply.ack.durable > acked, 'acks must grow')
                acked = reply.ack.durable
            elif step_name == 'finished':
                finished = True
                check(reply.finished.durable == len(data), reply)
        check(finished, 'no `finished`')

    def wait_sealed(self, trace):
        for state in self.catalog.WatchTraces(catalog_pb2.WatchTracesRequest(trace=trace),
                                              timeout=240):
            if state.traces[0].state in (catalog_pb2.TRACE_STATE_SEALED,
                                         catalog_pb2.TRACE_STATE_FAILED):
                return state.traces[0]
        raise AssertionError('the watch ended')

    def text(self, trace, stream):
        replies = self.ranges.Fetch(ranges_pb2.FetchRequest(
            trace=trace, stream=stream, format=ranges_pb2.FORMAT_TEXT))
        return b''.join(r.data for r in replies)


def test_push_and_fetch(client, server):
    data = capture(50000, 1)
    client.push('itm-1', data)
    offset = client.ingest.GetOffset(ingest_pb2.GetOffsetRequest(trace='itm-1'))
    check(offset.durable == len(data) and offset.complete, offset)
    trace = client.wait_sealed('itm-1')
    check(trace.state == catalog_pb2.TRACE_STATE_SEALED, trace.message)
    check(trace.raw_bytes == trace.decoded_bytes == len(data), trace)
    check(trace.rig == 'python' and len(trace.streams) == 1, trace)
    # The same as from the decoder without a server.
    path = server.dir + '/itm.bin'
    with open(path, 'wb') as f:
        f.write(data)
    local = subprocess.run([server.command, 'decode', '--format', 'itm,id=0', '--text', path],
                           stdout=subprocess.PIPE, check=True).stdout
    remote = client.text('itm-1', trace.streams[0].name)
    check(remote == local, 'server and command decode differently', remote[:200], local[:200])
    check(remote.count(b'\nS ') > 20000, remote[:200])


def test_many_rigs(client, server):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: client.push('many-%d' % i, capture(20000 + i, i), rig='rig%d' % i),
                      range(8)))
    traces = {t.id: t for t in client.catalog.ListTraces(catalog_pb2.ListTracesRequest()).traces}
    for i in range(8):
        check(traces['many-%d' % i].raw_bytes == 20000 + i, traces['many-%d' % i])


def test_catalog(client, server):
    labels = {'board': 'juno', 'note': 'a=b c\u00e4'}
    trace = client.catalog.SetLabels(catalog_pb2.SetLabelsRequest(trace='itm-1', labels=labels))
    check(dict(trace.labels) == labels, trace.labels)
    trace = client.catalog.SetLabels(
        catalog_pb2.SetLabelsRequest(trace='itm-1', labels={'note': ''}))
    check(dict(trace.labels) == {'board': 'juno'}, trace.labels)
    check(client.catalog.Verify(catalog_pb2.VerifyRequest(trace='itm-1')).findings == 0, 'verify')
    client.push('short-lived', capture(100, 3))
    client.wait_sealed('short-lived')
    client.catalog.DeleteTrace(catalog_pb2.DeleteTraceRequest(trace='short-lived'))
    expect(grpc.StatusCode.NOT_FOUND,
           lambda: client.catalog.GetTrace(catalog_pb2.GetTraceRequest(trace='short-lived')))
    trace = client.catalog.Redecode(catalog_pb2.RedecodeRequest(trace='itm-1'))
    client.wait_sealed('itm-1')


def test_lookups(client, server):
    stream = client.catalog.GetTrace(
        catalog_pb2.GetTraceRequest(trace='itm-1')).streams[0].name
    at = client.ranges.Locate(ranges_pb2.LocateRequest(trace='itm-1', stream=stream, at=10))
    check(at.insn == 10 and at.byte > 0, at)
    back = client.ranges.Locate(ranges_pb2.LocateRequest(
        trace='itm-1', stream=stream, unit=ranges_pb2.UNIT_BYTE, at=at.byte))
    check(abs(back.insn - 10) <= 1, back)
    found = client.ranges.Find(ranges_pb2.FindRequest(
        trace='itm-1', stream=stream, event='software', limit=5))
    check(len(found.hits) == 5 and found.more, found)
    stats = client.lookups.Stats(lookups_pb2.StatsRequest(trace='itm-1', stream=stream))
    check(stats.items['software'] > 0 and stats.begin == 0 and stats.to > 10, stats)
    log = client.lookups.Log(lookups_pb2.LogRequest(trace='itm-1', stream=stream, limit=3))
    check(len(log.entries) == 3 and log.more and log.entries[0].source == 'itm' and
          log.entries[0].WhichOneof('said') in ('text', 'value'), log)
    old = client.channel.unary_unary('/tracelake.v1.Ranges/Stats', lookups_pb2.StatsRequest.SerializeToString)
    status = expect(grpc.StatusCode.UNIMPLEMENTED, lambda: old(lookups_pb2.StatsRequest(trace='itm-1', stream=stream)))
    check('tracelake.v1.Lookups' in status.details(), status)
    tile = client.ranges.GetTiles(ranges_pb2.GetTilesRequest(trace='itm-1', lane_to=0))
    check(len(tile.lanes) == 1 and tile.generation > 0, tile)


def test_follow(client, server):
    data = capture(6000, 9)
    pushed = threading.Event()
    more = threading.Event()

    def requests():
        yield ingest_pb2.PushRequest(open=ingest_pb2.Open(rig='live', trace='live', setup=SETUP))
        for at in (0, 3000):
            piece = data[at:at + 3000]
            yield ingest_pb2.PushRequest(chunk=ingest_pb2.Chunk(
                offset=at, data=piece, crc32c=crc32c(piece)))
            pushed.set()
            more.wait(240)
        yield ingest_pb2.PushRequest(finish=ingest_pb2.Finish(length=len(data)))

    replies = client.ingest.Push(requests())
    check(next(replies).WhichOneof('step') == 'opened', 'open')
    pushed.wait(240)
    stream = None
    for state in client.catalog.WatchTraces(catalog_pb2.WatchTracesRequest(trace='live'),
                                            timeout=240):
        if state.traces[0].streams and state.traces[0].streams[0].insns:
            stream = state.traces[0].streams[0].name
            break
    follow = client.ranges.Follow(ranges_pb2.FollowRequest(
        trace='live', stream=stream, format=ranges_pb2.FORMAT_TEXT), timeout=240)
    first = next(follow).data
    check(first.startswith(b'# stream ' + stream.encode()), first[:100])
    more.set()
    rest = b''.join(r.data for r in follow)  # ends when the trace is sealed
    for _ in replies:
        pass
    check(first + rest == client.text('live', stream), 'followed and fetched differ')


def test_images(client, server):
    content = bytes(range(256)) * 20000  # 5 MB, more than one message
    pieces = [images_pb2.PutImageRequest(name='blob.bin')]
    pieces += [images_pb2.PutImageRequest(data=content[i:i + 1000000])
               for i in range(0, len(content), 1000000)]
    image = client.images.PutImage(iter(pieces))
    check(image.size == len(content) and image.name == 'blob.bin', image)
    again = client.images.PutImage(iter([images_pb2.PutImageRequest(
        name='blob.bin', sha256=image.sha256)]))
    check(again.sha256 == image.sha256 and again.size == image.size, again)
    listed = client.images.ListImages(images_pb2.ListImagesRequest()).images
    check(any(i.sha256 == image.sha256 for i in listed), listed)
    wrong = 'sha256:' + '0' * 64
    expect(grpc.StatusCode.INVALID_ARGUMENT, lambda: client.images.PutImage(iter(
        [images_pb2.PutImageRequest(name='x', sha256=wrong, data=b'abc')])))


def test_errors(client, server):
    nothing = client.channel.unary_unary('/tracelake.v1.Catalog/Nothing')
    expect(grpc.StatusCode.UNIMPLEMENTED, lambda: nothing(b''))
    e = expect(grpc.StatusCode.NOT_FOUND, lambda: client.text('none', 'cs.0'))
    check('none' in e.details(), e.details())
    expect(grpc.StatusCode.NOT_FOUND, lambda: client.text('itm-1', 'cs.99'))
    expect(grpc.StatusCode.INVALID_ARGUMENT, lambda: list(client.ranges.Fetch(
        ranges_pb2.FetchRequest(trace='itm-1', stream='cs.00', begin=9, to=3))))

    def damaged():
        yield ingest_pb2.PushRequest(open=ingest_pb2.Open(rig='bad', trace='bad', setup=SETUP))
        yield ingest_pb2.PushRequest(chunk=ingest_pb2.Chunk(offset=0, data=b'abc', crc32c=1))

    e = expect(grpc.StatusCode.INVALID_ARGUMENT, lambda: list(client.ingest.Push(damaged())))
    check(e.details().startswith('offset 0:'), e.details())
    expect(grpc.StatusCode.ALREADY_EXISTS, lambda: client.push('itm-1', b'abc'))
    big = ingest_pb2.PushRequest(chunk=ingest_pb2.Chunk(data=bytes(5 << 20)))
    expect(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: list(client.ingest.Push(iter([big]))))


def test_deadline_and_cancel(client, server):
    watch = client.catalog.WatchTraces(catalog_pb2.WatchTracesRequest(), timeout=0.3)
    expect(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: list(watch))
    watch = client.catalog.WatchTraces(catalog_pb2.WatchTracesRequest())
    next(watch)
    watch.cancel()
    expect(grpc.StatusCode.CANCELLED, lambda: list(watch))
    newest = client.catalog.ListTraces(catalog_pb2.ListTracesRequest(page_size=1)).traces[0].id
    watch = client.catalog.WatchTraces(catalog_pb2.WatchTracesRequest(limit=1))
    state = next(watch)
    check([t.id for t in state.traces] == [newest] and state.next_page_token, state)
    watch.cancel()
    expect(grpc.StatusCode.INVALID_ARGUMENT, lambda: list(
        client.catalog.WatchTraces(catalog_pb2.WatchTracesRequest(limit=10001))))


def test_gzip(client, server):
    data = capture(30000, 5)
    zipped = Client(grpc.insecure_channel(server.address, compression=grpc.Compression.Gzip))
    zipped.push('zipped', data)
    trace = zipped.wait_sealed('zipped')
    check(trace.raw_bytes == len(data), trace)
    name = trace.streams[0].name
    check(zipped.text('zipped', name) == client.text('zipped', name), 'gzip changes the text')
    zipped.channel.close()


def test_tls(client, server):
    with open(server.cert, 'rb') as f:
        credentials = grpc.ssl_channel_credentials(f.read())
    with grpc.secure_channel(server.tls_address, credentials) as channel:
        tls = Client(channel)
        data = capture(200000, 6)
        tls.push('tls', data, step=50000)
        trace = tls.wait_sealed('tls')
        name = trace.streams[0].name
        check(tls.text('tls', name) == client.text('tls', name), 'TLS changes the text')


def described(server):
    """Message classes of gRPC's health and reflection protocols, from the server's own files."""
    files = descriptor_pb2.FileDescriptorSet()
    with open(server.descriptors, 'rb') as f:
        files.ParseFromString(f.read())
    pool = descriptor_pool.DescriptorPool()
    for f in files.file:
        pool.Add(f)
    factory = message_factory.MessageFactory(pool)
    return lambda name: factory.GetPrototype(pool.FindMessageTypeByName(name))


def test_health_and_reflection(client, server):
    message = described(server)
    request = message('grpc.health.v1.HealthCheckRequest')
    response = message('grpc.health.v1.HealthCheckResponse')
    check_health = client.channel.unary_unary(
        '/grpc.health.v1.Health/Check', request.SerializeToString, response.FromString)
    for service in ('', 'tracelake.v1.Ingest', 'tracelake.v1.Ranges'):
        check(check_health(request(service=service)).status == 1, service)
    expect(grpc.StatusCode.NOT_FOUND, lambda: check_health(request(service='nobody')))
    for version in ('v1', 'v1alpha'):
        package = 'grpc.reflection.%s.' % version
        ask = message(package + 'ServerReflectionRequest')
        told = message(package + 'ServerReflectionResponse')
        info = client.channel.stream_stream(
            '/' + package + 'ServerReflection/ServerReflectionInfo', ask.SerializeToString,
            told.FromString)
        names = next(info(iter([ask(list_services='')]))).list_services_response.service
        check('tracelake.v1.Ingest' in [s.name for s in names], names)
        # Build the messages from the server's reflection data, as a generic client does.
        pool = descriptor_pool.DescriptorPool()
        for service in names:
            reply = next(info(iter([ask(file_containing_symbol=service.name)])))
            for raw in reply.file_descriptor_response.file_descriptor_proto:
                pool.AddSerializedFile(raw)
        method = pool.FindMethodByName('tracelake.v1.Ranges.Fetch')
        check(method.input_type.fields_by_name['stream'].number == 2, 'Fetch')


def test_clean_end(client, server):
    """On SIGTERM, calls in progress end with UNAVAILABLE, and what was pushed is kept."""
    data = capture(1000, 7)
    opened = threading.Event()
    hold = threading.Event()

    def requests():
        yield ingest_pb2.PushRequest(open=ingest_pb2.Open(rig='r', trace='cut', setup=SETUP))
        yield ingest_pb2.PushRequest(chunk=ingest_pb2.Chunk(
            offset=0, data=data, crc32c=crc32c(data)))
        hold.wait(240)

    watch = client.catalog.WatchTraces(catalog_pb2.WatchTracesRequest())
    next(watch)
    push = client.ingest.Push(requests())
    for reply in push:
        if reply.WhichOneof('step') == 'ack':
            check(reply.ack.durable == len(data), reply)
            opened.set()
            break
    server.terminate()
    expect(grpc.StatusCode.UNAVAILABLE, lambda: list(push))
    expect(grpc.StatusCode.UNAVAILABLE, lambda: list(watch))
    hold.set()
    server.stop()
    server.start()
    again = Client(grpc.insecure_channel(server.address))
    offset = again.ingest.GetOffset(ingest_pb2.GetOffsetRequest(trace='cut'))
    check(offset.durable == len(data) and not offset.complete, offset)
    again.push('cut', data + capture(500, 8), resume=True)
    check(again.wait_sealed('cut').raw_bytes == 1500, 'resumed')
    again.channel.close()


TESTS = [test_push_and_fetch, test_many_rigs, test_catalog, test_lookups, test_follow, test_images,
         test_errors, test_deadline_and_cancel, test_gzip, test_tls, test_health_and_reflection,
         test_clean_end]


def run(server):
    channel = grpc.insecure_channel(server.address)
    client = Client(channel)
    for test in TESTS:
        begin = time.monotonic()
        test(client, server)
        print('%-30s %.2f s' % (test.__name__, time.monotonic() - begin), flush=True)
    channel.close()
