#!/usr/bin/env bash
# Every header compiles alone; dependencies between folders point one way.
set -u
cd "$(dirname "$0")/../.."
build=$1
fails=0
includes=(-Idecoders -Ianalysis -Iserver -Iclient -Iclient/include -I. -Itests "-I$build/proto")
while IFS= read -r flag; do includes+=("$flag"); done < <(pkg-config --cflags-only-I libmicrohttpd libnghttp2 openssl libuv sqlite3 | tr ' ' '\n' | grep .)
# A header that a source of the build includes first has been compiled alone by the build.
declare -A alone
while IFS=: read -r file include; do
  include=${include#*\"} include=${include%\"*} found=()
  for folder in "${file%/*}" decoders analysis server client client/include . tests; do
    [ -e "$folder/$include" ] && found+=("$folder/$include") && [ "$folder" = "${file%/*}" ] && break
  done
  [ ${#found[@]} = 1 ] && alone[${found[0]#./}]=1
done < <(git ls-files '*.c' | xargs grep -Hm1 '^#include' | grep '"$')
# NAME_body.h is a function body that is compiled once per variant, not a header.
for h in $(git ls-files 'base/*.h' 'decoders/*.h' 'analysis/*.h' 'server/*.h' 'client/*.h' 'web/*.h' 'tests/sim/*.h' 'tests/store/*.h' | grep -v '_body\.h$'); do
  [ -n "${alone[$h]-}" ] && continue
  grep -q '<rados/librados.h>' "$h" && ! [ -e /usr/include/rados/librados.h ] && continue # optional
  printf '#include "%s"\n' "$PWD/$h" | gcc -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-parameter \
    "${includes[@]}" -x c -fsyntax-only - || { echo "not self-contained: $h"; fails=$((fails + 1)); }
done
# Allowed includes: a folder, and what rooms.txt has in its row.
declare -A allowed
while read -r folder others; do [ -z "$folder" ] || allowed[$folder]=" ${others%provides *} "; done \
  < <(sed 's/#.*//' tests/style/rooms.txt)
while IFS=: read -r file include; do
  folder=${file%/*} room=${include%/*}
  [[ $folder = */* ]] || folder+=/.
  [[ $room = stf/* ]] || room=${include%%/*}
  case "${allowed[$folder]-}" in
    *" $room "* | *" $include "*) ;;
    *) [ "$room" = "${folder#*/}" ] && [ -n "${allowed[$folder]+listed}" ] && continue
      echo "$file may not include \"$include\" (see tests/style/rooms.txt)"
      fails=$((fails + 1)) ;;
  esac
done < <(git ls-files 'base/*.[ch]' 'decoders/*.[ch]' 'analysis/*.[ch]' 'server/*.[ch]' 'client/include/*.h' |
  xargs grep -HoE '^#include "[^"]+"' | sed -E 's/#include "([^"]+)"/\1/')
if grep -rnE '#include "(net|rpc|store|shard|builder|catalog|lake|ingest|query|range|upkeep|share|copy)/' client/lib 2>/dev/null; then
  echo "the client library includes the server"
  fails=$((fails + 1))
fi
long=$(git ls-files '*.c' '*.h' '*.ts' '*.py' dev | xargs wc -l | awk '$2 != "total" && $1 > 800 {print $2 " (" $1 ")"}')
[ -z "$long" ] || { echo "over 800 lines: $long"; fails=$((fails + 1)); }
[ $fails -eq 0 ] && echo "headers and dependencies: fine"
exit $((fails > 0))
