# SPDX-License-Identifier: MIT
"""A capture on its way to the server: resumed where its durable bytes end."""

import collections
import hashlib
import itertools
import queue
import threading
import time

import grpc

from .crc import crc32c
from .messages import Method, message

_CHUNK = 256 << 10
_PERMANENT = {'ALREADY_EXISTS', 'PERMISSION_DENIED', 'UNAUTHENTICATED', 'INVALID_ARGUMENT',
              'FAILED_PRECONDITION', 'UNIMPLEMENTED', 'DATA_LOSS', 'NOT_FOUND'}


class Push:
    """Append bytes with write(); leaving the `with` block completes the capture, an exception in it
    leaves it open, to be resumed.

    `offset` is where the next byte written lies: behind opening it says where to go on, and compare()
    whether the server's bytes in front of it are those of this capture. `complete`: the trace is, and
    nothing can be appended. `acked`:
    everything in front of it would survive a power cut of the server. `window` bytes that are not
    acknowledged are kept at most, write() waits then. `retry` is for how many seconds to try to
    reconnect, None: for ever.
    """

    def __init__(self, lake, rig, setup, trace='', resume=True, window=16 << 20, retry=None):
        self._lake, self._rig, self._setup = lake, rig, setup
        self.trace, self._resume = trace, resume
        self._window, self._retry = window, retry
        self._kept = collections.deque()  # (offset, bytes), not acknowledged
        self._epoch = 0
        self._changed = threading.Condition()
        self._requests = self._call = self._error = None
        self._done = False
        self.offset = self.acked = 0
        self.content, self.complete = '', False
        self._connect(resume, first=True)
        self.offset = self._compared = self.acked

    # ---- one call ----

    def _open_call(self, resume):
        self._requests = queue.Queue()
        request = Method('Ingest', 'Push').request()
        request.open.CopyFrom(message('Open')(rig=self._rig, trace=self.trace, setup=self._setup,
                                              resume=resume, epoch=self._epoch))
        self._requests.put(request)
        self._call = self._lake.open_bidi('Ingest', 'Push', iter(self._requests.get, None))
        opened = next(self._call).opened
        self.trace, self._epoch = opened.trace, opened.epoch
        if not self.content:
            self.content, self.complete = opened.content, opened.complete
        return opened.durable

    def _connect(self, resume, first=False):
        from .lake import Error, error_of
        begun, pause = time.monotonic(), 0.01
        while True:
            try:
                durable = self._open_call(resume)
                break
            except grpc.RpcError as e:
                self._requests.put(None)
                left = self._retry is None or time.monotonic() - begun < self._retry
                if e.code().name in _PERMANENT or not left or (first and not resume):
                    raise error_of(e) from None
                self._lake.leave()
            time.sleep(pause)
            pause = min(2 * pause, 0.3 if self._lake.others() else 3)
        if durable < self.acked:
            raise Error('DATA_LOSS', 'the server has lost bytes that it had acknowledged')
        self._error = None
        self._take_durable(durable)
        threading.Thread(target=self._read, args=(self._call,), daemon=True).start()
        for offset, data in list(self._kept):
            self._send(offset, data)

    def _send(self, offset, data):
        request = Method('Ingest', 'Push').request()
        request.chunk.CopyFrom(message('Chunk')(offset=offset, data=data, crc32c=crc32c(data)))
        self._requests.put(request)

    def _take_durable(self, durable):
        with self._changed:
            self.acked = max(self.acked, durable)
            while self._kept and self._kept[0][0] + len(self._kept[0][1]) <= self.acked:
                self._kept.popleft()
            self._changed.notify_all()

    def _read(self, call):
        """Acknowledgements, by a thread of each call's own."""
        error = None
        try:
            for reply in call:
                step = reply.WhichOneof('step')
                if step == 'ack':
                    self._take_durable(reply.ack.durable)
                elif step == 'finished':
                    self._take_durable(reply.finished.durable)
                    self._done = True
        except grpc.RpcError as e:
            error = e
        with self._changed:
            if call is self._call:
                self._error = error or 'ended'
            self._changed.notify_all()

    def _again(self):
        """The call broke: make another one, or say why not."""
        from .lake import error_of
        error = self._error
        denied = error != 'ended' and error.code().name in _PERMANENT
        # A server that has lost the trace to another one says so by such a status.
        if denied and not (self._lake.others() and error.code().name == 'PERMISSION_DENIED'):
            raise error_of(error)
        if denied:
            self._lake.leave()
        self._requests.put(None)
        self._connect(True)

    # ---- the caller's ----

    def compare(self, data):
        """Check that the capture's bytes in front of where to go on, `data`, are those of the server; else
        this is another capture: ALREADY_EXISTS, to be pushed under another name. To be called before
        the first write(); send() does."""
        if len(data) != self._compared:
            raise ValueError('%d bytes are compared with %d' % (len(data), self._compared))
        self._check(self._digest_of((data,)))

    def _digest_of(self, pieces):
        """The digest of bytes by the kind that the server tells of; None: it tells none."""
        kind = self.content.partition(':')[0]
        if kind == 'sha256':
            sha = hashlib.sha256()
            for piece in pieces:
                sha.update(piece)
            return sha.hexdigest()
        crc = 0
        for piece in pieces:
            crc = crc32c(bytes(piece), crc) if kind == 'crc32c' else crc
        return '%08x' % crc if kind == 'crc32c' else None

    def _check(self, digest):
        from .lake import Error
        if digest is None and self._compared > 0:
            raise Error('FAILED_PRECONDITION', 'the server cannot tell what it has of trace ' + self.trace)
        if digest is not None and digest != self.content.partition(':')[2]:
            raise Error('ALREADY_EXISTS', 'trace %s has other bytes: push under another name' % self.trace)

    def send(self, source):
        """Append a capture from its first byte on: of a file, or of anything that gives bytes. What the
        server has already, from an earlier run, is compared with it and not sent again. To be called
        once, before any write()."""
        from .lake import Error
        pieces = iter(lambda: source.read(_CHUNK), b'') if hasattr(source, 'read') else iter(source)
        rest = []

        def first():
            left = self._compared
            while left > 0:
                piece = next(pieces, None)
                if piece is None:
                    raise Error('ALREADY_EXISTS', 'trace %s has more bytes than this capture: push under another name'
                                % self.trace)
                rest[:] = [piece[left:]]
                yield piece[:left]
                left -= min(left, len(piece))

        if self._compared > 0:
            self._check(self._digest_of(first()))
        for piece in itertools.chain(rest, pieces):
            if piece and self.complete:
                raise Error('ALREADY_EXISTS', 'trace %s is complete: push under another name' % self.trace)
            self.write(piece)

    def write(self, data):
        """Append; waits while the window is full."""
        view = memoryview(bytes(data))
        for at in range(0, len(view), _CHUNK):
            piece = bytes(view[at:at + _CHUNK])
            self._wait(lambda: self.offset - self.acked <= self._window)
            with self._changed:
                self._kept.append((self.offset, piece))
            self._send(self.offset, piece)
            self.offset += len(piece)

    def flush(self):
        """Wait until every byte written is durable."""
        self._wait(lambda: self.acked >= self.offset)

    def _wait(self, there):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: there() or self._error)
                if there():
                    return
            self._again()

    def finish(self):
        """The capture is complete; wait until all of it is durable and the server knows."""
        while not self._done:
            self.flush()
            request = Method('Ingest', 'Push').request()
            request.finish.length = self.offset
            self._requests.put(request)
            with self._changed:
                self._changed.wait_for(lambda: self._done or self._error)
            if not self._done and self._complete():
                return
            if not self._done:
                self._again()
        self._requests.put(None)

    def _complete(self):
        """The answer to `finish` may have been lost with its connection."""
        from .lake import Error
        try:
            reply = self._lake.call('Ingest', 'GetOffset', trace=self.trace)
        except Error as e:
            return e.code == 'NOT_FOUND' and self.offset == 0
        return reply.complete and reply.durable == self.offset

    def close(self):
        """Let go of it; not finished before, it can be resumed."""
        self._requests.put(None)
        if not self._done:
            self._call.cancel()

    def __enter__(self):
        return self

    def __exit__(self, kind, *exc):
        try:
            if kind is None:
                self.finish()
        finally:
            self.close()
