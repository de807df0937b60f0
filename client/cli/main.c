/* SPDX-License-Identifier: MIT */
/* The `tracelake` executable: finds the command, prints help. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "simd/cpu.h"
#include "terminal/args.h"
#include "terminal/plain.h"
#include "terminal/progress.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTION                                                                                 \
    "\nserver:\n"                                                                                  \
    "  --server URL        http://HOST:PORT or https://HOST:PORT (default: $TRACELAKE_SERVER, "    \
    "or\n"                                                                                         \
    "                      http://127.0.0.1:7070); URL,URL,…: several servers of one lake,\n"    \
    "                      tried in turn\n"                                                        \
    "  --token FILE        file with the access token (default: $TRACELAKE_TOKEN)\n"               \
    "  --cafile FILE       certificates to trust with https (default: $TRACELAKE_CAFILE)\n"        \
    "  --fingerprint HEX   SHA-256 of the server's certificate, instead of --cafile (default:\n"   \
    "                      $TRACELAKE_FINGERPRINT); HEX,HEX,…: one of these\n"                   \
    "  --cert FILE         client certificate (default: $TRACELAKE_CERT)\n"                        \
    "  --key FILE          its key (default: $TRACELAKE_KEY, or in the same file)\n"               \
    "  --insecure          accept any certificate\n"                                               \
    "  --timeout SECONDS   give up after this long without progress (default 60)\n"

#define NAMES "  --mangled           name C++ and Rust functions as in their files, not demangled\n"

#define RANGE                                                                                      \
    "  --insn A:B          instructions A to B-1 (A: to the end, :B from the start)\n"             \
    "  --time A:B          the same by time: 1.5ms:2ms, 59.7ms:+200us (us, ns, s), or without\n"   \
    "                      units in the stream's (ns, or ticks where the clock is not known)\n"    \
    "  --byte A:B          the same by raw byte offset\n"

/* Where a command's usage line names the two ranges. */
#define SPAN                                                                                       \
    "  --insn A:B          only instructions A to B-1 (A: to the end, :B from the start)\n"        \
    "  --time A:B          only this time: 1.5ms:2ms, 59.7ms:+200us, or in the stream's unit\n"

#define FORMATS                                                                                    \
    "  --format FMT        tpiu[,sync=none|fsync|hsync] etm4 ete etm3 ptm mtb itm stm "            \
    "[,id=0x10]\n"                                                                                 \
    "        orbflow di pt stf perf\n"                                                             \
    "        RISC-V: ntrace nexus-sifive [,src_bits=N] etrace-encap etrace-smi etrace-esp32\n"     \
    "  --config F          configuration of the decoder: sources, registers (INI)\n"               \
    "  --image FILE[@ADDR][,space=EL1N][,context=ID][,vmid=ID][,source=nt.N]\n"                    \
    "        [,offset=N][,length=N][,from=TICKS][,until=TICKS]\n"                                  \
    "                      program image; may be given more than once\n"                           \
    "  --symfs DIR         perf: root of the traced machine's files (default: this machine's)\n"   \
    "  --buildid-dir DIR   perf: perf's build-ID cache (default: ~/.debug)\n"                      \
    "  --vmlinux FILE      perf: the kernel's ELF file\n"                                          \
    "  --kcore FILE        perf: a copy of /proc/kcore, or the folder that contains it\n"

