# SPDX-License-Identifier: MIT
"""The connection: catalog, ranges, live streams."""

import collections
import contextlib
import hashlib
import json
import mmap
import ssl
import time
import urllib.parse

import grpc

from .messages import Method
from .table import Table, load_module

INSN, TIME, BYTE = 0, 1, 2
JSON = 3
_UNITS = {'insn': INSN, 'time': TIME, 'byte': BYTE, 'ns': 3}
_WEIGHTS = {'insns': 0, 'time': 1, 'cycles': 2}
_FORMS = {'zstf': 0, 'stf': 1, 'text': 2, 'json': JSON, 'named': 4}
_HITS = 10000  # in an answer
_MESSAGE_MOST = 256 << 20
_RETRY_S = (0.05, 0.1, 0.2, 0.5, 1, 2)
_OTHERS_S = 10  # how long a call is made again where there are several servers
_ONCE = {'BindImage', 'DeleteNote', 'DeleteTrace', 'PutNote', 'Redecode',
         'RemoveImage'}


class Error(Exception):
    """A call failed. `code` is the name of the gRPC status, e.g. 'NOT_FOUND'."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def error_of(e):
    return Error(e.code().name, e.details() or e.code().name)


def passes(e):
    """May the call be made again: is the server away, or on its way out?"""
    return e.code() == grpc.StatusCode.UNAVAILABLE


# One element of flow text (docs/flow-text.md): `at` is its position in the stream, `kind` its
# letter, `fields` the words behind it.
Item = collections.namedtuple('Item', 'at kind fields')

# How often code was run: `runs` and `branches` are dicts {(from, to): count}, of instructions one
# behind another, and of branches that were taken.
Code = collections.namedtuple('Code', 'insns runs branches truncated')

# What was executed of programs, by rows of the messages CoveredFunction, CoveredLine and
# CoveredBranch, whose `file` is a number from 1 on in `files`.
Coverage = collections.namedtuple('Coverage', 'files functions lines branches truncated')

# numpy's names of kinds of columns: integers and reals, and those of arrays().
_DTYPES = {0: '<i8', 1: '<f8', 3: '<u8', 4: '<u4', 5: 'u1'}


# An instruction as it was executed. `encoding` is hexadecimal text, None where no image has it;
# `time` is the last timestamp in front of it (ns or ticks), `mode` e.g. 'el1.ns.a64', `context` and
# `vmid` as flow text has them; each None where the trace has not said it.
Instruction = collections.namedtuple('Instruction', 'at pc encoding time mode context vmid')


def connect(url='http://127.0.0.1:7070', token=None, cafile=None, fingerprint=None, timeout=60,
            mangled=False):
    """Connect to http://HOST[:PORT] or https://HOST[:PORT], or to several with commas between them:
    servers of one lake, of which the next is taken where one goes away.

    `token` is the token itself; `cafile` certificates to trust; `fingerprint` the SHA-256 of the
    server's certificate, which is then trusted as it is; `timeout` seconds for each call that is
    answered by one message; `mangled`: C++ and Rust functions are named as in their files, not
    demangled.
    """
    return Lake(url, token, cafile, fingerprint, timeout, mangled)


def _pinned(host, port, fingerprint):
    """The server's certificate, if it is the one that is meant."""
    pem = ssl.get_server_certificate((host, port))
    wanted = fingerprint.lower().replace('sha256:', '').replace(':', '')
    if hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest() != wanted:
        raise Error('UNAUTHENTICATED', 'the certificate of %s:%d is another one' % (host, port))
    return pem.encode()


