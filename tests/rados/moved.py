#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A folder's lake moves into the cluster of TL_RADOS, is served from there, and moves back."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'e2e'))
from archive import check_moved, moved, store_copy  # noqa: E402
from lab import Lab  # noqa: E402

lab = Lab(os.environ['TL_BUILD'])
try:
    cluster = os.environ['TL_RADOS'] + '&namespace=moved'
    text = moved(lab, cluster)
    folder, lab.data = lab.data, lab.path('none')
    lab.start('--store', cluster)
    check_moved(lab, text)
    lab.stop()
    lab.data = lab.path('back')
    store_copy(lab, 0, cluster, lab.data)
    lab.start()
    check_moved(lab, text)
    lab.stop()
finally:
    lab.close()
