#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A folder's lake is copied into the cluster of TL_RADOS while a server on the cluster serves what
has arrived; and back."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'e2e'))
from archive import check_moved, moved, rows, store_copy  # noqa: E402
from lab import Lab, wait  # noqa: E402

lab, server = Lab(os.environ['TL_BUILD']), Lab(os.environ['TL_BUILD'])
try:
    cluster = os.environ['TL_RADOS'] + '&namespace=moved'
    server.start('--store', cluster)
    text = moved(lab, cluster)
    wait('all is shown', lambda: sorted(t['state'] for t in rows(server)) == ['sealed'] * 3,
         lambda: rows(server))
    check_moved(server, text)
    lab.data = lab.path('back')
    store_copy(lab, 0, cluster, lab.data)
    server.stop()
    lab.start()
    check_moved(lab, text)
    lab.stop()
finally:
    lab.close()
    server.close()