static const struct tl_command commands[] = {
#ifdef TL_HAVE_SERVE
    {"serve", tl_cmd_serve, "run the server",
     "usage: tracelake serve --data DIR [options]\n"
     "       tracelake serve --config FILE [--check-config]\n"
     "SIGHUP reloads the configuration, tokens and certificates: options marked with * take "
     "effect\n"
     "then, the others at the next start. SIGTERM and SIGINT stop the server cleanly.\n"
     "  --data DIR             folder in which everything is stored\n"
     "  --config FILE          options as lines \"name = value\", without the dashes; # and ; "
     "begin\n"
     "                         comments. The command line takes precedence; repeatable options\n"
     "                         accumulate\n"
     "  --check-config         check the configuration and exit: status 0 if valid, else 1 or 2\n"
     "\n"
     "listening:\n"
     "  --listen ADDR:PORT     plain HTTP/1.1 and HTTP/2 (default 127.0.0.1:7070); may be "
     "repeated\n"
     "  --listen-tls ADDR:PORT the same with TLS (default 127.0.0.1:7443); may be repeated\n"
     "  --tls-cert FILE        * certificate, PEM, with its chain (default: a self-signed one is\n"
     "                         created in the data folder)\n"
     "  --tls-key FILE         * its key, PEM\n"
     "  --tokens FILE          * access tokens, see 'token'; without it everyone may do "
     "everything\n"
     "  --tls-client-ca FILE   * CA certificates, PEM, for client certificates; a client with one\n"
     "                         needs no token if the token file lists its name\n"
     "  --insecure             listen beyond this machine without TLS or tokens, accept any host "
     "name\n"
     "\n"
     "trace that is not pushed:\n"
     "  --raw ADDR:PORT,format=FMT,rig=NAME[,config=F][,shards=stored|virtual]\n"
     "                         receive raw trace bytes over TCP; may be repeated\n"
     "  --source tcp://HOST:PORT,format=FMT,rig=NAME[,config=F][,shards=…]\n"
     "                         fetch raw trace bytes over TCP; may be repeated\n"
     "  --osd-host-controller ADDR[:PORT][,rig=NAME][,config=F][,start=KINDS][,reset=yes]\n"
     "                         be the host controller of Open SoC Debug devices\n"
     "  --seal-after AGE       * complete captures that have not been pushed to for this long, "
     "e.g. 1h\n"
     "                         (s m h d w; default: never, they can always be resumed)\n"
     "\n"
     "storage:\n"
     "  --retain-raw LIMIT     * remove raw bytes by age and size, e.g. 30d,200G (see 'retain')\n"
     "  --retain-decoded LIMIT * the same for decoded data\n"
     "  --retain-stf AGE       * make the shards of traces virtual that have not changed for this\n"
     "                         long, e.g. 7d\n"
     "  --min-free SIZE        * accept no more trace when less space is free (default 512M)\n"
     "  --rebuild-catalog      set a damaged catalog aside and rebuild it from the stored objects\n"
     "  --store URL            store everything in a Ceph cluster instead of the data folder:\n"
     "                         rados:POOL[?conf=FILE&id=NAME&namespace=NS&lease=SECONDS]\n"
     "  --shard-insns N        instructions of a shard (default 1M)\n"
     "  --shards KIND          for new traces: stored (default), or virtual: only index and tiles "
     "are\n"
     "                         stored, instructions are decoded from the raw bytes when read\n"
     "  --threads N            decoding threads (default: one per processor)\n"
     "  --decode-memory SIZE   memory for all decoding, half of it for one trace (default: half of "
     "the\n"
     "                         machine's, or of the cgroup's)\n"
     "\n"
     "log, on standard error:\n"
     "  --log-format FORMAT    text or json (default text)\n"
     "  --log-level LEVEL      error, warning, info or debug (default info)\n"
     "\n"
     "limits:\n"
     "  --max-connections N    * total (default 4096)\n"
     "  --max-per-address N    * from one address or IPv6 /64 (default: a quarter of the total)\n"
     "  --max-http1 N          * over HTTP/1.1 (default 512)\n"
     "  --quota RULE           * of a rig: rig=GLOB,bytes=200G,traces=1000,rate=50M; may be "
     "repeated\n"
     "  --max-guests N         * requests without a valid token, an eighth of them from one "
     "address\n"
     "                         (default 1024)\n"
     "  --max-streaming N      * concurrent streaming calls of readers, and as many pushes "
     "(default 512)\n"
     "  --max-message SIZE     * of each received message (default 4M)\n"
     "  --max-inbound SIZE     * memory for received messages (default 1G)\n"
     "  --max-outbound SIZE    * memory for answers that clients have not taken (default 512M)\n"
     "Of most of these a client gets what is free of them, one alone half: docs/admin.md.\n"},
#endif
#ifdef TL_HAVE_PUSH
    {"push", tl_cmd_push, "send a capture to a server",
     "usage: tracelake push [options] --format FMT INPUT|-\n"
     "       tracelake push [options] --snapshot DIR\n"
     "       tracelake push [options] perf.data\n"
     "       tracelake push --config F          [source] sections name their files\n"
     "Sends raw trace. An existing, incomplete trace is resumed where its durable bytes end, if "
     "the\n"
     "input begins with these; another capture under its name is refused with status 3. A pipe\n"
     "or a device continues to be read while the server is unreachable.\n" FORMATS
     "  --snapshot DIR      push each buffer of an Arm trace snapshot as a separate trace\n"
     "  --buffer NAME       only this buffer of a snapshot\n"
     "  --rig NAME          name of the sender (default: the host name)\n"
     "  --trace ID          ID of the trace (default: assigned by the server)\n"
     "  --shards KIND       stored or virtual (see 'serve'), for a new trace; default: the "
     "server's\n"
     "  --no-resume         fail if the trace exists\n"
     "  --rate BYTES        limit in bytes per second (K, M, G)\n"
     "  --chunk BYTES       bytes per message (default 256K)\n"
     "  --retry SECONDS     how long to retry when the connection breaks or the server's disk is "
     "full\n"
     "                      (default: forever; 0: not at all)\n"
     "  --spool DIR,SIZE    keep the input of a pipe or device in DIR, at most SIZE (1G), until "
     "the\n"
     "                      server has it: push can start without a server, and continues exactly\n"
     "                      where it ended when it is run again, even after a crash\n"
     "  --memory SIZE       without --spool: buffer at most this much input (default 32M)\n"
     "  --goes-on           when run again: INPUT does not start at the capture's first byte, but "
     "after\n"
     "                      the last byte that was read before (a FIFO, a device)\n"
     "  --no-wait           return when the bytes are durable, do not wait for decoding\n"
     "  --json              print the result as JSON: each trace as in 'ls --json', one per line\n"
     "  --quiet             print nothing but errors\n" CONNECTION},
#endif
#ifdef TL_HAVE_DECODE
    {"decode", tl_cmd_decode, "decode a capture without a server",
     "usage: tracelake decode --format FMT [options] (--text | --packets | --out DIR) INPUT|-\n"
     "       tracelake decode [options] (--text | --packets | --out DIR) perf.data\n"
     "       tracelake decode --format di --like osd-sw-ctm|osd-sw-stm|osd-sw-print INPUT\n"
     "       tracelake decode --format pt --like ptdump|ptxed [--cpu CPU] INPUT [-- OPTIONS]\n"
     "       tracelake decode --snapshot DIR [--buffer NAME] (--text | --packets | --out "
     "DIR)\n" FORMATS
     "  --text              flow text: executed instructions and events, one per line\n"
     "  --disasm            … each instruction with its assembly text and function\n"
     "  --symbols ELF[@BIAS]   … functions by this file's symbols (default: by the images')\n"
     "  --source            … and its source line, by the debug information of the same "
     "files\n" NAMES
     "  --packets           trace packets, one per line; with --text each is followed by its "
     "elements\n"
     "                      as '  STREAM ELEMENT', all streams in the order of the capture\n"
     "  --raw-bytes         packets: … each followed by its bytes, at most 32\n"
     "  --stream NAME       only this stream (cs.10, di.0.1, pt.0, …); may be given more than "
     "once\n"
     "  --out DIR           a .zstf per stream, DIR/STREAM.zstf; for a snapshot with several "
     "buffers\n"
     "                      DIR/BUFFER.STREAM.zstf\n"
     "  --json              elements, packets or the files of --out as JSON, one object per line\n"
     "  --threads N         decoding threads (default: one per processor, up to 4)\n"
     "  --chunk BYTES       passed to the decoder at a time (default 4194304); does not change the "
     "output\n"
     "  --like TOOL         print like this tool; for ptdump and ptxed OPTIONS are theirs\n"
     "  --cpu CPU           the traced processor, FAMILY/MODEL[/STEPPING], with --like "
     "ptdump|ptxed\n"},
#endif
#ifdef TL_HAVE_LS
    {"ls", tl_cmd_ls, "list traces",
     "usage: tracelake ls [--json] [--label KEY[=VALUE]]… [TRACE…]\n"
     "  --label KEY[=VALUE] only traces with this label; repeated: with all of them\n" CONNECTION},
    {"show", tl_cmd_show, "show all details of a trace",
     "usage: tracelake show [--json] TRACE…\n" CONNECTION},
    {"cp", tl_cmd_cp, "copy captures to another server",
     "usage: tracelake cp TRACE… --to URL [--as NAME]\n"
     "Copies raw bytes, setup, images and labels; resumes where an earlier copy ended.\n"
     "  --to URL            the destination server\n"
     "  --to-token F, --to-cafile F, --to-fingerprint HEX   as below, for that server\n"
     "  --as NAME           the trace's name at the destination\n"
     "  --json              print each copied trace as in 'ls --json', one per line\n" CONNECTION},
    {"rm", tl_cmd_rm, "remove traces",
     "usage: tracelake rm TRACE…\n"
     "  --json              print what was removed as JSON, {\"id\":…}, one per line\n" CONNECTION},
    {"label", tl_cmd_label, "set or remove labels",
     "usage: tracelake label TRACE KEY=VALUE…\n"
     "An empty value removes the label.\n"
     "  --json              print the trace as in 'ls --json'\n" CONNECTION},
    {"materialise", tl_cmd_materialise, "store the shards of traces with virtual shards",
     "usage: tracelake materialise TRACE… [--no-wait]\n"
     "For a trace with virtual shards ('serve --shards', '--retain-stf') only index and tiles are\n"
     "stored, and its instructions are decoded from the raw bytes when they are read. This "
     "command\n"
     "decodes the trace again and stores the shards; meanwhile it is served as before.\n"
     "  --no-wait           do not wait until this is done\n"
     "  --json              print each trace as in 'ls --json', one per line\n" CONNECTION},
    {"seal", tl_cmd_seal, "end live captures whose rig is gone",
     "usage: tracelake seal TRACE…\n"
     "Completes the capture with the bytes received so far; it can then no longer be resumed. A\n"
     "capture that is being pushed ends with its push. 'serve --seal-after 1h' seals "
     "automatically.\n"
     "  --json              print each trace as in 'ls --json', one per line\n" CONNECTION},
    {"redecode", tl_cmd_redecode, "decode the raw bytes again",
     "usage: tracelake redecode TRACE… [--config F | --back] [--image FILE[@ADDR]]…\n"
     "  --config F          decode with this setup instead of the current one\n"
     "  --image FILE[@ADDR] add a program image to the setup\n"
     "  --back              decode with the previous setup\n"
     "  --no-wait           do not wait until this is done\n"
     "  --json              print each trace as in 'ls --json', one per line\n"
     "The old decode is served until the new one is complete, and is kept if the new one finds\n"
     "nothing.\n" CONNECTION},
    {"verify", tl_cmd_verify, "check every stored byte",
     "usage: tracelake verify [--repair] (TRACE… | --all)\n"
     "Prints one line per problem; exit status 1 if there are any.\n"
     "  --all               all traces, all images, and the catalog\n"
     "  --repair            rebuild what can be rebuilt from intact data, and report what is lost\n"
     "  --json              a JSON object for each trace, one per line\n" CONNECTION},
#endif
#ifdef TL_HAVE_IMAGES
    {"images", tl_cmd_images, "upload, list and remove program images",
     "usage: tracelake images [--source DIR] [FILE…]\n"
     "       tracelake images rm [--force] IMAGE…\n"
     "Uploads the files, each content only once, then lists all images. A setup refers to them by\n"
     "sha256:… or build-id:…, even before they are uploaded.\n"
     "  --source DIR        also upload the source files below DIR for the timeline: C, C++, "
     "assembly,\n"
     "                      Rust and the like, up to 4 MiB each. They belong to the FILEs; without "
     "FILEs,\n"
     "                      to all images that have no sources yet\n"
     "'rm' removes images, named by sha256:… or its beginning, by build-id:…, or by the name in "
     "the\n"
     "list, if only one has it. One that traces refer to is only removed with\n"
     "  --force             until it is uploaded again, decoding these has gaps ('retain "
     "--images':\n"
     "                      remove those that no trace refers to by themselves)\n"
     "  --json              the list, or each removed image, as JSON\n" CONNECTION},
#endif
#ifdef TL_HAVE_RETAIN
    {"retain", tl_cmd_retain, "set how long raw and decoded data are kept",
     "usage: tracelake retain                           show the rules\n"
     "       tracelake retain [--label KEY=VALUE | --trace ID] [--raw LIMIT] [--decoded LIMIT]\n"
     "       tracelake retain [--label KEY=VALUE | --trace ID] --remove\n"
     "       tracelake retain [--images LIMIT]\n"
     "       tracelake retain --dry-run [the rule to be tried]\n"
     "LIMIT is an age since the last change (s m h d w), a total size of all traces under the "
     "rule\n"
     "(K M G T), or both: 30d,200G; or none. The most specific rule applies to a trace. Traces "
     "being\n"
     "pushed or decoded, and those with a label keep, are never touched. At most a quarter of all\n"
     "traces (or eight) is removed because of age in a day.\n"
     "  --images LIMIT      for program images that no trace refers to: the age counts from when\n"
     "                      that became so, the size is of all of them\n"
     "  --dry-run           tell what would be removed now, and change nothing\n"
     "  --json              the rules as JSON; a limit of 0 means none\n" CONNECTION},
#endif
#ifdef TL_HAVE_GET
    {"get", tl_cmd_get, "fetch a range of a stream",
     "usage: tracelake get TRACE[/STREAM] [range] (-o F.zstf | -o F.stf | --format FORM)\n"
     "Without STREAM: all streams, one after another (except in the formats for "
     "simulators).\n" RANGE
     "  -o FILE             write STF, compressed if the name ends in .zstf; - is stdout\n"
     "  --format FORM       text (flow text), lines (output of programs by software trace: TIME "
     "SOURCE\n"
     "                      CHANNEL TEXT), json (a document for each stream), ndjson (an object\n"
     "                      per line), champsim (64 bytes per instruction), bb (basic-block "
     "vectors of\n"
     "                      --interval N instructions), pc (one address per line) or disasm "
     "(number,\n"
     "                      address, encoding, assembly)\n"
     "  --text, --lines, --json   the same as --format text …\n"
     "  --disasm            text: each instruction followed by its assembly text\n"
     "  --symbols ELF[@BIAS]   text, disasm: … and its function, by this file's symbols\n"
     "  --source            … and its source line, by the same file's debug information\n"
     "a range by its contents, within --insn:\n"
     "  --from-symbol F | --from-pc ADDR | --from-event KIND   where it begins: a call of F,\n"
     "                      a function; an address (hexadecimal); an event …\n"
     "  --occurrence N      … the N-th time (default 1)\n"
     "  --to-symbol F | --to-pc ADDR | --to-event KIND   where it ends, the next time\n"
     "  --count N           instructions\n"
     "  --warm-up N         also include N instructions before it\n"
     "  --region NAME       a region named by 'simpoints --save'\n" NAMES CONNECTION},
#endif
#ifdef TL_HAVE_RAW
    {"raw", tl_cmd_raw, "get the rig's bytes back, exactly as sent",
     "usage: tracelake raw TRACE [--byte A:B] (-o FILE | -) [--config FILE [--images DIR]]\n"
     "  --byte A:B          bytes A to B-1 (A: to the end, :B from the start)\n"
     "  -o FILE             output file; - is stdout, unless that is a terminal\n"
     "  --config FILE       also write the trace's setup, for push --config\n"
     "  --images DIR        … and the program images it names, so that decode needs no server\n"
     "  --json              print the files written and their sizes as JSON\n" CONNECTION},
#endif
#ifdef TL_HAVE_FIND
    {"find", tl_cmd_find, "find instructions, symbols, events",
     "usage: tracelake find TRACE/STREAM (TEXT | --pc ADDR[:ADDR] | --symbol S | --event KIND | "
     "…)\n"
     "       tracelake find TRACE --all (TEXT | …)      in all streams, by time\n"
     "TEXT is a function (finds calls; part of its name is enough), function+0xOFFSET, an address "
     "or\n"
     "range, an event, a mnemonic; or with its kind: call:…, pc:…, event:…, op:…, opcode:…,\n"
     "process:… (where a process of this name starts running), data:ADDR[:ADDR] (accesses to\n"
     "memory, of a trace with data trace)\n"
     "  --pc ADDR[:ADDR]    executions of an address (hexadecimal), or of a range (end excluded)\n"
     "  --symbol S          where execution enters a function, including by a return; if several\n"
     "                      have this name, any of them\n"
     "  --call NAME         calls of a function: its name, part of it, or a pattern (*, ?)\n"
     "                      Names of C++ and Rust: mangled or not, with or without arguments\n"
     "  --event KIND        exception, gap, event, hardware (DWT), software, mode, context, "
     "return,\n"
     "                      trace-on, note; or gaps for one reason: overflow, sync, bad-packet,\n"
     "                      no-image, no-path, discard, off, transport. Several with commas\n"
     "  --mnemonic M        instructions by mnemonic (*, ?); with a space: part of the assembly "
     "text\n"
     "  --opcode DIGITS     instructions by encoding, as in flow text, x for any digit\n" SPAN
     "  --after PLACE       only after instruction PLACE (with --all: STREAM:INSN); PLACE+N:\n"
     "                      after the first N hits there\n"
     "  --before PLACE      … or before it, nearest first\n"
     "  --count             also count all hits\n"
     "  --limit N           maximum number of hits printed (default 100, 0: the server's limit)\n"
     "  --json              as JSON\n" NAMES CONNECTION},
#endif
#ifdef TL_HAVE_STATS
    {"stats", tl_cmd_stats, "instruction mix, hottest functions, events",
     "usage: tracelake stats TRACE/STREAM [--insn A:B | --time A:B] [--tree | --callers] "
     "[--json]\n" SPAN "  --tree              instead: the call tree, with instruction counts\n"
     "  --callers           the same bottom-up: under each function its callers\n" NAMES
         CONNECTION},
#ifdef TL_HAVE_PROFILE
    {"profile", tl_cmd_profile, "execution counts, for compilers and profile viewers",
     "usage: tracelake profile TRACE[/STREAM]… [--as FORM] [--insn A:B | --time A:B] [-o FILE]\n"
     "  --as FORM           autofdo, llvm-profgen, bolt: execution counts\n"
     "                      perf-branches: taken branches in order, for llvm-profgen\n"
     "                      folded (default), speedscope, pprof, json: call stacks\n"
     "  --image FILE        only the code of this program or library, at its own addresses "
     "(autofdo,\n"
     "                      llvm-profgen, bolt): a local file, or sha256:…, build-id:…, a name\n"
     "  --context N[,N…]    only code run with these context IDs (the same formats)\n" SPAN
     "  --bias ADDR         instead of --image: subtracted from addresses\n"
     "  --size N            size of the program in memory: other code is left out\n"
     "  --build-id HEX      build ID of the program, for autofdo\n"
     "  --json              call stacks as the server stores them, one object per trace\n"
     "Several traces are added up. Without STREAM: all streams.\n" NAMES CONNECTION},
#endif
#ifdef TL_HAVE_COVERAGE
    {"coverage", tl_cmd_coverage, "which parts of the program were executed",
     "usage: tracelake coverage TRACE[/STREAM]… [--as text|lcov|json] [--insn A:B | --time A:B]\n"
     "                          [--context N[,N…]] [-o FILE]\n"
     "Functions, instructions, branches both ways and, where the images have debug information,\n"
     "source lines. Without STREAM: all streams together. Several traces are added up.\n" SPAN
     "  --context N[,N…]    only code run with these context IDs\n"
     "  --json              the same as --as json\n" NAMES CONNECTION},
#endif
    {"diff", tl_cmd_diff, "where two runs diverge, and differences by function",
     "usage: tracelake diff TRACE/STREAM[@A:B] TRACE/STREAM[@A:B] [--calls] [--limit N] [--json]\n"
     "Instructions match if they are at the same offset in a function of the same name, or, "
     "without\n"
     "symbols, at the same address. A:B are instructions, or times with units: 1.5ms:2ms.\n"
     "  --calls             compare the functions called, not every instruction\n"
     "  --limit N           maximum number of differences printed (default 100)\n"
     "  --exit-code         exit status 1 if they differ\n" NAMES CONNECTION},
    {"call", tl_cmd_call, "details of a call",
     "usage: tracelake call TRACE/STREAM (--insn N | --time T) [--depth N] [--json]\n"
     "The call active at an instruction, or a time such as 1.5ms: its duration, its caller, its "
     "number among the calls of "
     "the\n"
     "function, and their durations.\n"
     "  --depth N           0 is the outermost one (default: the innermost)\n" NAMES CONNECTION},
#endif
#ifdef TL_HAVE_TAIL
    {"tail", tl_cmd_tail, "follow a live stream",
     "usage: tracelake tail TRACE[/STREAM] [--from N] [--disasm] [--lines | --json]\n"
     "  --from N            start at instruction N (default: at the current end)\n"
     "Resumes where it was after the server was unreachable.\n"
     "  --disasm            each instruction followed by its assembly text\n"
     "  --symbols ELF[@BIAS]   … and its function, by this file's symbols\n"
     "  --source            … and its source line, by the same file's debug information\n"
     "  --lines             output of programs by software trace, line by line: TIME SOURCE "
     "CHANNEL TEXT\n"
     "  --json              JSON documents instead of flow text\n" NAMES CONNECTION},
#endif
#ifdef TL_HAVE_STORE
    {"store", tl_cmd_store, "copy traces between stores",
     "usage: tracelake store copy FROM TO [TRACE…]\n"
     "FROM and TO are data folders or rados:POOL… as for 'serve --store'. A server may use FROM\n"
     "meanwhile, and TO if it is a cluster. All sealed traces, or those named, are copied with\n"
     "everything stored about them; each is read back and compared. Existing copies are left "
     "alone:\n"
     "run it again to continue, and to copy newer traces. Exit status 1 if something could not be\n"
     "copied (yet).\n"
     "  -q, --quiet         print only failures\n"
     "  --json              an object for each trace, one per line: its id, outcome (copied, "
     "there,\n"
     "                      busy, other, damaged, missing) and bytes\n"},
#endif
#ifdef TL_HAVE_TOKEN
    {"token", tl_cmd_token, "add, list and revoke access tokens",
     "usage: tracelake token add --tokens FILE --role ROLE [options]\n"
     "       tracelake token list --tokens FILE [--json]\n"
     "       tracelake token revoke --tokens FILE NAME|ID…\n"
     "Changes the file that 'serve --tokens' reads, on the server's machine. 'add' prints the "
     "token\n"
     "only once: the file contains its digest. The server reloads it on SIGHUP (systemctl "
     "reload).\n"
     "  --tokens FILE       the file (default: $TRACELAKE_TOKENS); 'add' creates it\n"
     "  --role ROLE         read; push: also add traces; admin: also change and remove them\n"
     "  --name NAME         name for people\n"
     "  --expires WHEN      2027-01-31, or a time from now: 90d, 12h (default: never)\n"
     "  --rig GLOB          only traces of matching rigs; may be repeated\n"
     "  --label KEY=VALUE   only traces with this label; may be repeated\n"
     "  --quota WORD        bytes=200G, traces=1000 (of its traces), rate=50M (pushed bytes a\n"
     "                      second) or calls=100 (a second); may be repeated\n"
     "  --cert NAME         instead of a token: for clients with a certificate of this name (see\n"
     "                      'serve --tls-client-ca')\n"
     "  --json              print the list, or what 'add' created, as JSON\n"},
#endif
#ifdef TL_HAVE_DUMP
    {"dump", tl_cmd_dump, "STF records as text",
     "usage: tracelake dump FILE|- [--from N --to M] [--format FORM] [-o OUT]\n"
     "FILE is STF, plain or as .zstf, gzip, xz or zstd; recognised by content, not by name.\n"
     "  --from N --to M     records N to M-1 (default: all)\n"
     "  --format FORM       instructions instead: champsim (64 bytes each), bb (basic-block "
     "vectors\n"
     "                      of --interval N instructions), pc (one address per line) or disasm\n"
     "  --disasm            the same as --format disasm: number, address, encoding, text\n"
     "  --symbols ELF[@BIAS]   … and the function, by this file's symbols; same as --image\n" NAMES
     "  -o OUT              write to this file\n"
     "  --json              records as JSON, one object per line\n"},
#endif
#ifdef TL_HAVE_CHECK
    {"check", tl_cmd_check, "check STF files against the specification",
     "usage: tracelake check [--limit N] FILE…\n"
     "Prints each violation with its offset. Exit status 1 if there are errors.\n"
     "  --limit N           maximum printed for each rule (default 100, 0: all)\n"
     "  --summary           print the first violation of each rule, and their number\n"
     "  --json              an object for each file, one per line: findings (offset, record, "
     "severity,\n"
     "                      rule, text), their number by rule, totals\n"},
#endif
#ifdef TL_HAVE_SLICE
    {"slice", tl_cmd_slice, "cut a range out of an STF file",
     "usage: tracelake slice FILE [range] -o OUT.stf|OUT.zstf\n"
     "  --insn A:B          instructions A to B-1, from 0 (A: to the end, :B from the start)\n"
     "a range by its contents, within --insn:\n"
     "  --from-pc ADDR | --from-symbol F   where it begins: an address (hexadecimal), or the "
     "start\n"
     "                      of a function\n"
     "  --occurrence N      … the N-th time (default 1)\n"
     "  --to-pc ADDR | --to-symbol F   where it ends, the next time\n"
     "  --count N           instructions\n"
     "  --warm-up N         also include N instructions before it\n"
     "  --symbols ELF[@BIAS]   the program with the functions\n"
     "  -o FILE             compressed in chunks if the name ends in .zstf, otherwise plain\n"
     "  --chunk N           instructions per chunk (default 100000)\n"
     "  --level N           zstd level, 1 to 19 (default 1)\n"
     "  --reserve-end       end a plain file with record 255, as STF 1.3 requires\n"
     "  --json              print what was written as JSON\n"},
#endif
#ifdef TL_HAVE_SIMPOINTS
    {"simpoints", tl_cmd_simpoints, "regions that represent a whole execution",
     "usage: tracelake simpoints TRACE/STREAM|FILE [options]\n"
     "  --interval N        instructions per region (default 10M)\n"
     "  --max N             maximum number of regions (default 30)\n"
     "  --warm-up N         instructions before each region to include in its file\n"
     "  --insn A:B          only instructions A to B-1\n"
     "  -o DIR              write each region as .zstf, the basic-block vectors, weights and\n"
     "                      regions.yaml, which describes them\n"
     "  --save NAME         store the regions on the server as NAME.1, NAME.2 … for\n"
     "                      'tracelake get TRACE --region NAME.1'\n"
     "  --json              print them as JSON\n" NAMES CONNECTION},
#endif
    {"completion", tl_cmd_completion, "print a completion script for a shell",
     "usage: tracelake completion bash|zsh|fish\n"
     "Prints a script that completes commands, options, formats, and names of traces and streams "
     "on\n"
     "the server, by calling this program. To enable it in every shell:\n"
     "  bash                tracelake completion bash "
     ">~/.local/share/bash-completion/completions/tracelake\n"
     "  zsh                 tracelake completion zsh >DIR/_tracelake, with DIR in $fpath\n"
     "  fish                tracelake completion fish "
     ">~/.config/fish/completions/tracelake.fish\n"},
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

const struct tl_command *tl_commands(size_t *n)
{
    *n = N_COMMANDS;
    return commands;
}

const struct tl_command *tl_command_find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

void tl_cli_help(const char *command)
{
    const struct tl_command *c = tl_command_find(command);
    if (c)
        fputs(c->help, stdout);
}

static int usage(FILE *out)
{
    fputs("usage: tracelake COMMAND …\n\n", out);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n'tracelake COMMAND --help' tells more. Exit status: 0 done, 1 the input was bad,\n"
          "2 usage, 3 the server cannot be reached or refused.\n",
          out);
    return out == stdout ? TL_CLI_DONE : TL_CLI_USAGE;
}

