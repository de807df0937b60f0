#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Questions of assistants. usage: mcp.py BUILD [NAME…]"""
import json
import os
import random
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from e2e import simulated, wait_sealed  # noqa: E402
from lab import TIMEOUT, check, main, wait  # noqa: E402

TESTS = {}
MODERN = {'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}}


def test(function):
    TESTS[function.__name__] = function
    return function


class Assistant:
    """The program on the other side."""

    def __init__(self, lab, *args):
        self.process = lab.spawn('mcp', *args, stdin=subprocess.PIPE)
        self.id = 0

    def send(self, line):
        self.process.stdin.write(line + b'\n')
        self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        check(line.endswith(b'\n'), 'no whole line:', line)
        answer = json.loads(line)
        check(answer['jsonrpc'] == '2.0' and ('result' in answer) != ('error' in answer), answer)
        return answer

    def ask(self, method, params=None):
        self.id += 1
        request = {'jsonrpc': '2.0', 'id': self.id, 'method': method}
        if params is not None:
            request['params'] = params
        self.send(json.dumps(request).encode())
        answer = self.receive()
        check(answer['id'] == self.id, answer)
        return answer

    def call(self, tool, failed=False, **arguments):
        result = self.ask('tools/call', {'name': tool, 'arguments': arguments})['result']
        check(result['isError'] == failed, tool, arguments, result)
        (content,) = result['content']
        check(content['type'] == 'text', content)
        return content['text'] if failed else json.loads(content['text'])

    def end(self):
        out, err = self.process.communicate(timeout=TIMEOUT)
        check(self.process.returncode == 0 and out == b'' and err == b'', self.process.returncode, out, err)


@test
def mcp_protocol(lab):
    """Both kinds of revisions; what is no request is an error; no server is a tool's answer."""
    a = Assistant(lab)
    for asked, told in (('2024-11-05', '2024-11-05'), ('2025-06-18', '2025-06-18'), ('1999-01-01', '2025-11-25'), (7, '2025-11-25')):
        hello = a.ask('initialize', {'protocolVersion': asked, 'capabilities': {}, 'clientInfo': {'name': 'x', 'version': '1'}})['result']
        check(hello['protocolVersion'] == told and hello['serverInfo']['name'] == 'tracelake' and
              hello['capabilities'] == {'tools': {}} and 'resultType' not in hello, hello)
    a.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    check(a.ask('ping')['result'] == {}, 'ping')
    tools = a.ask('tools/list')['result']['tools']
    check([t['name'] for t in tools] == ['traces', 'schema', 'sql', 'disassembly', 'source'], tools)
    check(all(t['inputSchema']['type'] == 'object' and t['annotations']['readOnlyHint'] for t in tools), tools)
    new = a.ask('tools/list', {'_meta': MODERN})['result']
    check(new['tools'] == tools and new['resultType'] == 'complete' and new['ttlMs'] > 0 and new['cacheScope'] == 'public' and
          new['_meta']['io.modelcontextprotocol/serverInfo']['name'] == 'tracelake', new)
    check('2026-07-28' in a.ask('server/discover', {'_meta': MODERN})['result']['supportedVersions'], 'discover')
    refused = a.ask('tools/list', {'_meta': dict(MODERN, **{'io.modelcontextprotocol/protocolVersion': '2030-01-01'})})['error']
    check(refused['code'] == -32022 and refused['data']['requested'] == '2030-01-01', refused)
    for method, params, code in (('tools/list', {'_meta': dict(list(MODERN.items())[:1])}, -32602), ('nothing', None, -32601),
                                 ('tools/call', {'name': 'rm'}, -32602), ('tools/call', None, -32602), ('tools/call', [], -32602)):
        check(a.ask(method, params)['error']['code'] == code, method, params)
    for line, code in ((b'{"jsonrpc":"2.0","id":', -32700), (b'[]', -32600), (b'{} {}', -32700), (b'null', -32600),
                       (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
                       (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), (b'\0\xff', -32700), (b'[' * 100000, -32700),
                       (b'x' * (5 << 20), -32600)):
        a.send(line)
        error = a.receive()['error']
        check(error['code'] == code, line[:80], error)
    a.send(b'  \r')
    a.send(b'{"jsonrpc":"2.0","id":"a\\u0000\\"b","method":"ping"}')
    check(a.receive()['result'] == {}, 'a text as id')
    check('connect' in a.call('traces', True), 'nobody is there')
    a.end()


@test
def mcp_garbage(lab):
    """Whatever comes, each line that is no notification has one answer, and the next question is served."""
    dice = random.Random(5)
    a = Assistant(lab)
    whole = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {
        'name': 'sql', 'arguments': {'trace': 'x', 'query': 'SELECT 1', 'limit': 3}}}).encode()
    for _ in range(500):
        line = bytearray(whole)
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(len(line))
            line[at:at + dice.randrange(3)] = bytes(dice.choice(b'{}[]",:\\0x\xff\x80 e-') for _ in range(dice.randrange(3)))
        a.send(bytes(line).replace(b'\n', b''))
        a.send(b'{"jsonrpc":"2.0","id":"end","method":"ping"}')
        answers = [a.receive()]
        while answers[-1]['id'] != 'end':
            answers.append(a.receive())
        check(len(answers) <= 2, line, answers)
    a.end()


