# SPDX-License-Identifier: MIT
"""The command before a server, one of gRPC's, whose answers say that the index is behind: it tells how far they go."""

import re
import subprocess
from concurrent import futures

import grpc

from server import check
from tracelake.v1 import lookups_pb2 as lookups, ranges_pb2 as ranges

TO = 4711  # the index ends there
ABOUT = ranges.Timing(to=TO, has_time=True, time=9)
# method, its request, its answer, the command, what makes the answer an incomplete one
QUESTIONS = [
    ('Lookups/Stats', lookups.StatsRequest, lookups.StatsReply(to=TO), ['stats'], {'behind': True}),
    ('Lookups/Call', lookups.CallRequest, lookups.CallReply(name='main', to=9), ['call', '--insn', '5'],
     {'behind_from': TO}),
    ('Lookups/Compare', lookups.CompareRequest,
     lookups.CompareReply(a=lookups.CompareSide(to=TO), b=lookups.CompareSide(to=TO)), ['diff', 't/cs.10'],
     {'behind': True}),
    ('Ranges/Find', ranges.FindRequest, ranges.FindReply(hits=[ranges.Hit(text='x', stream='cs.10')]),
     ['find', '--symbol', 'x'], {'behind_stream': 'cs.10', 'behind_from': TO}),
    ('Ranges/Functions', ranges.FunctionsRequest, ranges.FunctionsReply(about=ABOUT), ['functions'], 'about'),
    ('Ranges/Calls', ranges.CallsRequest, ranges.CallsReply(about=ABOUT), ['calls', 'main'], 'about'),
    ('Ranges/Exceptions', ranges.ExceptionsRequest, ranges.ExceptionsReply(about=ABOUT), ['interrupts'], 'about'),
    ('Lookups/Profile', lookups.ProfileRequest, lookups.ProfileReply(insns=1), ['stats', '--tree'], {'behind': True}),
    ('Ranges/Coverage', ranges.CodeRequest, ranges.CoverageReply(), ['coverage'], {'behind': True}),
    ('Ranges/Code', ranges.CodeRequest, ranges.CodeReply(), ['profile', '--as', 'autofdo'], {'behind': True}),
    ('Ranges/Gaps', ranges.GapsRequest, ranges.GapsReply(about=ABOUT), ['gaps'], 'about'),
]


def incomplete(reply, what):
    made = type(reply)()
    made.CopyFrom(reply)
    if what == 'about':
        made.about.behind = True
    else:
        for name, value in what.items():
            setattr(made, name, value)
    return made


def answers(behind):
    """Handlers by service."""
    services = {}
    for method, request, reply, _, what in QUESTIONS:
        service, name = method.split('/')
        answer = incomplete(reply, what) if behind else reply
        how, give = ((grpc.unary_stream_rpc_method_handler, lambda request, context, answer=answer: iter([answer]))
                     if request is ranges.CodeRequest else
                     (grpc.unary_unary_rpc_method_handler, lambda request, context, answer=answer: answer))
        services.setdefault(service, {})[name] = how(give, request.FromString, lambda message: message.SerializeToString())
    return [grpc.method_handlers_generic_handler('tracelake.v1.' + service, methods)
            for service, methods in services.items()]


def ask(server, command, port):
    out = subprocess.run([server.command, command[0], 't/cs.10', *command[1:], '--server', 'http://127.0.0.1:%d' % port],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=240)
    check(out.returncode in (0, 1), command, out.stdout)
    return out.stdout.decode()


def run(server):
    for behind in (True, False):
        peer = grpc.server(futures.ThreadPoolExecutor(4))
        for handler in answers(behind):
            peer.add_generic_rpc_handlers((handler,))
        port = peer.add_insecure_port('127.0.0.1:0')
        peer.start()
        for _, _, _, command, _ in QUESTIONS:
            text = ask(server, command, port)
            told = re.search('behind: (what is from instruction %d on|part of it) is still being indexed' % TO, text)
            check(bool(told) == behind, command, behind, text)
        peer.stop(None)
