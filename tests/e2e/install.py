#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An installation is complete and works. usage: install.py BUILD [NAME…]"""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import SOURCE, Skip, check, free_port, main  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def run(*args, **options):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240,
                          **options)
    check(done.returncode == 0, args, done.stdout.decode(errors='replace')[-2000:])
    return done.stdout.decode()


def install(lab):
    """All components in a folder of its own."""
    prefix = lab.path('usr')
    for component in ('command', 'library', 'client'):
        run('cmake', '--install', lab.build, '--component', component, '--prefix', prefix)
    return prefix


def read(*path):
    with open(os.path.join(*path)) as f:
        return f.read()


def only_one(top, name):
    found = [os.path.join(folder, n) for folder, _, names in os.walk(top) for n in names if n == name]
    check(len(found) == 1, name, 'in', top, 'is', found)
    return found[0]


def commands(lab):
    return [line.split('\t')[0] for line in lab.run('complete', '').text().splitlines()
            if not line.startswith('help\t')]


# Options that a command accepts without telling: its default, or another name of one that it tells of.
HIDDEN = {'push': {'resume'}, 'slice': {'from', 'to'}}


@test
def options_are_told(lab):
    """Help, manual page and completion of each command have the same options, all but the hidden ones, in lines that
    fit; the beginning of an option is none."""
    for name in commands(lab):
        known = {line.split()[0] for line in lab.run(name, '--options').text().splitlines()}
        hidden = HIDDEN.get(name, set()) | ({'out'} if 'output' in known else set())
        text = lab.run(name, '--help').text()
        check(text == lab.run('help', name).text() and text.startswith('usage: tracelake %s ' % name), name, text)
        told = set(re.findall(r'(?m)^  (?:-\w, )?--([a-z0-9-]+)', text))
        check(told == known - hidden - {'help'}, name, 'help', told ^ (known - hidden))
        check(all(len(line) <= 96 for line in text.splitlines()), name, text)
        offered = [line.split('\t') for line in lab.run('complete', name, '--').text().splitlines()]
        check({word[2:] for word, _ in offered} == told | {'help'}, name, 'completion', offered)
        check(all(what for _, what in offered), name, offered)
        for option in sorted(told)[:1] + sorted(told)[-1:]:
            begin = option[:-1]
            if begin not in known:
                failed = lab.fails(2, 'unknown option --%s: options are not abbreviated' % begin, name, '--' + begin)
                check('--' + option in failed.err.decode(), name, begin)


@test
def manual_pages(lab):
    """Each command has a manual page with all of its options, and the library one with all functions."""
    prefix = install(lab)
    names = commands(lab)
    check(len(names) > 20, names)
    for name in names:
        page = read(prefix, 'share/man/man1/tracelake-%s.1' % name)
        known = {line.split()[0] for line in lab.run(name, '--options').text().splitlines()}
        shown = set(re.findall(r'\\-\\-([a-z0-9]+(?:\\-[a-z0-9]+)*)', page))
        shown = {option.replace('\\-', '-') for option in shown}
        missing = known - shown - {'help', 'out'} - HIDDEN.get(name, set())
        check(not missing, name, 'does not tell of', missing)
        check('.SH SYNOPSIS' in page and '.SH DESCRIPTION' in page, name)
    library = read(prefix, 'share/man/man3/libtracelake.3')
    header = headers(prefix)
    for function in re.findall(r'\b(tracelake_[a-z_]+)\(', header):
        check(function + '(' in library, function, 'is not in libtracelake(3)')
    if shutil.which('man'):
        for folder, _, pages in os.walk(os.path.join(prefix, 'share/man')):
            for page in pages:
                done = subprocess.run(['man', '--warnings', '-l', os.path.join(folder, page)],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      env=dict(os.environ, MANWIDTH='80', LC_ALL='C.UTF-8'))
                check(done.returncode == 0 and not done.stderr, page, done.stderr.decode())


def headers(prefix):
    """The text of the library's headers."""
    return ''.join(read(prefix, 'include/tracelake%s.h' % part) for part in ('', '_lookups', '_timing', '_answers'))