@test
def mcp_tools(lab):
    """The tools tell what the commands tell, shortly, with links that lead to the place."""
    simulated(lab, 20000)
    wait_sealed(lab, 'sim')
    a = Assistant(lab, '--server', lab.url)
    told = a.call('traces')
    row = json.loads(lab.run('ls', '--json', 'sim').text())[0]
    check(told['all'] == 1 and told['traces'][0]['trace'] == 'sim', told)
    check({s['stream']: s['insns'] for s in told['traces'][0]['streams']} == {s['name']: s['insns'] for s in row['streams']}, told)
    check(told['traces'][0]['link'] == lab.url + '/#/trace/sim', told)
    check(a.call('traces', skip=1) == {'all': 1, 'traces': []}, 'none is left')
    tables = {t['table']: t['columns'] for t in a.call('schema', trace='sim')['tables']}
    check(set(tables) >= {'insn', 'call', 'function', 'timeline', 'log'} and 'duration' in tables['call'], tables)
    query = 'SELECT stream, position, function, insns FROM call ORDER BY insns DESC'
    answer = a.call('sql', trace='sim', query=query, limit=5)
    wanted = [json.loads(line) for line in lab.run('sql', 'sim', query + ' LIMIT 5', '--json').text().splitlines()]
    check(answer['columns'] == ['stream', 'position', 'function', 'insns', 'link'] and answer['n'] == 5 and
          'limit' in answer['truncated'], answer)
    check([dict(zip(answer['columns'][:-1], r)) for r in answer['rows']] == wanted, answer, wanted)
    for r in answer['rows']:
        page, _, place = r[-1].partition('?')
        place = urllib.parse.parse_qs(place)
        check(page == lab.url + '/#/trace/sim' and place['lane'] == [r[0]] and int(place['from'][0]) <= r[1] < int(place['to'][0]), r)
    check(a.call('sql', trace='sim', query="SELECT 1 AS one, NULL AS none, 0.5 AS half, 'x' AS x") ==
          {'columns': ['one', 'none', 'half', 'x'], 'rows': [[1, None, 0.5, 'x']], 'n': 1}, 'kinds')
    large = a.call('sql', trace='sim', query="SELECT position, printf('%500s', 'y') AS y FROM insn", limit=1000)
    check('truncated' in large and 20 < large['n'] < 1000 and len(json.dumps(large)) < 32000, large['n'])
    check(all('…' in r[1] and len(r[1]) < 250 for r in large['rows']), large['rows'][0])
    for arguments, reason in (({}, '`trace`'), ({'trace': 'sim'}, '`query`'), ({'trace': 'gone', 'query': 'SELECT * FROM insn'}, 'gone'),
                              ({'trace': 'sim', 'query': 'SELEC 1'}, 'syntax'), ({'trace': 'sim', 'query': 'DELETE FROM trace'}, 'modified'),
                              ({'trace': 'sim', 'query': 'SELECT 1', 'limit': 'x'}, '`limit`'),
                              ({'trace': 'sim', 'query': 'SELECT 1', 'limit': -1}, '`limit`')):
        check(reason in a.call('sql', True, **arguments), arguments)
    code = a.call('disassembly', trace='sim', stream='cs.10', position=1000, before=2, count=6)
    check(code['position'] == 1000 and len(code['insns']) == 6 and code['insns'][2].startswith('> 1000 0x'), code)
    (insn,) = [json.loads(line) for line in lab.run('sql', 'sim', "SELECT address(pc) AS pc, text, time FROM insn WHERE stream = 'cs.10' "
                                                    'AND position = 1000', '--json').text().splitlines()]
    check(insn['pc'] in code['insns'][2] and code['insns'][2].endswith(insn['text']), insn, code)
    timed = a.call('disassembly', trace='sim', stream='cs.10', time=insn['time'])
    check(abs(timed['position'] - 1000) < 1000 and any(line[0] == '>' for line in timed['insns']), timed)
    source = a.call('source', trace='sim', stream='cs.10', position=1000)
    check(source['position'] == 1000 and (source['lines'] or source['why']), source)
    check('`position`' in a.call('disassembly', True, trace='sim', stream='cs.10'), 'no place')
    check(a.call('disassembly', True, trace='sim', stream='cs.99', position=1), 'no stream')
    lab.stop()
    check(a.call('traces', True), 'the server is away')
    lab.launch()
    wait('it is ready', lab.ready, lab.server_log)
    check(a.call('traces')['all'] == 1, 'it is back')
    a.end()


if __name__ == '__main__':
    main(TESTS)
