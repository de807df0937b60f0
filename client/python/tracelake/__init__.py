# SPDX-License-Identifier: MIT
"""Push hardware traces to a tracelake server, fetch and follow what was decoded of them.

A Lake is a connection. Its methods may be called from any thread; a Push, and each iterator, is of
one thread at a time.
"""

from .lake import Error, Instruction, Item, Lake, connect
from .push import Push

__all__ = ['Error', 'Instruction', 'Item', 'Lake', 'Push', 'connect']
