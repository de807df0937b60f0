# SPDX-License-Identifier: MIT
"""Tables that are answers, as lists of values and for numpy, pyarrow and pandas."""

import array
import importlib
import sys


class Table:
    """Rows of an answer. `names` and `columns` are lists; a column is an array.array of int64 ('q') or
    double ('d') where no row is without a value, otherwise a list with None for these; texts are a
    list. `truncated`: there are more rows."""

    def __init__(self):
        self.names, self.columns, self.truncated = [], [], False

    def __len__(self):
        return len(self.columns[0]) if self.columns else 0

    def add(self, batch):
        """Append a message Table."""
        if not self.names:
            self.names = [column.name for column in batch.columns]
            self.columns = [None] * len(self.names)
        self.columns = [_join(old, _values(new, batch.rows)) for old, new in zip(self.columns, batch.columns)]
        self.truncated = batch.truncated

    def rows(self):
        """Tuples, one for each row."""
        return zip(*self.columns)

    def numpy(self):
        """A dict of numpy arrays; columns with texts or without some values have objects."""
        numpy = load_module('numpy')
        return {name: numpy.frombuffer(c, dtype=c.typecode) if isinstance(c, array.array) else
                numpy.array(c, dtype=object) for name, c in zip(self.names, self.columns)}

    def arrow(self):
        """A pyarrow.Table, which pyarrow.parquet writes; arrays are not copied."""
        pyarrow = load_module('pyarrow')
        types = {'q': pyarrow.int64(), 'd': pyarrow.float64()}
        columns = [pyarrow.Array.from_buffers(types[c.typecode], len(c), [None, pyarrow.py_buffer(c)])
                   if isinstance(c, array.array) else pyarrow.array(c) for c in self.columns]
        return pyarrow.Table.from_arrays(columns, names=self.names)

    def pandas(self):
        """A pandas.DataFrame."""
        pandas = load_module('pandas')
        return pandas.DataFrame(self.numpy())


# What the optional modules are for; Debian 12 has no package of pyarrow.
_GET = {'numpy': 'python3-numpy', 'pandas': 'python3-pandas', 'pyarrow': 'pip install pyarrow'}


def load_module(name):
    """A module that only some of the methods need."""
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise ImportError('this needs the module %s, which cannot be loaded (%s): install %s' % (name, e, _GET[name])) from e


def _join(old, new):
    if old is None:
        return new
    if isinstance(old, array.array) and isinstance(new, array.array) and old.typecode == new.typecode:
        old.extend(new)
        return old
    old = old if isinstance(old, list) else list(old)
    old.extend(new)
    return old


def _values(column, rows):
    """The values of a message TableColumn."""
    values = array.array({0: 'q', 1: 'd', 2: 'I'}[column.kind])
    values.frombytes(column.values)
    if sys.byteorder == 'big':
        values.byteswap()
    if column.kind == 2:
        texts = list(column.texts)
        values = [texts[i] if i < len(texts) else None for i in values]
    if column.nulls:
        values = [None if column.nulls[i >> 3] >> (i & 7) & 1 else values[i] for i in range(rows)]
    return values
