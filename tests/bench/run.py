#!/usr/bin/env python3
"""Run the benchmarks and print two tables: from end to end (end.py), which is what counts, and by stages, compared
with peers; ./dev bench calls this.

usage: run.py --build DIR --json FILE [NAME…]     NAME: part of a program's or a stage's name, or
                                                  'decode': everything between bytes and flow, or
                                                  'end': only the first table,
                                                  or 'serve': the network side,
                                                  or 'attack': small calls while it is attacked,
                                                  or 'perf': perf.data compared with perf script
       run.py … store --store rados:POOL…         a store in a cluster, compared with a folder and rados bench
"""
import argparse, glob, json, os, platform, subprocess, sys, time

import attack
import cluster
import end
import perf_data
import serve


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--build', required=True)
    ap.add_argument('--json', required=True)
    ap.add_argument('--store')
    ap.add_argument('names', nargs='*')
    args = ap.parse_args()
    args.names = [n for name in args.names for n in (('frame', 'etm4', 'flow') if name == 'decode' else (name,))]
    programs = sorted(p for p in glob.glob(os.path.join(args.build, 'tests/bench/bench_*'))
                      if os.access(p, os.X_OK) and os.path.isfile(p))
    if args.names:
        programs = [p for p in programs if any(n in os.path.basename(p) for n in args.names)] or programs
    rows, failed = [], 0  # `rows` by stage
    whole = [] if args.names and 'end' not in args.names else end.measure(args.build)
    if whole:
        print(end.table(whole) + '\n')
    network = serve.measure(args.build) if 'serve' in args.names else []
    if 'attack' in args.names:
        network += attack.measure(args.build)
    perf = perf_data.measure(args.build) if not args.names or 'perf' in args.names else []
    if args.store:
        network = cluster.measure(args.build, args.store)
    if args.store or args.names in (['end'], ['serve'], ['attack'], ['perf']):
        programs = []
    for program in programs:
        run = subprocess.run([program], stdout=subprocess.PIPE, text=True, cwd=args.build)
        failed += run.returncode != 0
        for line in run.stdout.splitlines():
            f = line.split('\t')
            if f[0] != '@bench' or len(f) < 5:
                if line.strip():
                    print(line)
                continue
            extra = dict(x.split('=', 1) for x in f[5:] if '=' in x)
            f = [x for i, x in enumerate(f) if i < 5 or '=' not in x]
            row = dict(stage=f[1], input=f[2], value=float(f[3]), unit=f[4])
            if len(f) >= 7:
                row.update(peer=f[5], peer_value=float(f[6]))
                row['ratio'] = row['value'] / row['peer_value'] if row['peer_value'] else None
            if 'trace' in extra:
                row['trace_mb_s'] = float(extra['trace'])
            elif row['unit'] == 'MB/s':
                row['trace_mb_s'] = row['value']
            rows.append(row)
    rows += network + perf
    if args.names and not network and not perf:
        rows = [r for r in rows if any(n in r['stage'] or n in r['input'] for n in args.names)] or rows
    head = ('stage', 'input', 'value', 'unit', 'peer', 'peer value', 'ratio', 'MB/s of trace')
    table = [head] + [(r['stage'], r['input'], '%.1f' % r['value'], r['unit'], r.get('peer', ''),
                       '%.1f' % r['peer_value'] if 'peer' in r else '',
                       '%.1f' % r['ratio'] if r.get('ratio') else '',
                       '%.1f' % r['trace_mb_s'] if 'trace_mb_s' in r else '') for r in rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    for i, row in enumerate(table if rows else []):
        print('  '.join(c.rjust(w) if k in (2, 5, 6, 7) else c.ljust(w)
                        for k, (c, w) in enumerate(zip(row, widths))).rstrip())
        if i == 0:
            print('  '.join('-' * w for w in widths))
    with open(args.json, 'w') as out:
        json.dump(dict(time=time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()), machine=platform.processor() or platform.machine(),
                       cores=os.cpu_count(), end_to_end=whole, results=rows), out, indent=1)
        out.write('\n')
    return 1 if failed else 0


sys.exit(main())
