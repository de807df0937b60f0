#!/usr/bin/env bash
# Every header compiles alone; dependencies between folders point one way.
set -u
cd "$(dirname "$0")/../.."
build=$1
fails=0
includes=(-Idecoders -Iserver -Iclient -Iclient/include -I. -Itests "-I$build/proto")
while IFS= read -r flag; do includes+=("$flag"); done < <(pkg-config --cflags-only-I libmicrohttpd libnghttp2 openssl libuv sqlite3 | tr ' ' '\n' | grep .)
# NAME_body.h is a function body that is compiled once per variant, not a header. A header that NAME.c
# includes first has been compiled alone by the build.
for h in $(git ls-files 'decoders/*.h' 'server/*.h' 'client/*.h' 'web/*.h' 'tests/sim/*.h' 'tests/store/*.h' | grep -v '_body\.h$'); do
  [ -e "${h%.h}.c" ] && [[ $(grep -m1 '^#include' "${h%.h}.c") == *[\"/]"${h##*/}"\" ]] && continue
  grep -q '<rados/librados.h>' "$h" && ! [ -e /usr/include/rados/librados.h ] && continue # optional
  printf '#include "%s"\n' "$PWD/$h" | gcc -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-parameter \
    "${includes[@]}" -x c -fsyntax-only - || { echo "not self-contained: $h"; fails=$((fails + 1)); }
done
# Allowed includes: a folder, and the folders (or single headers) that its files may include besides
# its own. A new folder needs a line; a new dependency must point downwards, as in HACKING.md.
table='
decoders/base     simd
decoders/simd
decoders/image    base
decoders/dwarf    base
decoders/isa      base
decoders/regions  base isa
decoders/flow     base simd image isa
decoders/frame    base simd
decoders/setup    base image isa
decoders/import   base image frame setup perf
decoders/decode   base simd image isa flow frame setup
decoders/etm3     base image isa flow frame setup decode
decoders/etm4     base simd image isa flow frame setup decode
decoders/mtb      base image isa flow frame setup decode
decoders/itm      base simd image isa flow frame setup decode
decoders/stm      base simd image isa flow frame setup decode
decoders/osd      base simd image isa flow frame setup decode
decoders/pt       base simd image isa flow frame setup decode
decoders/riscv    base simd image isa flow frame setup decode
decoders/perf     base simd image isa flow frame setup decode pt
decoders/stf      base simd image isa flow setup decode
server/disasm     base isa image
server/store      base
server/shard      base simd image isa flow setup decode/point.h stf lake_rows.h store
server/builder    base simd image isa flow setup decode/point.h stf lake_rows.h store shard
server/catalog    base setup lake_rows.h store shard
server/rados      base store shard catalog
server/rados/none rados
server/ingest     base image flow setup decode stf store shard lake share/share.h lake.h lake_ingest.h
server/lake       base image flow setup import decode stf store shard builder catalog rados ingest share/share.h query/debuginfo.h lake.h
server/share      base setup decode rados ingest lake lake.h
server/range      base flow setup decode stf shard builder ingest lake share/share.h query/scale.h lake.h
server/query      base image dwarf isa flow setup regions decode stf shard builder lake share/share.h disasm lake.h
server/upkeep     base image setup decode store shard builder rados ingest lake share/share.h lake.h
server/copy       base setup store shard catalog rados ingest lake share/share.h lake.h lake_copy.h
server/net        base
server/osdhost    base setup net lake.h
server/rpc        base flow/line.h setup/registers.h net osdhost lake.h tracelake grpc web
server/.          base setup regions net rpc osdhost lake.h lake_analysis.h lake_ingest.h lake_rows.h serve.h serve_options.h notify.h process.h web
client/include   tracelake.h tracelake_lookups.h
'
declare -A allowed
while read -r folder others; do [ -z "$folder" ] || allowed[$folder]=" $others "; done <<<"$table"
while IFS=: read -r file include; do
  folder=${file%/*}
  [ "$folder" = server ] && folder=server/.
  case "${allowed[$folder]-}" in
    *" ${include%%/*} "* | *" $include "*) ;;
    *) [ "${include%/*}" = "${folder##*/}" ] && [ -n "${allowed[$folder]+listed}" ] && continue
      echo "$file may not include \"$include\" (see the table in tests/style/headers.sh)"
      fails=$((fails + 1)) ;;
  esac
done < <(git ls-files 'decoders/*.[ch]' 'server/*.[ch]' 'client/include/*.h' |
  xargs grep -HoE '^#include "[^"]+"' | sed -E 's/#include "([^"]+)"/\1/')
if grep -rnE '#include "(net|rpc|store|shard|builder|catalog|lake|ingest|query|range|upkeep|share|copy)/' client/lib 2>/dev/null; then
  echo "the client library includes the server"
  fails=$((fails + 1))
fi
long=$(git ls-files '*.c' '*.h' '*.ts' '*.py' dev | xargs wc -l | awk '$2 != "total" && $1 > 800 {print $2 " (" $1 ")"}')
[ -z "$long" ] || { echo "over 800 lines: $long"; fails=$((fails + 1)); }
[ $fails -eq 0 ] && echo "headers and dependencies: fine"
exit $((fails > 0))