@test
def libraries(lab):
    """Versioned symbols, .pc files for this prefix, .proto files that compile."""
    prefix = install(lab)
    shared = only_one(os.path.join(prefix, 'lib'), 'libtracelake.so.0')
    header = headers(prefix)
    wanted = set(re.findall(r'\b(tracelake_[a-z_]+)\(', header))
    out = run('nm', '-D', '--defined-only', shared)
    found = {line.split()[2] for line in out.splitlines()} - {'TRACELAKE_0.1'}
    check({s.split('@@')[0] for s in found} == wanted, 'symbols',
          {s.split('@@')[0] for s in found} ^ wanted)
    check(all(s.endswith('@@TRACELAKE_0.1') for s in found), 'symbols without a version')
    for name in ('tracelake', 'tracelake-stf'):
        pc = only_one(prefix, name + '.pc')
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc))
        run('pkg-config', '--validate', name, env=env)
        check(run('pkg-config', '--variable=prefix', name, env=env).strip() == prefix, 'prefix')
    proto = os.path.join(prefix, 'share/tracelake/proto')
    protos = [os.path.relpath(os.path.join(folder, n), proto)
              for folder, _, names in os.walk(proto) for n in names]
    check(len(protos) >= 8, protos)
    run('protoc', '-I', proto, '--descriptor_set_out=' + lab.path('set'), *protos)


def starts_with_each(lab, config):
    """The shipped configuration is valid and a server starts with it, at first and with each further block uncommented."""
    port = free_port(2)
    for was, now in (('/var/lib/tracelake', lab.data), ('/etc/tracelake', lab.path('etc')), (':7070', ':%d' % port),
                     (':7443', ':%d' % (port + 1))):
        check(was in config, 'the configuration has no', was)
        config = config.replace(was, now)
    os.mkdir(lab.path('etc'))
    lab.run('token', 'add', '--tokens', lab.path('etc/tokens'), '--role', 'read')
    run('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=a',
        '-keyout', lab.path('etc/key.pem'), '-out', lab.path('etc/cert.pem'))
    blocks = config.split('\n\n')
    optional = [i for i, block in enumerate(blocks) if re.search(r'(?m)^#[a-z]', block)]
    check(len(optional) >= 4, blocks)
    for i in [None] + optional:
        if i is not None:
            blocks[i] = re.sub(r'(?m)^#([a-z])', r'\1', blocks[i])
        with open(lab.path('serve.conf'), 'w') as f:
            f.write('\n\n'.join(blocks))
        lab.run('serve', '--config', lab.path('serve.conf'), '--check-config')
        server = lab.spawn('serve', '--config', lab.path('serve.conf'))
        said = iter(server.stdout.readline, b'')
        check(b'ready\n' in said, blocks[i or 0], 'does not start')
        server.terminate()
        check(server.wait(240) == 0, blocks[i or 0])


