# SPDX-License-Identifier: MIT
"""`tracelake serve` in a folder of its own."""

import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
from lab import SOURCE, Skip, check, free_port, wait  # noqa: E402, F401


def tool(name):
    if not shutil.which(name):
        raise Skip(name + ' is not installed')


class Server:
    def __init__(self, build, folder, *options):
        self.source = SOURCE
        self.command = os.path.join(build, 'tracelake')
        self.dir = folder
        self.data = os.path.join(folder, 'data')
        self.cert = os.path.join(self.data, 'tls-cert.pem')
        self.log = os.path.join(folder, 'log')
        self.options = options
        self.process = None

    def start(self):
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(
                [self.command, 'serve', '--data', self.data, '--listen', '127.0.0.1:0',
                 '--listen-tls', '127.0.0.1:0', *self.options], stdout=subprocess.PIPE, stderr=log,
                text=True)
        lines = []
        while not lines or lines[-1] != 'ready':
            line = self.process.stdout.readline()
            check(line, 'the server ended early', lines, self.told())
            lines.append(line.strip())
        self.lines = lines
        self.url, self.tls_url = lines[0], lines[1].replace('127.0.0.1', 'localhost')
        self.address = self.url.split('//')[1]
        self.tls_address = self.tls_url.split('//')[1]

    def told(self):
        """The server's journal, line by line."""
        with open(self.log, encoding='utf-8') as f:
            return f.read().splitlines()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        """Stop the server as a user would; it must exit cleanly by itself."""
        if self.process.poll() is None:
            self.terminate()
        check(self.process.wait(timeout=240) == 0, 'exit status', self.process.returncode)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
            self.process.stdout.close()
