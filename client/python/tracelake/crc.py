# SPDX-License-Identifier: MIT
"""CRC-32C of bytes in pieces, as fast as what is installed allows: by google-crc32c or crc32c, else by
numpy, else byte by byte, some MB in a second."""

import functools

_POLYNOMIAL = 0x82f63b78  # reflected
_LANE = 256  # bytes that numpy takes one behind another; lanes are taken side by side
_SHORT = 1024  # fewer bytes are faster without numpy


def _step(c):
    return c >> 1 ^ (_POLYNOMIAL if c & 1 else 0)


_TABLE = [functools.reduce(lambda c, _: _step(c), range(8), i) for i in range(256)]


def plain(data, crc=0):
    """Of `data` behind bytes with the CRC `crc`."""
    state, table = crc ^ 0xffffffff, _TABLE
    for b in data:
        state = state >> 8 ^ table[(state ^ b) & 255]
    return state ^ 0xffffffff


@functools.lru_cache(None)
def _numpy_tables():
    """numpy; what two bytes make of a state; and what 2^k lanes of zeros make of each byte of one."""
    import numpy
    pairs = numpy.arange(1 << 16, dtype=numpy.uint32)
    for _ in range(16):
        pairs = pairs >> 1 ^ numpy.where(pairs & 1, numpy.uint32(_POLYNOMIAL), numpy.uint32(0))
    bits = numpy.uint32(1) << numpy.arange(32, dtype=numpy.uint32)
    for _ in range(_LANE // 2):
        bits = pairs[bits & 0xffff] ^ bits >> 16
    shifts = []
    for _ in range(32):
        table = numpy.zeros((4, 256), dtype=numpy.uint32)
        for i in range(32):
            table[i // 8, numpy.arange(256) >> i % 8 & 1 == 1] ^= bits[i]
        shifts.append(table)
        bits = _shifted(table, bits)
    return numpy, pairs, shifts


def _shifted(table, states):
    return table[0][states & 255] ^ table[1][states >> 8 & 255] ^ table[2][states >> 16 & 255] ^ table[3][states >> 24]


def by_numpy(data, crc=0):
    """The same. Zeros in front of all do not change a state of 0, and a state is the same as one of 0
    with other first bytes: thus data becomes 2^k lanes, which are joined two by two."""
    if len(data) < _SHORT:
        return plain(data, crc)
    numpy, pairs, shifts = _numpy_tables()
    lanes = 1 << (-(-len(data) // _LANE) - 1).bit_length()
    padded = numpy.zeros(lanes * _LANE, dtype=numpy.uint8)
    begin = len(padded) - len(data)
    padded[begin:] = numpy.frombuffer(data, dtype=numpy.uint8)
    padded[begin:begin + 4] ^= numpy.frombuffer((crc ^ 0xffffffff).to_bytes(4, 'little'), dtype=numpy.uint8)
    columns = numpy.ascontiguousarray(padded.view('<u2').reshape(lanes, _LANE // 2).T)
    states = numpy.zeros(lanes, dtype=numpy.uint32)
    for column in columns:
        states = pairs[(states ^ column) & 0xffff] ^ states >> 16
    for table in shifts:
        if len(states) == 1:
            break
        states = _shifted(table, states[0::2]) ^ states[1::2]
    return int(states[0]) ^ 0xffffffff


def _best():
    try:
        from google_crc32c import extend
        return lambda data, crc=0: extend(crc, bytes(data))
    except ImportError:
        pass
    try:
        from crc32c import crc32c as other
        return lambda data, crc=0: other(bytes(data), crc)
    except ImportError:
        pass
    try:
        import numpy  # noqa: F401
        return by_numpy
    except ImportError:
        return plain


crc32c = _best()