@test
def service(lab):
    """A unit that systemd accepts, a usable configuration, dashboards and alerts."""
    prefix = install(lab)
    unit = read(prefix, 'lib/systemd/system/tracelake.service')
    check('ExecStart=%s/bin/tracelake serve' % prefix in unit, unit)
    if shutil.which('systemd-analyze'):
        done = subprocess.run(['systemd-analyze', 'verify', '--man=no',
                               os.path.join(prefix, 'lib/systemd/system/tracelake.service')],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(b'tracelake.service' not in done.stdout, done.stdout.decode())
    starts_with_each(lab, read(prefix, 'share/tracelake/serve.conf'))
    # The metrics used by dashboards and alerts exist.
    lab.start()
    with urllib.request.urlopen(lab.url + '/metrics', timeout=240) as reply:
        metrics = reply.read().decode()
    known = set(re.findall(r'(?m)^# TYPE (\S+)', metrics))
    known |= {k + end for k in known for end in ('_bucket', '_sum', '_count')}
    board = read(prefix, 'share/tracelake/tracelake.dashboard.json')
    asked = [t['expr'] for p in json.loads(board)['panels'] for t in p['targets']]
    check(len(asked) > 20, asked)
    for text in asked + [read(prefix, 'share/tracelake/tracelake.rules.yml')]:
        for name in re.findall(r'\b(?:tracelake|process)_[a-z0-9_]+', text):
            check(name in known, 'there is no metric', name)


@test
def licences(lab):
    """The licence of everything built in is included, in the installation and on the page."""
    prefix = install(lab)
    text = read(prefix, 'share/doc/tracelake/licenses.txt')
    for words in ('MIT License', 'lit-html', 'Google LLC',
                  'The Inter Project Authors', 'The JetBrains Mono Project Authors',
                  'SIL OPEN FONT LICENSE Version 1.1'):
        check(words in text, words, 'is not in the licences')
    lab.start()
    with urllib.request.urlopen(lab.url + '/licenses.txt', timeout=240) as reply:
        check(reply.read().decode() == text, 'the page has other licences')
    page = read(SOURCE, 'web/src/panels/help.ts')
    check('href="licenses.txt"' in page, 'the page does not lead there')


def candidates(lab, *words):
    return [line.split('\t')[0] for line in lab.run('complete', *words).text().splitlines()]


@test
def completion(lab):
    """Commands, options, formats, traces and streams, as requested by the three shells."""
    lab.start()
    with open(lab.path('itm'), 'wb') as f:
        f.write(b'\0\0\0\0\0\x80' + bytes(b for i in range(500) for b in (0x09, i & 255)))
    for trace in ('alpha', 'beta'):
        lab.run('push', '--format', 'itm,id=0', '--rig', 'bench3', '--trace', trace, lab.path('itm'))
    stream = json.loads(lab.run('ls', '--json', 'alpha').text())[0]['streams'][0]['name']
    check(candidates(lab, 'pu') == ['push'], candidates(lab, 'pu'))
    check('--format' in candidates(lab, 'push', '--'), candidates(lab, 'push', '--'))
    check('etm4' in candidates(lab, 'push', '--format', ''), 'formats')
    check(candidates(lab, 'push', '--rig', 'x', 'x') == [':file'], 'files')
    check(candidates(lab, 'show', '') == ['beta', 'alpha'], candidates(lab, 'show', ''))
    check(candidates(lab, 'show', '--json', 'al') == ['alpha'], 'traces')
    check(candidates(lab, 'get', 'al') == ['alpha/'], candidates(lab, 'get', 'al'))
    check(candidates(lab, 'get', 'alpha/') == ['alpha/' + stream], candidates(lab, 'get', 'alpha/'))
    check(candidates(lab, 'token', '') == ['add', 'list', 'revoke'], 'token')
    check(candidates(lab, 'serve', '--log-format', 'j') == ['json'], 'values')
    check(candidates(lab, 'nonsense', '') == [], 'no command')
    # A missing server causes no error at the prompt.
    done = lab.run('complete', 'show', '--server', 'http://127.0.0.1:1', '')
    check(done.out == done.err == b'', done)
    path = os.path.dirname(lab.tracelake) + ':' + os.environ['PATH']
    env = dict(lab.environment(), PATH=path)
    script = lab.run('completion', 'bash').text()
    out = run('bash', '-c', script + '''
compopt() { :; }
COMP_WORDS=(tracelake get alpha/); COMP_CWORD=2; _tracelake; echo "${COMPREPLY[@]}"
COMP_WORDS=(tracelake pu); COMP_CWORD=1; _tracelake; echo "${COMPREPLY[@]}"
complete -p tracelake''', env=env)
    check(out.splitlines() == ['alpha/' + stream, 'push', 'complete -F _tracelake tracelake'], out)
    if shutil.which('fish'):
        with open(lab.path('it.fish'), 'w') as f:
            f.write(lab.run('completion', 'fish').text())
        out = run('fish', '--no-config', '-c',
                  'source %s; complete -C "tracelake get al"; complete -C "tracelake pus"'
                  % lab.path('it.fish'), env=dict(env, HOME=lab.dir))
        check(out.splitlines() == ['alpha/\tbench3', 'push\tsend a capture to a server'], out)
    if shutil.which('zsh'):
        with open(lab.path('_tracelake'), 'w') as f:
            f.write(lab.run('completion', 'zsh').text())
        out = run('zsh', '-f', '-c', '''
compdef() { :; }
compadd() { while [[ $1 == -* ]]; do [[ $1 == -[dS] ]] && shift; [[ $1 == -a ]] && break; shift; done; shift; print -l -- "${(@P)1}"; }
source %s/_tracelake
words=(tracelake get alpha/); CURRENT=3; _tracelake
words=(tracelake pus); CURRENT=2; _tracelake''' % lab.dir, env=env)
        check(out.splitlines() == ['alpha/' + stream, 'push'], out)


def late_libraries(lab):
    """Those that are loaded when a function of them is called: all of x86-64, none elsewhere."""
    path = os.path.join(lab.build, 'client/late/late_names.h')
    return re.findall(r'LIBRARY\("(.*)"\)', read(path)) if os.path.exists(path) else []


@test
def late(lab):
    """Libraries that most commands do not need are not loaded at the start."""
    libraries = late_libraries(lab)
    if not libraries:
        raise Skip('they are linked on this kind of processor')
    command = os.path.join(lab.build, 'tracelake')
    needed = run('readelf', '-d', command)
    check('libmicrohttpd.so.12' in libraries and 'libc.so' in needed, libraries, needed)
    for file in libraries:
        check(file not in needed, 'names.sh has missed a function of ' + file, needed)
    loaded = subprocess.run([command, '--version'], env=os.environ | {'LD_DEBUG': 'files'}, capture_output=True,
                            text=True, timeout=240).stderr
    check('libc.so' in loaded and not any(file in loaded for file in libraries), loaded)
    with open(lab.path('libelf.so.1'), 'wb'):
        pass  # what is loaded is no library
    with open(lab.path('x.itm'), 'wb') as f:
        f.write(bytes(64))
    done = subprocess.run([command, 'decode', '--format', 'itm', '--image', command, '--text', lab.path('x.itm')],
                          env=os.environ | {'LD_LIBRARY_PATH': lab.dir}, capture_output=True, text=True, timeout=240)
    check(done.returncode == 1 and 'libelf.so.1' in done.stderr and 'install it again' in done.stderr, done)


def python_talks(lab, python, folder):
    """The package in a folder is complete: a program that imports it lists traces."""
    if subprocess.run([python, '-c', 'import grpc, google.protobuf'], stderr=subprocess.DEVNULL).returncode:
        raise Skip('no grpcio')
    if not lab.server:
        lab.start()
    program = 'import tracelake; print(tracelake.__file__, list(tracelake.connect("%s").traces()))' % lab.url
    said = run(python, '-c', program, env=dict(os.environ, PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE='1'))
    check(said.startswith(folder) and said.endswith('[]\n'), said)


@test
def python_from_the_build(lab):
    """The package is complete in the build folder, where `./dev run` leaves it, and pip installs it from there in a
    virtual environment."""
    built = os.path.join(lab.build, 'python')
    python_talks(lab, '/usr/bin/python3', built)
    if not os.path.exists('/usr/lib/python3/dist-packages/setuptools') or subprocess.run(
            ['/usr/bin/python3', '-c', 'import ensurepip'], stderr=subprocess.DEVNULL).returncode:
        raise Skip('no python3-venv, python3-setuptools')
    clean = {k: v for k, v in os.environ.items() if not k.startswith(('PYTHON', 'PIP_'))}
    run('/usr/bin/python3', '-m', 'venv', '--system-site-packages', lab.path('env'), env=clean)
    shutil.copytree(built, lab.path('python')) # pip builds in the folder
    run(lab.path('env/bin/pip'), 'install', '--no-index', '--no-deps', '--no-build-isolation', '--quiet', lab.path('python'),
        env=clean)
    folder = run(lab.path('env/bin/python'), '-c', 'import tracelake, os; print(os.path.dirname(tracelake.__path__[0]))',
                 env=clean, cwd=lab.dir).strip()
    check(folder.startswith(lab.path('env')), folder)
    python_talks(lab, lab.path('env/bin/python'), folder)


@test
def packages(lab):
    """Debian packages: unpacked, the programs in them run, and programs can be built against them."""
    if not shutil.which('dpkg-shlibdeps') or not shutil.which('dpkg-deb'):
        raise Skip('no dpkg-dev')
    # Package what is already built, without building any other target.
    run('cpack', '--config', os.path.join(lab.build, 'CPackConfig.cmake'), '-B', lab.path('packages'),
        '-D', 'CPACK_PACKAGE_DIRECTORY=' + lab.path('packages'),
        '-D', 'CPACK_DEBIAN_COMPRESSION_TYPE=gzip', cwd=lab.dir)
    debs = sorted(n for n in os.listdir(lab.path('packages')) if n.endswith('.deb'))
    check([d.split('_')[0] for d in debs] == ['libtracelake-dev', 'libtracelake0', 'python3-tracelake', 'tracelake'],
          debs)
    for deb in debs:
        path = lab.path('packages/' + deb)
        run('dpkg-deb', '-x', path, lab.path('root'))
        about = run('dpkg-deb', '-f', path)
        check('Depends: ' in about and 'Description: ' in about, about)
    needed = re.search('^ *Depends: (.*)', about, re.M)[1]  # of the command, the last one
    for file in late_libraries(lab):
        # Packages of other kinds of processor have files of this name, too.
        owners = {line.split(':')[0] for line in run('dpkg', '-S', '*/' + file).splitlines()}
        check(owners & set(re.findall(r'[a-z0-9.+-]+', needed)), file, owners, needed)
    command = os.path.join(lab.dir, 'root/usr/bin/tracelake')
    check(run(command, '--version').startswith('tracelake '), command)
    unit = read(lab.dir, 'root/usr/lib/systemd/system/tracelake.service')
    check('ExecStart=/usr/bin/tracelake serve' in unit, unit)
    run('dpkg-deb', '-e', lab.path('packages/' + debs[3]), lab.path('control'))
    for name in ('postinst', 'prerm', 'postrm'):
        check(os.access(lab.path('control/' + name), os.X_OK), name)
        run('sh', '-n', lab.path('control/' + name))
    check('Architecture: all' in run('dpkg-deb', '-f', lab.path('packages/' + debs[2])), debs)
    python_talks(lab, '/usr/bin/python3', os.path.join(lab.dir, 'root/usr/lib/python3/dist-packages'))


if __name__ == '__main__':
    main(TESTS)
