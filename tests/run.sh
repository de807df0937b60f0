#!/usr/bin/env bash
# Build everything and run every test. The last line is the total.
set -uo pipefail
build=$1
shift
cd "$(dirname "$0")/.."
mkdir -p "$build"
jobs=$(nproc)
at_once=$((3 * jobs)) # many mostly wait, for servers or a cluster; a browser counts twice
if [ ! -f "$build/build.ninja" ]; then
  cmake -S . -B "$build" -G Ninja >"$build/configure.log" 2>&1 || { cat "$build/configure.log"; echo "0 passed, 1 failed"; exit 1; }
fi
if ! ninja -C "$build" -j "$jobs" >"$build/build.log" 2>&1; then
  grep -E 'error|FAILED|warning' "$build/build.log" | head -40
  tail -20 "$build/build.log"
  echo "0 passed, 1 failed"
  exit 1
fi
rm -f "$build"/ctest.xml
status=0
ctest --test-dir "$build" -j "$at_once" --timeout 1200 --output-on-failure --no-tests=error \
  --output-junit ctest.xml "$@" || status=1
python3 - "$build"/ctest.xml <<'PY' || status=1
import sys, xml.etree.ElementTree as ET
total = failed = skipped = 0
for path in sys.argv[1:]:
    suite = ET.parse(path).getroot()
    total += int(suite.get('tests', 0))
    failed += int(suite.get('failures', 0))
    skipped += int(suite.get('skipped', 0)) + int(suite.get('disabled', 0))
passed = total - failed - skipped
print(f'{passed} passed, {failed} failed' + (f', {skipped} skipped' if skipped else ''))
sys.exit(1 if failed or not passed else 0)
PY
exit $status
