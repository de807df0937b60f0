# SPDX-License-Identifier: MIT
"""Clients written by others against the real server: interop.py BUILD
(behind|calls|cpp|curl|grpc|h2load|js|limits|python|serve)."""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import sim  # noqa: E402
from server import Server, Skip, check, tool  # noqa: E402


# ---- curl -------------------------------------------------------------------------------------

def curl(*args, status=200):
    """Returns curl's output and its report: version, status, size."""
    out = subprocess.run(
        ['curl', '-sS', '--max-time', '20', '-w', '%{stderr}%{http_version} %{http_code}', *args],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    check(out.returncode == 0, args, out.stderr)
    version, code = out.stderr.decode().split()
    check(int(code) == status, args, code, out.stdout[:300])
    return version, out.stdout


def run_curl(server):
    tool('curl')
    ways = [(['--http1.1', server.url], '1.1'), (['--http2-prior-knowledge', server.url], '2'),
            (['--http1.1', '--cacert', server.cert, server.tls_url], '1.1'),
            (['--http2', '--cacert', server.cert, server.tls_url], '2')]
    for way, expected in ways:
        flags, root = way[:-1], way[-1]
        version, page = curl(*flags, root + '/')
        check(version == expected, way, version)
        check(b'<!doctype html>' in page.lower(), page[:200])
        _, zipped = curl(*flags, '--compressed', root + '/')
        check(zipped == page, 'the page differs when compressed')
        _, traces = curl(*flags, root + '/api/v1/traces')
        check(traces.strip() == b'[]', traces)
        curl(*flags, '--head', root + '/')
        curl(*flags, root + '/nothing', status=404)
        curl(*flags, '-X', 'POST', '-d', 'x=1', root + '/api/v1/traces', status=405)
        curl(*flags, '-T', __file__, root + '/api/v1/traces', status=405)
        _, metrics = curl(*flags, root + '/metrics')
        check(b'tracelake_http_responses_total' in metrics, metrics[:300])
    # A gRPC call by hand: ListTraces with an empty message.
    request = os.path.join(server.dir, 'request.bin')
    with open(request, 'wb') as f:
        f.write(bytes(5))
    out = subprocess.run(
        ['curl', '-sS', '--http2-prior-knowledge', '-D', '-', '-o', os.devnull,
         '-H', 'content-type: application/grpc', '-H', 'te: trailers', '--data-binary',
         '@' + request, server.url + '/tracelake.v1.Catalog/ListTraces'],
        stdout=subprocess.PIPE, check=True)
    check(b'grpc-status: 0' in out.stdout, out.stdout)


# ---- h2load -----------------------------------------------------------------------------------

def run_h2load(server):
    tool('h2load')
    request = os.path.join(server.dir, 'request.bin')
    with open(request, 'wb') as f:
        f.write(bytes(5))
    loads = [
        ['-n', '20000', '-c', '4', '-m', '50', '-d', request, '-H',
         'content-type: application/grpc', '-H', 'te: trailers',
         server.url + '/tracelake.v1.Catalog/ListTraces'],
        ['-n', '5000', '-c', '8', '-m', '10', server.url + '/'],
        ['-n', '5000', '-c', '8', '-m', '10', server.tls_url + '/'],
        ['-n', '2000', '-c', '8', '--h1', server.url + '/healthz'],
    ]
    for load in loads:
        out = subprocess.run(['h2load', *load], stdout=subprocess.PIPE, check=True).stdout.decode()
        line = next(x for x in out.splitlines() if x.startswith('requests:'))
        total = load[1]
        check('%s succeeded, 0 failed, 0 errored, 0 timeout' % total in line, line)
        print(next(x for x in out.splitlines() if x.startswith('finished in')), load[-1])


# ---- gRPC -------------------------------------------------------------------------------------

def make_stubs(server):
    try:
        import grpc  # noqa: F401
        from grpc_tools import protoc
    except ImportError as e:
        raise Skip(str(e)) from e
    out = os.path.join(server.dir, 'stubs')
    os.mkdir(out)
    proto = os.path.join(server.source, 'proto')
    files = [os.path.join(d, f) for d, _, names in os.walk(proto) for f in names
             if f.endswith('.proto')]
    # gRPC's own health and reflection protocols share the package `grpc` with its Python module:
    # compile them apart.
    ours = [f for f in files if os.sep + 'tracelake' + os.sep in f]
    status = protoc.main(['protoc', '-I' + proto, '--python_out=' + out,
                          '--grpc_python_out=' + out, *ours])
    check(status == 0, 'protoc')
    server.descriptors = os.path.join(server.dir, 'all.bin')
    check(protoc.main(['protoc', '-I' + proto, '--include_imports',
                       '--descriptor_set_out=' + server.descriptors, *files]) == 0, 'protoc')
    sys.path.insert(0, out)


def run_grpc(server):
    make_stubs(server)
    import grpc_client
    grpc_client.run(server)


def run_behind(server):
    make_stubs(server)
    import behind
    behind.run(server)


def run_calls(server):
    make_stubs(server)
    import grpc_calls
    grpc_calls.run(server)


def run_limits(server):
    make_stubs(server)
    import grpc_limits
    grpc_limits.run(server)


def run_js(server):
    """gRPC's own library for JavaScript, if the page's packages are installed."""
    tool('node')
    packages = os.path.join(os.path.dirname(server.command), 'web', 'node_modules')
    if not os.path.isdir(os.path.join(packages, '@grpc', 'grpc-js')):
        raise Skip('@grpc/grpc-js is not installed')
    sim.push(server)
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run(['node', os.path.join(here, 'grpc_js.mjs'), packages,
                    os.path.join(server.source, 'proto'), os.path.join(here, 'calls.json'),
                    server.address, server.tls_address, server.cert], check=True, timeout=240)


def run_cpp(server):
    """gRPC's own library for C++, if it was there when this was built."""
    client = os.path.join(os.path.dirname(server.command), 'tests', 'interop', 'grpc_cpp')
    if not os.path.exists(client):
        raise Skip("gRPC's library for C++ is not installed")
    sim.push(server)
    subprocess.run([client, server.address, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'calls.json')],
                   check=True, timeout=240)


def run_serve(server):
    import serve_command
    serve_command.run(server)


def run_python(server):
    try:
        import grpc  # noqa: F401
    except ImportError as e:
        raise Skip(str(e)) from e
    sys.path.insert(0, os.path.join(os.path.dirname(server.command), 'python'))
    import python_package
    python_package.run(server)


def main():
    build, client = sys.argv[1:]
    folder = tempfile.mkdtemp(prefix='tracelake-interop-')
    server = Server(build, folder)
    try:
        server.start()
        {'behind': run_behind, 'curl': run_curl, 'h2load': run_h2load, 'grpc': run_grpc,
         'calls': run_calls, 'cpp': run_cpp, 'js': run_js, 'limits': run_limits,
         'serve': run_serve, 'python': run_python}[client](server)
        server.stop()
    except Skip as e:
        print('skipped:', e)
        return 77
    finally:
        server.kill()
        shutil.rmtree(folder)
    print('ok')
    return 0


if __name__ == '__main__':
    sys.exit(main())