def _channel(url, cafile, fingerprint):
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ('http', 'https') or not parts.hostname:
        raise ValueError('%s: give http://HOST[:PORT] or https://HOST[:PORT]' % url)
    port = parts.port or (7443 if parts.scheme == 'https' else 7070)
    host = parts.hostname
    target = '[%s]:%d' % (host, port) if ':' in host else '%s:%d' % (host, port)
    options = [('grpc.max_receive_message_length', _MESSAGE_MOST),
               ('grpc.max_send_message_length', _MESSAGE_MOST)]
    if parts.scheme == 'http':
        return grpc.insecure_channel(target, options)
    roots = None
    if fingerprint:
        roots = _pinned(host, port, fingerprint)
        # The certificate is known; its names do not matter.
        options.append(('grpc.ssl_target_name_override', 'localhost'))
    elif cafile:
        with open(cafile, 'rb') as f:
            roots = f.read()
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(roots), options)


class _Servers:
    """One or several, one of which is used. The connection to each is made when it is needed."""

    def __init__(self, urls, cafile, fingerprint):
        self._urls, self._cafile = urls.split(','), cafile
        pins = fingerprint.split(',') if fingerprint else [None]
        self._pins = pins * len(self._urls) if len(pins) == 1 else pins
        if len(self._pins) != len(self._urls):
            raise ValueError('give one fingerprint, or one for each server')
        self._channels, self._at = {}, 0
        self.channel()

    def __len__(self):
        return len(self._urls)

    def channel(self):
        if self._at not in self._channels:
            self._channels[self._at] = _channel(self._urls[self._at], self._cafile,
                                                self._pins[self._at])
        return self._channels[self._at]

    def leave(self):
        """Have the next call at the next one."""
        self._at = (self._at + 1) % len(self._urls)

    def again(self, e, begun, tries):
        """Shall a call be made again that failed? If so, at the next server."""
        if not passes(e) or len(self) == 1 or time.monotonic() - begun > _OTHERS_S:
            return False
        self.leave()
        if tries % len(self) == len(self) - 1:
            time.sleep(_RETRY_S[min(tries // len(self), 3)])
        return True

    def close(self):
        for channel in self._channels.values():
            channel.close()


class Lake:
    """A connection. Made by connect(); may be used as a context manager."""

    def __init__(self, url, token=None, cafile=None, fingerprint=None, timeout=60, mangled=False):
        self._servers = _Servers(url, cafile, fingerprint)
        self._metadata = [('authorization', 'Bearer ' + token)] if token else []
        if mangled:
            self._metadata.append(('tracelake-names', 'mangled'))
        self._timeout = timeout

    def close(self):
        self._servers.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # ---- calls by name ----

    def call(self, service, name, **fields):
        """A call with one answer, e.g. call('Catalog', 'GetTrace', trace='t')."""
        method = Method(service, name)
        begun, tries = time.monotonic(), 0
        while True:
            made = self._servers.channel().unary_unary(
                method.path, method.request.SerializeToString, method.reply.FromString)
            try:
                return made(method.request(**fields), timeout=self._timeout,
                            metadata=self._metadata)
            except grpc.RpcError as e:
                if name in _ONCE or not self._servers.again(e, begun, tries):
                    raise error_of(e) from None
            tries += 1

    def leave(self):
        """Have the next call at the next server."""
        self._servers.leave()

    def others(self):
        """Are there several servers?"""
        return len(self._servers) > 1

    def stream(self, service, name, **fields):
        """Iterate over the answers of a call with several. One that breaks within is an error."""
        begun, tries, any_yet = time.monotonic(), 0, False
        while True:
            try:
                for reply in self._open(service, name, fields):
                    any_yet = True
                    yield reply
                return
            except grpc.RpcError as e:
                if any_yet or not self._servers.again(e, begun, tries):
                    raise error_of(e) from None
            tries += 1

    def _open(self, service, name, fields):
        method = Method(service, name)
        made = self._servers.channel().unary_stream(
            method.path, method.request.SerializeToString, method.reply.FromString)
        return made(method.request(**fields), metadata=self._metadata)

    def open_bidi(self, service, name, requests):
        """A call both ways; `requests` is an iterator. The gRPC call object."""
        method = Method(service, name)
        made = self._servers.channel().stream_stream(
            method.path, method.request.SerializeToString, method.reply.FromString)
        return made(requests, metadata=self._metadata)

    # ---- catalog ----

    def traces(self):
        """All traces, newest first."""
        token = ''
        while True:
            reply = self.call('Catalog', 'ListTraces', page_token=token)
            yield from reply.traces
            token = reply.next_page_token
            if not token:
                return

    def trace(self, trace):
        return self.call('Catalog', 'GetTrace', trace=trace)

    def wait_sealed(self, trace, poll=0.1):
        """Wait until a complete capture is decoded; the trace."""
        while True:
            row = self.trace(trace)
            if row.state != 2:  # TRACE_STATE_DECODING
                return row
            time.sleep(poll)

    def raw(self, trace, begin=0, end=0):
        """The rig's bytes as they came, in pieces; `end` 0: to the end. Gone on with at another
        server where one goes away."""
        begun, tries = time.monotonic(), 0
        while True:
            try:
                for reply in self._open('Raw', 'FetchRaw', {'trace': trace, 'begin': begin,
                                                            'to': end}):
                    begun, tries = time.monotonic(), 0
                    begin += len(reply.data)
                    if reply.data:
                        yield reply.data
                return
            except grpc.RpcError as e:
                if not self._servers.again(e, begun, tries):
                    raise error_of(e) from None
            if 0 < end == begin:
                return
            tries += 1

    # ---- images ----

    def images(self):
        """The program images that the server stores: messages Image."""
        return list(self.call('Images', 'ListImages').images)

    def remove_image(self, image, force=False):
        """Remove one, named by 'sha256:…' or the beginning of it, 'build-id:…', or its name; the message Image.
        With `force` also if traces refer to it."""
        return self.call('Images', 'RemoveImage', image=image, force=force)

    # ---- ranges ----

    def items(self, trace, stream, begin=0, end=0, unit='insn', **keep):
        """All that flow text has of a range; `end` 0: to the end of the stream. `unit` is insn,
        time or byte. `keep`: only a mode ('u'), process or thread, as `tracelake get` has them. Gone on
        with at another server where one goes away."""
        fields = {'trace': trace, 'stream': stream, 'unit': _UNITS[unit], 'begin': begin, 'to': end,
                  'format': JSON, 'filter': keep}
        begun, tries, taken = time.monotonic(), 0, 0
        while True:
            skip, lines = taken, _Lines()  # the same comes again, from its first item on
            try:
                for reply in self._open('Ranges', 'Fetch', fields):
                    for item in lines.take(reply.data):
                        if skip > 0:
                            skip -= 1
                            continue
                        begun, tries, taken = time.monotonic(), 0, taken + 1
                        yield item
                return
            except grpc.RpcError as e:
                if not self._servers.again(e, begun, tries):
                    raise error_of(e) from None
            tries += 1

    def follow(self, trace, stream, begin=None, **keep):
        """Items of a live stream as they come, from position `begin` (None: what comes from now
        on), until the trace is sealed; `keep` as for items(). Goes on where it was when the connection broke."""
        if begin is None:
            rows = [s for s in self.trace(trace).streams if s.name == stream]
            begin = rows[0].insns if rows else 0
        at, seen, tries = begin, 0, 0  # of the items at `at`, `seen` were handed out
        while True:
            skip, lines = seen, _Lines()
            try:
                for reply in self._open('Ranges', 'Follow', {'trace': trace, 'stream': stream,
                                                            'begin': at, 'format': JSON, 'filter': keep}):
                    tries = 0
                    for item in lines.take(reply.data):
                        if item.at == at and skip > 0:
                            skip -= 1
                            continue
                        at, seen = item.at, seen + 1 if item.at == at else 1
                        yield item
                return
            except grpc.RpcError as e:
                # Who takes the trace over knows its streams when it has decoded some of them.
                unknown = e.code() == grpc.StatusCode.NOT_FOUND and 0 < tries < 20
                if not (passes(e) or unknown) or tries >= 600:
                    raise error_of(e) from None
            self.leave()
            time.sleep(_RETRY_S[min(tries, len(_RETRY_S) - 1)])
            tries += 1

    def _state(self, trace, stream, at):
        """Mode, context and vmid of an instruction, each None where the trace has not said it."""
        reply = self.call('Lookups', 'States', trace=trace, stream=stream, begin=at, to=at + 1)
        for run in reply.runs[:1]:
            context, vmid = ('%x' % getattr(run, key) if run.HasField(key) else None for key in ('context', 'vmid'))
            return run.mode if run.HasField('mode') else None, context, vmid
        return None, None, None

    def instructions(self, trace, stream, begin=0, end=0, unit='insn'):
        """Instructions of a range, with what the trace said in front of each. In front of the range
        that is looked up but for the time, which is None up to the first timestamp within it."""
        now = mode = context = vmid = None
        first = True
        for item in self.items(trace, stream, begin, end, unit):
            kind, f = item.kind, item.fields
            if kind in 'IN':
                if first and item.at > 0:
                    mode, context, vmid = self._state(trace, stream, item.at)
                first = False
                yield Instruction(item.at, int(f[0], 16), f[1] if kind == 'I' else None, now, mode,
                                  context, vmid)
            elif kind == 'T':
                now = int(f[0])
            elif kind == 'M':
                mode = f[0]
            elif kind == 'C':
                context, vmid = (None if word == '-' else word for word in f[:2])

    def fetch(self, trace, stream='', begin=0, end=0, unit='insn', region='', form='zstf', **keep):
        """A range as one file, in pieces of bytes: `form` is zstf, stf, text or json. `region`: one of
        those that were kept by this name (tracelake simpoints --save), instead of stream and range. `keep` as for
        items()."""
        for reply in self.stream('Ranges', 'Fetch', trace=trace, stream=stream, begin=begin, to=end,
                                 unit=_UNITS[unit], region=region, format=_FORMS[form], filter=keep):
            if reply.data:
                yield reply.data

    def find(self, trace, stream='', begin=0, end=0, **what):
        """Hits in order, as messages Hit: of one of symbol, call, event, mnemonic, opcode, text
        (docs/http.md#find), or pc=(from, to), e.g. find('board-7', 'cs.10', call='main'). Without a
        stream: in all of the trace, by time."""
        if 'pc' in what:
            what['pc'] = dict(zip(('begin', 'to'), what['pc']))
        place = {}
        while True:
            reply = self.call('Ranges', 'Find', trace=trace, stream=stream, begin=begin, to=end,
                              limit=_HITS, **what, **place)
            yield from reply.hits
            if not reply.more or not reply.hits:
                return
            last = reply.hits[-1]
            place = {'near': last.stream, 'at': last.at.insn, 'skip': reply.skip}

    def simpoints(self, trace, stream, interval=10000000, most=30, begin=0, end=0):
        """Regions of `interval` instructions that stand for all of a range, at most so many: dicts
        with from, to, weight and more (docs/http.md#representative-regions)."""
        return [{'from': r.begin, 'to': r.to, 'interval': r.interval, 'weight': r.weight, 'intervals': r.intervals}
                for reply in self.stream('Lookups', 'SimPoints', trace=trace, stream=stream, begin=begin, end=end,
                                         interval=interval, most=most) for r in reply.found.regions]

    def sql(self, trace, text, rows=0, seconds=0):
        """The answer to a question in SQL (docs/sql.md): a Table. At most `rows` (100,000 if 0),
        within `seconds` (30 if 0)."""
        table = Table()
        for reply in self.stream('Ranges', 'Sql', trace=trace, text=text, rows=rows, seconds=seconds):
            table.add(reply)
        return table

    def arrays(self, trace, stream, begin=0, end=0, unit='insn', columns=('pc', 'opcode', 'size')):
        """Executed instructions of a range as a dict of numpy arrays, tens of millions in a second. Columns
        are pc, opcode (0: not of 2 or 4 bytes, or not known), size (bytes; 0: not known), position, and
        time (as the stream shows it; 0 if it has none)."""
        numpy = load_module('numpy')
        values, kinds = {name: _Bytes(numpy) for name in columns}, {}
        for reply in self.stream('Ranges', 'InsnColumns', trace=trace, stream=stream, unit=_UNITS[unit],
                                 begin=begin, to=end, columns=list(columns)):
            for column in reply.columns:
                values[column.name].add(column.values)
                kinds[column.name] = _DTYPES[column.kind]
        return {name: some.array(kinds[name]) for name, some in values.items()}

    # ---- profiles ----

    def code(self, *names, begin=0, end=0, unit='insn', contexts=(), image=''):
        """Counts of code of 'TRACE' or 'TRACE/STREAM', of several together: Code. `contexts`: only
        what ran with these context IDs; `image`: only that file's code, at its own addresses."""
        insns, truncated, runs, branches = 0, False, {}, {}
        for reply in self.stream('Ranges', 'Code', image=image,
                                 **_of_code(names, begin, end, unit, contexts)):
            insns, truncated = insns + reply.insns, truncated or reply.truncated
            runs.update(((c.source, c.target), c.count) for c in reply.runs)
            branches.update(((c.source, c.target), c.count) for c in reply.branches)
        return Code(insns, runs, branches, truncated)

    def coverage(self, *names, begin=0, end=0, unit='insn', contexts=()):
        """What of the programs was executed: Coverage. Arguments as of code()."""
        out = Coverage([], [], [], [], [])
        for reply in self.stream('Ranges', 'Coverage',
                                 **_of_code(names, begin, end, unit, contexts)):
            for to, more in zip(out, (reply.files, reply.functions, reply.lines, reply.branches)):
                to.extend(more)
            out.truncated.extend([True] if reply.truncated else [])
        return out._replace(truncated=bool(out.truncated))

    def profile(self, trace, stream='', begin=0, end=0, unit='insn', nodes=20000, weight='insns'):
        """Call stacks: a dict {(outermost, …, innermost): instructions run in the innermost}, or with
        weight='time' its own time, or weight='cycles' its own cycles, where the trace counts them."""
        reply = self.call('Lookups', 'Profile', trace=trace, stream=stream, begin=begin, to=end,
                          unit=_UNITS[unit], nodes=nodes, weight=_WEIGHTS[weight])
        stacks, path = collections.Counter(), []
        for node in reply.nodes:
            path[node.depth:] = [node.name]
            if node.self:
                stacks[tuple(path)] += node.self
        return dict(stacks)

    # ---- whose time it was (docs/time.md) ----

    def functions(self, trace, stream, begin=0, end=0, unit='insn', weight='time', limit=0):
        """The message FunctionsReply: own time with bounds, calls and their lengths, most time first."""
        return self.call('Ranges', 'Functions', limit=limit, weight=_WEIGHTS[weight],
                         **_range(trace, stream, begin, end, unit))

    def calls(self, trace, stream, function, begin=0, end=0, unit='insn', weight='time', order='longest',
              **which):
        """Calls of a function, as messages TimedCall: the longest first, or the shortest, or, with
        order='first', as they happened. `which`: least, most, lengths_in_ns, skip, limit."""
        return list(self.call('Ranges', 'Calls', function=function, weight=_WEIGHTS[weight],
                              order=('longest', 'shortest', 'first').index(order), **which,
                              **_range(trace, stream, begin, end, unit)).calls)

    def interrupts(self, trace, stream, begin=0, end=0, unit='insn'):
        """Exceptions and interrupts by number, as messages ExceptionTimes, most time first."""
        return list(self.call('Ranges', 'Exceptions', **_range(trace, stream, begin, end, unit)).exceptions)

    def gaps(self, trace, stream, begin=0, end=0, unit='insn', limit=0):
        """Stretches without trace, as messages TimedGap, the longest first."""
        return list(self.call('Ranges', 'Gaps', limit=limit, **_range(trace, stream, begin, end, unit)).gaps)

    # ---- tables ----

    def columns(self, trace, stream, begin=0, end=0, unit='insn'):
        """Instructions as a dict of lists: at, pc, encoding, time, mode, context, vmid."""
        rows = list(self.instructions(trace, stream, begin, end, unit))
        return {name: [row[i] for row in rows] for i, name in enumerate(Instruction._fields)}

    def to_arrow(self, trace, stream, begin=0, end=0, unit='insn'):
        """The same as a pyarrow.Table."""
        pyarrow = load_module('pyarrow')
        text, number = pyarrow.string(), pyarrow.uint64()
        types = {'at': number, 'pc': number, 'time': number}
        columns = self.columns(trace, stream, begin, end, unit)
        return pyarrow.table({name: pyarrow.array(values, types.get(name, text))
                              for name, values in columns.items()})

    def to_pandas(self, trace, stream, begin=0, end=0, unit='insn'):
        """The same as a pandas.DataFrame, by position."""
        pandas = load_module('pandas')
        columns = self.columns(trace, stream, begin, end, unit)
        types = {'at': 'uint64', 'pc': 'uint64', 'time': 'UInt64'}
        return pandas.DataFrame({name: pandas.Series(values, dtype=types.get(name, 'object'))
                                 for name, values in columns.items()}).set_index('at')

    # ---- captures ----

    def push(self, rig, setup, trace='', resume=True, **options):
        """Begin or go on with a capture: tracelake.Push."""
        from .push import Push
        return Push(self, rig, setup, trace, resume, **options)


def _range(trace, stream, begin, end, unit):
    return {'trace': trace, 'stream': stream, 'unit': _UNITS[unit], 'begin': begin, 'to': end}


def _of_code(names, begin, end, unit, contexts):
    """The fields of a CodeRequest."""
    first, *more = [name.partition('/')[::2] for name in names]
    return {'trace': first[0], 'stream': first[1], 'begin': begin, 'end': end, 'unit': _UNITS[unit],
            'also': [{'trace': trace, 'stream': stream} for trace, stream in more],
            'contexts': contexts}


class _Bytes:
    """Bytes that more are appended to, in memory that grows in place: to copy it, and to touch new pages for that,
    costs more than all else."""

    def __init__(self, numpy):
        self._numpy, self._room, self._n = numpy, None, 0

    def _grow(self, size):
        if self._room:
            self._room.resize(size)
        else:
            self._room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):  # no system needs to offer large pages
            self._room.madvise(mmap.MADV_HUGEPAGE)

    def add(self, data):
        end = self._n + len(data)
        if not self._room or end > len(self._room):
            self._grow(max(2 * self._n, end, 2 << 20))
        self._room[self._n:end] = data
        self._n = end

    def array(self, dtype):
        dtype = self._numpy.dtype(dtype)
        if not self._n:
            return self._numpy.empty(0, dtype)
        return self._numpy.frombuffer(self._room, dtype, self._n // dtype.itemsize)


class _Lines:
    """The JSON of ranges comes an item a line, in any pieces."""

    def __init__(self):
        self._rest = b''

    def take(self, data):
        lines = (self._rest + data).split(b'\n')
        self._rest = lines.pop()
        for line in lines:
            if line.startswith(b'{"at":'):
                row = json.loads(line.rstrip(b',]}') + b'}')
                yield Item(int(row['at']), row['kind'], row.get('text', '').split())