/* A forced level must not be replaced by another one. */
static int no_such_level(const char *name)
{
    fprintf(stderr, "tracelake: TRACELAKE_CPU=%s: this machine has", name);
    for (int i = 0; i < TL_CPU_LEVELS; i++)
        if (tl_cpu_has((enum tl_cpu)i))
            fprintf(stderr, " %s", tl_cpu_name((enum tl_cpu)i));
    fputc('\n', stderr);
    return TL_CLI_USAGE;
}

int main(int argc, char **argv)
{
    tl_args_on_help(tl_cli_help);
    if (argc < 2)
        return usage(stderr);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return usage(stdout);
    if (strcmp(argv[1], "--version") == 0) {
        puts("tracelake " TL_VERSION);
        return TL_CLI_DONE;
    }
    if (strcmp(argv[1], "help") == 0) {
        if (argc > 2 && strcmp(argv[2], "--man") == 0) {
            tl_manual_print(argc > 3 ? tl_command_find(argv[3]) : NULL);
            return TL_CLI_DONE;
        }
        if (argc > 2 && tl_command_find(argv[2])) {
            tl_cli_help(argv[2]);
            return TL_CLI_DONE;
        }
        if (argc > 2 && strcmp(argv[2], "help") != 0) {
            fprintf(stderr, "tracelake: unknown command '%s'; see 'tracelake --help'\n", argv[2]);
            return TL_CLI_USAGE;
        }
        return usage(stdout);
    }
    if (strcmp(argv[1], "complete") == 0)
        return tl_cmd_complete(argc - 1, argv + 1);
    const struct tl_command *command = tl_command_find(argv[1]);
    if (!command) {
        fprintf(stderr, "tracelake: unknown command '%s'; see 'tracelake --help'\n", argv[1]);
        return TL_CLI_USAGE;
    }
    if (tl_cpu_unknown() != NULL)
        return no_such_level(tl_cpu_unknown());
    int status = command->run(argc - 1, argv + 1);
    /* Failing to write output is an error, even if it is detected late. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (status == TL_CLI_DONE) {
            perror("tracelake: standard output");
            status = TL_CLI_BAD;
        }
    }
    return status;
}
