# SPDX-License-Identifier: MIT
"""A trace with instructions from the simulated rig."""

import os
import subprocess


def push(server):
    """Trace `sim`, streams cs.10 and cs.12; raw, truth, sim.ini and demo.elf in the server's folder."""
    rig = os.path.join(os.path.dirname(server.command), 'tracelake-rig')
    folder = server.dir
    subprocess.run([rig, '--kind', 'etm', '--server', server.url, '--trace', 'sim', '--rate',
                    '100000000', '--bytes', '3000', '--seed', '1', '--truth',
                    os.path.join(folder, 'truth'), '--save', os.path.join(folder, 'raw'), '--config',
                    os.path.join(folder, 'sim.ini'), '--image', os.path.join(folder, 'demo.elf')],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
