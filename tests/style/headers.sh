#!/usr/bin/env bash
# Every header compiles alone; dependencies between folders point one way.
set -u
cd "$(dirname "$0")/../.."
build=$1
fails=0
includes=(-Idecoders -Iserver -Iclient -Iclient/include -I. -Itests "-I$build/proto")
while IFS= read -r flag; do includes+=("$flag"); done < <(pkg-config --cflags-only-I libmicrohttpd libnghttp2 openssl libuv sqlite3 | tr ' ' '\n' | grep .)
# NAME_body.h is a function body that is compiled once per variant, not a header.
for h in $(git ls-files 'decoders/*.h' 'server/*.h' 'client/*.h' 'web/*.h' 'tests/sim/*.h' | grep -v '_body\.h$'); do
  printf '#include "%s"\n' "$PWD/$h" | gcc -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-parameter \
    "${includes[@]}" -x c -fsyntax-only - || { echo "not self-contained: $h"; fails=$((fails + 1)); }
done
# decoders/ knows neither server, client nor messages; messages know nothing; the client no server.
if grep -rnE '#include "(net|rpc|store|ingest|cli|lib)/|#include .*(pb-c|lake)\.h' decoders --include='*.[ch]'; then
  echo "a decoder includes what it may not"
  fails=$((fails + 1))
fi
if grep -rnE '#include "(net|rpc|store|ingest)/' client/lib client/include 2>/dev/null; then
  echo "the client library includes the server"
  fails=$((fails + 1))
fi
long=$(git ls-files '*.c' '*.h' '*.ts' '*.py' dev | xargs wc -l | awk '$2 != "total" && $1 > 800 {print $2 " (" $1 ")"}')
[ -z "$long" ] || { echo "over 800 lines: $long"; fails=$((fails + 1)); }
[ $fails -eq 0 ] && echo "headers and dependencies: fine"
exit $((fails > 0))
