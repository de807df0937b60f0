# SPDX-License-Identifier: MIT
"""Every method of every service once, with gRPC's Python library, and streams of 100 MB. The
requests are in calls.json, which grpc_js.mjs also reads."""

import itertools
import json
import os
import random

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

import sim
from grpc_client import crc32c
from server import check
from tracelake.v1 import ingest_pb2, ingest_pb2_grpc, raw_pb2, raw_pb2_grpc

CALLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'calls.json')
PIECES = 100  # of 1 MB


def methods(server):
    """The methods of tracelake's own services by path, with their message classes."""
    files = descriptor_pb2.FileDescriptorSet()
    with open(server.descriptors, 'rb') as f:
        files.ParseFromString(f.read())
    pool = descriptor_pool.DescriptorPool()
    factory = message_factory.MessageFactory(pool)
    out = {}
    for file in files.file:
        pool.Add(file)
        for service in file.service if file.package == 'tracelake.v1' else ():
            for method in service.method:
                types = [factory.GetPrototype(pool.FindMessageTypeByName(t.lstrip('.')))
                         for t in (method.input_type, method.output_type)]
                out['tracelake.v1.%s/%s' % (service.name, method.name)] = (method, *types)
    return out


def start(channel, path, known, requests):
    """The replies to a call of any type."""
    method, request, reply = known[path]
    shape = '%s_%s' % tuple('stream' if s else 'unary'
                            for s in (method.client_streaming, method.server_streaming))
    call = getattr(channel, shape)('/' + path, request.SerializeToString, reply.FromString)
    messages = [json_format.ParseDict(r, request()) for r in requests]
    got = call(iter(messages) if method.client_streaming else messages[0], timeout=240)
    return got if method.server_streaming else [got]


def every_method(channel, server):
    known = methods(server)
    with open(CALLS, encoding='utf-8') as f:
        calls = json.load(f)
    asked = {c['method'] for c in calls}
    check(asked == set(known), 'calls.json differs from the services in', asked ^ set(known))
    for c in calls:
        status = 'OK'
        try:
            replies = start(channel, c['method'], known, c['requests'])
            if c.get('endless'):
                next(replies)
                replies.cancel()
            else:
                check(len(list(replies)) > 0, c['method'], 'has no reply')
        except grpc.RpcError as e:
            status = e.code().name
        check(status == c.get('status', 'OK'), c, status)


def long_streams(channel):
    """Push 100 MB and fetch the same bytes."""
    piece = random.Random(1).randbytes(1 << 20)
    crc = crc32c(piece)

    def requests():
        yield ingest_pb2.PushRequest(open=ingest_pb2.Open(
            rig='r', trace='long', setup='[trace]\nformat=etm4,id=0x10\n'))
        for i in range(PIECES):
            yield ingest_pb2.PushRequest(chunk=ingest_pb2.Chunk(
                offset=i * len(piece), data=piece, crc32c=crc))
        yield ingest_pb2.PushRequest(finish=ingest_pb2.Finish(length=PIECES * len(piece)))

    for reply in ingest_pb2_grpc.IngestStub(channel).Push(requests(), timeout=240):
        pass
    check(reply.finished.durable == PIECES * len(piece), reply)
    raw = raw_pb2_grpc.RawStub(channel)
    at = 0
    for reply in raw.FetchRaw(raw_pb2.FetchRawRequest(trace='long'), timeout=240):
        check(reply.offset == at, 'offset', reply.offset, at)
        begin = at % len(piece)
        wanted = (piece + piece)[begin:begin + len(reply.data)]
        check(len(reply.data) <= len(piece) and reply.data == wanted, 'the bytes differ at', at)
        at += len(reply.data)
    check(at == PIECES * len(piece), 'fetched', at)
    # A client that has read enough cancels the call.
    some = raw.FetchRaw(raw_pb2.FetchRawRequest(trace='long'))
    check(len(list(itertools.islice(some, 3))) == 3, 'the stream is short')
    some.cancel()
    try:
        list(some)
    except grpc.RpcError as e:
        check(e.code() == grpc.StatusCode.CANCELLED, e.code())


def run(server):
    sim.push(server)
    with grpc.insecure_channel(server.address) as channel:
        every_method(channel, server)
        long_streams(channel)
