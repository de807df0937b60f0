/* SPDX-License-Identifier: MIT */
/* The `tracelake` executable: finds the command, prints help. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/plain.h"
#include "cli/progress.h"
#include "simd/cpu.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTION                                                                                 \
    "\nserver:\n"                                                                                  \
    "  --server URL        http://HOST:PORT or https://HOST:PORT (default: $TRACELAKE_SERVER, "    \
    "or\n"                                                                                         \
    "                      http://127.0.0.1:7070); URL,URL,…: several servers of one lake, of\n" \
    "                      which the next is asked where one goes away\n"                          \
    "  --token FILE        file with the access token (default: $TRACELAKE_TOKEN)\n"               \
    "  --cafile FILE       certificates to trust with https (default: $TRACELAKE_CAFILE)\n"        \
    "  --fingerprint HEX   SHA-256 of the server's certificate, instead of --cafile (default:\n"   \
    "                      $TRACELAKE_FINGERPRINT); HEX,HEX,…: one of these\n"                   \
    "  --cert FILE         certificate by which the server knows us (default: $TRACELAKE_CERT)\n"  \
    "  --key FILE          its key (default: $TRACELAKE_KEY, or in the same file)\n"               \
    "  --insecure          accept any certificate\n"                                               \
    "  --timeout SECONDS   give up after so long without progress (default 60)\n"

#define RANGE                                                                                      \
    "  --insn A:B          instructions A to B-1 (A: to the end, :B from the start)\n"             \
    "  --time A:B          the same by time (ns, or ticks where the clock is not known)\n"         \
    "  --byte A:B          the same by raw byte offset\n"

#define FORMATS                                                                                    \
    "  --format FMT        tpiu[,sync=none|fsync|hsync] etm4 ete itm stm [,id=0x10] di pt stf "    \
    "perf\n"                                                                                       \
    "  --config F          what a decoder must know of the source (INI)\n"                         \
    "  --image FILE[@ADDR][,space=EL1N][,context=ID][,vmid=ID][,offset=N][,length=N]\n"            \
    "        [,from=TICKS][,until=TICKS]\n"                                                        \
    "                      program image; may be given more than once\n"                           \
    "  --symfs DIR         perf: where the files of the traced machine lie (default: here)\n"      \
    "  --buildid-dir DIR   perf: where perf keeps files by build ID (default: ~/.debug)\n"         \
    "  --vmlinux FILE      perf: the kernel's ELF file\n"                                          \
    "  --kcore FILE        perf: a copy of /proc/kcore, or the folder that has it\n"

static const struct tl_command commands[] = {
#ifdef TL_HAVE_SERVE
    {"serve", tl_cmd_serve, "run the server",
     "usage: tracelake serve --data DIR [options]\n"
     "       tracelake serve --config FILE [--check-config]\n"
     "SIGHUP makes it read the files of configuration, tokens and certificates again; what is "
     "marked\n"
     "with * changes then, the rest with the next start. SIGTERM and SIGINT end it cleanly.\n"
     "  --data DIR             where everything is kept\n"
     "  --config FILE          options as lines \"name = value\", without the dashes; # and ; "
     "begin\n"
     "                         comments. The command line wins; what may be repeated adds up\n"
     "  --check-config         say whether all of it could be used, and end: 0 yes, 1 or 2 no\n"
     "\nlistening:\n"
     "  --listen ADDR:PORT     plain HTTP/1.1 and HTTP/2 (default 127.0.0.1:7070); may be "
     "repeated\n"
     "  --listen-tls ADDR:PORT the same with TLS (default 127.0.0.1:7443); may be repeated\n"
     "  --tls-cert FILE        * certificate, PEM, with its chain (default: a self-signed one is "
     "made in\n"
     "                         the data folder)\n"
     "  --tls-key FILE         * its key, PEM\n"
     "  --tokens FILE          * who may do what, see 'token'; none: everyone may do everything\n"
     "  --tls-client-ca FILE   * certificates, PEM, by which clients' own are known; who has one "
     "needs\n"
     "                         no token where the file of tokens has its name\n"
     "  --insecure             listen beyond this machine without TLS or tokens, answer to any "
     "name\n"
     "\ntrace that does not come by push:\n"
     "  --raw ADDR:PORT,format=FMT,rig=NAME[,config=F][,shards=stored|virtual]\n"
     "                         take raw trace bytes by TCP; may be repeated\n"
     "  --source tcp://HOST:PORT,format=FMT,rig=NAME[,config=F][,shards=…]\n"
     "                         fetch raw trace bytes by TCP; may be repeated\n"
     "  --osd-host-controller ADDR[:PORT][,rig=NAME][,config=F][,start=KINDS][,reset=yes]\n"
     "                         be the host controller of Open SoC Debug devices\n"
     "  --seal-after AGE       * complete captures that nobody has pushed for so long, e.g. 1h (s "
     "m h "
     "d w;\n"
     "                         default: none, they can be resumed for ever)\n"
     "\nstorage:\n"
     "  --retain-raw LIMIT     * remove raw bytes by age and size, e.g. 30d,200G (see 'retain')\n"
     "  --retain-decoded LIMIT * the same for what was decoded of them\n"
     "  --retain-stf AGE       * shards of traces that have not changed for so long become "
     "virtual, "
     "e.g. 7d\n"
     "  --min-free SIZE        * take no more trace below so much free space (default 256M)\n"
     "  --rebuild-catalog      set a damaged catalog aside, make it anew out of the stored "
     "objects\n"
     "  --store URL            keep everything in a Ceph cluster, not in the data folder:\n"
     "                         rados:POOL[?conf=FILE&id=NAME&namespace=NS&lease=SECONDS]\n"
     "  --shard-insns N        instructions of a shard (default 1M)\n"
     "  --shards KIND          of new traces: stored (default), or virtual: index and tiles are "
     "stored,\n"
     "                         instructions made from the raw bytes when they are read\n"
     "  --threads N            threads that decode (default: one a processor)\n"
     "\nlog, on standard error:\n"
     "  --log-format FORMAT    text or json (default text)\n"
     "  --log-level LEVEL      error, warning, info or debug (default info)\n"
     "\nlimits:\n"
     "  --max-connections N    * in all (default 4096)\n"
     "  --max-per-address N    * of one address or IPv6 /64 (default: a quarter of all)\n"
     "  --max-http1 N          * of HTTP/1.1, half of them of one address (default 512)\n"
     "  --max-streaming N      * long calls of readers at a time, and as many pushes (default "
     "512)\n"
     "  --max-message SIZE     * of a received message (default 4M)\n"
     "  --max-inbound SIZE     * memory for received messages (default 1G)\n"},
#endif
#ifdef TL_HAVE_PUSH
    {"push", tl_cmd_push, "send a capture to a server",
     "usage: tracelake push [options] --format FMT INPUT|-\n"
     "       tracelake push [options] --snapshot DIR\n"
     "       tracelake push [options] perf.data\n"
     "       tracelake push --config F          [source] sections name their files\n"
     "Sends raw trace. A trace that exists and is incomplete is gone on with where its durable\n"
     "bytes end. A pipe or a device is read on while the server is away.\n" FORMATS
     "  --snapshot DIR      every buffer of an Arm trace snapshot as a trace of its own\n"
     "  --buffer NAME       of a snapshot, only this one\n"
     "  --rig NAME          who sends (default: the host's name)\n"
     "  --trace ID          id of the trace (default: the server makes one)\n"
     "  --shards KIND       stored or virtual (see 'serve'), of a new trace; default: as the "
     "server "
     "does\n"
     "  --no-resume         fail where the trace exists\n"
     "  --rate BYTES        at most so many bytes a second (K, M, G)\n"
     "  --chunk BYTES       bytes per message (default 256K)\n"
     "  --retry SECONDS     how long to try to go on when the connection breaks or the server's "
     "disk is\n"
     "                      full (default: for ever; 0: not at all)\n"
     "  --spool DIR,SIZE    keep what a pipe or device gave in DIR, at most SIZE (1G), until the "
     "server\n"
     "                      has it: push begins without a server, and run again after its end, "
     "however\n"
     "                      that came, goes on exactly\n"
     "  --memory SIZE       without --spool: keep at most so much of it (default 32M)\n"
     "  --goes-on           run again, INPUT is not the capture from its first byte on, but what "
     "follows\n"
     "                      the last byte that was read before (a FIFO, a device)\n"
     "  --no-wait           return when the bytes are durable, do not wait for the decode\n"
     "  --json              what became of it as JSON: the trace as 'ls --json' has it, a line "
     "each\n"
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
     "  --text              flow text: executed instructions and events, one a line\n"
     "  --disasm            … each instruction with its assembly text and function\n"
     "  --symbols ELF[@BIAS]   … functions by this file's symbols (default: by the images')\n"
     "  --source            … and its source line, by the debug information of the same files\n"
     "  --packets           trace packets, one a line; with --text what came of each below it, as\n"
     "                      '  STREAM ELEMENT', all streams in the order of the capture\n"
     "  --raw-bytes         packets: … each with its bytes behind it, the first 32 of longer ones\n"
     "  --stream NAME       only this stream (cs.10, di.0.1, pt.0, …); may be given more than "
     "once\n"
     "  --out DIR           a .zstf per stream, DIR/STREAM.zstf; of a snapshot with several "
     "buffers\n"
     "                      DIR/BUFFER.STREAM.zstf\n"
     "  --json              elements, packets or the files of --out as JSON, an object a line\n"
     "  --threads N         that decode at the same time (default: one a processor, up to 4)\n"
     "  --chunk BYTES       handed to the decoder at a time (default 4194304); what comes out is "
     "the\n"
     "                      same\n"
     "  --like TOOL         print as this tool does; ptdump and ptxed take the OPTIONS that they "
     "have\n"
     "  --cpu CPU           the traced processor, FAMILY/MODEL[/STEPPING], with --like "
     "ptdump|ptxed\n"},
#endif
#ifdef TL_HAVE_LS
    {"ls", tl_cmd_ls, "list traces",
     "usage: tracelake ls [--json] [--label KEY[=VALUE]]… [TRACE…]\n"
     "  --label KEY[=VALUE] only traces with this label; all of several\n" CONNECTION},
    {"show", tl_cmd_show, "show all about a trace",
     "usage: tracelake show [--json] TRACE…\n" CONNECTION},
    {"cp", tl_cmd_cp, "copy captures to another server",
     "usage: tracelake cp TRACE… --to URL [--as NAME]\n"
     "Raw bytes, setup, images and labels; goes on where an earlier copy ended.\n"
     "  --to URL            the server that gets it\n"
     "  --to-token F, --to-cafile F, --to-fingerprint HEX   as below, of that server\n"
     "  --as NAME           the trace's name there\n"
     "  --json              the trace that is there now as 'ls --json' has it, a line "
     "each\n" CONNECTION},
    {"rm", tl_cmd_rm, "remove traces",
     "usage: tracelake rm TRACE…\n"
     "  --json              what was removed as JSON, {\"id\":…}, a line each\n" CONNECTION},
    {"label", tl_cmd_label, "set or remove labels",
     "usage: tracelake label TRACE KEY=VALUE…\nAn empty value removes the label.\n"
     "  --json              print the trace as 'ls --json' has it\n" CONNECTION},
    {"materialise", tl_cmd_materialise, "store the shards of traces whose shards are virtual",
     "usage: tracelake materialise TRACE… [--no-wait]\n"
     "Of a trace with virtual shards ('serve --shards', '--retain-stf') index and tiles are "
     "stored, and "
     "its\n"
     "instructions made from the raw bytes when they are read. This decodes them again and stores "
     "all; "
     "until\nthen what is there is served.\n"
     "  --no-wait           do not wait until that is done\n"
     "  --json              the trace as 'ls --json' has it, a line each\n" CONNECTION},
    {"seal", tl_cmd_seal, "end live captures whose rig is gone",
     "usage: tracelake seal TRACE…\n"
     "The capture is complete with the bytes that are there; it cannot be resumed any more. One "
     "that "
     "is\n"
     "being pushed ends with its push. 'serve --seal-after 1h' does it by itself.\n"
     "  --json              the trace as 'ls --json' has it, a line each\n" CONNECTION},
    {"redecode", tl_cmd_redecode, "decode the raw bytes again",
     "usage: tracelake redecode TRACE… [--config F | --back] [--image FILE[@ADDR]]…\n"
     "  --config F          decode with this setup instead of the present one\n"
     "  --image FILE[@ADDR] add a program image to the setup\n"
     "  --back              decode with the setup before the present one\n"
     "  --no-wait           do not wait for the end\n"
     "  --json              the trace as 'ls --json' has it, a line each\n"
     "What is served stays until the new decode is whole, and for good if that tells "
     "nothing.\n" CONNECTION},
    {"verify", tl_cmd_verify, "check every stored byte",
     "usage: tracelake verify [--repair] (TRACE… | --all)\n"
     "Prints a line per finding; exit status 1 if there are any.\n"
     "  --all               all traces, all images, and the catalog\n"
     "  --repair            rebuild what follows from something intact, say what is lost\n"
     "  --json              a JSON object for each trace, a line each\n" CONNECTION},
#endif
#ifdef TL_HAVE_IMAGES
    {"images", tl_cmd_images, "upload and list program images",
     "usage: tracelake images [--source DIR] [FILE…]\n"
     "Uploads the files, each once by its content, then lists all images. A setup names them by\n"
     "sha256:… or build-id:…, also before they are there.\n"
     "  --source DIR        upload the source files below DIR, too, for the timeline: C, C++, "
     "assembly,\n"
     "                      Rust and the like, of at most 4 MiB each. They are those of the FILEs; "
     "without\n"
     "                      any, of all images that have none of their own\n"
     "  --json              the list as JSON\n" CONNECTION},
#endif
#ifdef TL_HAVE_RETAIN
    {"retain", tl_cmd_retain, "say how long raw and decoded data are kept",
     "usage: tracelake retain                           show the rules\n"
     "       tracelake retain [--label KEY=VALUE | --trace ID] [--raw LIMIT] [--decoded LIMIT]\n"
     "       tracelake retain [--label KEY=VALUE | --trace ID] --remove\n"
     "LIMIT is an age since the last change (s m h d w), a size of all traces of the rule "
     "together\n"
     "(K M G T), or both: 30d,200G; or none. The most special rule counts for a trace. Traces "
     "that\n"
     "are pushed or decoded, and those with a label keep, are left alone.\n"
     "  --json              the rules as JSON; limits that are 0 are none\n" CONNECTION},
#endif
#ifdef TL_HAVE_GET
    {"get", tl_cmd_get, "fetch a range of a stream",
     "usage: tracelake get TRACE[/STREAM] [range] (-o F.zstf | -o F.stf | --format FORM)\n"
     "Without STREAM: all streams, one after another, but in the forms for simulators.\n" RANGE
     "  -o FILE             write STF, compressed where the name ends in .zstf; - is stdout\n"
     "  --format FORM       text (flow text), lines (what programs print by software trace: TIME "
     "SOURCE\n"
     "                      CHANNEL TEXT), json (a document for each stream), ndjson (an object a\n"
     "                      line), champsim (64 bytes an instruction), bb (basic-block vectors of\n"
     "                      --interval N instructions), pc (an address a line) or disasm (number,\n"
     "                      address, encoding, assembly)\n"
     "  --text, --lines, --json   the same as --format text …\n"
     "  --disasm            text: each instruction with its assembly text behind it\n"
     "  --symbols ELF[@BIAS]   text, disasm: … and its function, by this file's symbols\n"
     "  --source            … and its source line, by the same file's debug information\n"
     "a range by what happens in it, within --insn:\n"
     "  --from-symbol F | --from-pc ADDR | --from-event KIND   where it begins: a call of F,\n"
     "                      a function; an address (hexadecimal); an event …\n"
     "  --occurrence N      … the N-th time (default 1)\n"
     "  --to-symbol F | --to-pc ADDR | --to-event KIND   where it ends, the next time\n"
     "  --count N           instructions\n"
     "  --warm-up N         instructions in front of it that come along\n"
     "  --region NAME       a region that 'simpoints --save' gave a name\n" CONNECTION},
#endif
#ifdef TL_HAVE_RAW
    {"raw", tl_cmd_raw, "get back what the rig sent, byte for byte",
     "usage: tracelake raw TRACE [--byte A:B] (-o FILE | -) [--config FILE [--images DIR]]\n"
     "  --byte A:B          bytes A to B-1 (A: to the end, :B from the start)\n"
     "  -o FILE             where to; - is stdout, if that is no terminal\n"
     "  --config FILE       write the trace's setup, too, as push --config takes it\n"
     "  --images DIR        … and its program images, named in it: decode needs no server "
     "then\n"
     "  --json              tell which files were written, and how much, as JSON\n" CONNECTION},
#endif
#ifdef TL_HAVE_FIND
    {"find", tl_cmd_find, "find instructions, symbols, events",
     "usage: tracelake find TRACE/STREAM (TEXT | --pc ADDR[:ADDR] | --symbol S | --event KIND | "
     "…)\n"
     "       tracelake find TRACE --all (TEXT | …)      in all streams, by time\n"
     "TEXT is a function (calls; a part of its name will do), function+0xOFFSET, an address or\n"
     "range, an event, a mnemonic; or says which: call:…, pc:…, event:…, op:…, opcode:…,\n"
     "process:… (where one of this name begins to run)\n"
     "  --pc ADDR[:ADDR]    executions of an address (hexadecimal), or of a range (end excluded)\n"
     "  --symbol S          where the flow enters a function, also by a return\n"
     "  --call NAME         calls of a function: its name, or a part or pattern (*, ?) of names\n"
     "  --event KIND        exception, gap, event (hardware), software, mode, context, return,\n"
     "                      trace-on, note; or gaps for one reason: overflow, sync, bad-packet,\n"
     "                      no-image, no-path, discard, off, transport. Several with commas\n"
     "  --mnemonic M        instructions (*, ?); with a space: a part of the assembly text\n"
     "  --opcode DIGITS     instructions by encoding, as in flow text, x for any digit\n"
     "  --insn A:B          search only there\n"
     "  --after PLACE       only behind instruction PLACE (with --all: STREAM:INSN), …; PLACE+N:\n"
     "                      behind the first N hits there\n"
     "  --before PLACE      … or in front of it, the nearest first\n"
     "  --count             count all, too\n"
     "  --limit N           most hits printed (default 100, 0: as many as the server gives)\n"
     "  --json              as JSON\n" CONNECTION},
#endif
#ifdef TL_HAVE_STATS
    {"stats", tl_cmd_stats, "instruction mix, hottest functions, events",
     "usage: tracelake stats TRACE/STREAM [--insn A:B] [--tree | --callers] [--json]\n"
     "  --tree              instead: who called whom, and how many instructions that took\n"
     "  --callers           the same from below: under each function those that called "
     "it\n" CONNECTION},
#ifdef TL_HAVE_PROFILE
    {"profile", tl_cmd_profile, "how often code was run, for compilers and profile viewers",
     "usage: tracelake profile TRACE[/STREAM]… [--as FORM] [--insn A:B | --time A:B] [-o FILE]\n"
     "  --as FORM           autofdo, llvm-profgen, bolt: counts of code\n"
     "                      perf-branches: taken branches in their order, for llvm-profgen\n"
     "                      folded (default), speedscope, pprof, json: call stacks\n"
     "  --image FILE        only this program's or library's code, at its own addresses (autofdo,\n"
     "                      llvm-profgen, bolt): a file here, or sha256:…, build-id:…, a name\n"
     "  --context N[,N…]    only what ran with these context IDs (the same)\n"
     "  --bias ADDR         instead of --image: taken off addresses\n"
     "  --size N            of the program in memory: other code is left out\n"
     "  --build-id HEX      of the program, for autofdo\n"
     "  --json              call stacks as the server has them, an object for each trace\n"
     "Several traces count together. Without STREAM: all streams.\n" CONNECTION},
#endif
#ifdef TL_HAVE_COVERAGE
    {"coverage", tl_cmd_coverage, "what of the program was executed",
     "usage: tracelake coverage TRACE[/STREAM]… [--as text|lcov|json] [--insn A:B | --time A:B]\n"
     "                          [--context N[,N…]] [-o FILE]\n"
     "Functions, instructions, branches both ways and, where the images have debug information,\n"
     "source lines. Without STREAM: all streams together. Several traces count together.\n"
     "  --context N[,N…]    only what ran with these context IDs\n"
     "  --json              the same as --as json\n" CONNECTION},
#endif
    {"diff", tl_cmd_diff, "where two runs part, and what differs by function",
     "usage: tracelake diff TRACE/STREAM[@A:B] TRACE/STREAM[@A:B] [--calls] [--limit N] [--json]\n"
     "Instructions are alike at the same place of a function of the same name, without symbols at\n"
     "the same address. A:B are instructions.\n"
     "  --calls             compare which functions were called, not each instruction\n"
     "  --limit N           most differences printed (default 100)\n"
     "  --exit-code         exit status 1 where they differ\n" CONNECTION},
    {"call", tl_cmd_call, "a call, taken apart",
     "usage: tracelake call TRACE/STREAM --insn N [--depth N] [--json]\n"
     "The call that is under way at an instruction: what it took, who called it, which of how "
     "many\n"
     "it is, and how long they take.\n"
     "  --depth N           0 is the outermost one (default: the innermost)\n" CONNECTION},
#endif
#ifdef TL_HAVE_TAIL
    {"tail", tl_cmd_tail, "follow a live stream",
     "usage: tracelake tail TRACE[/STREAM] [--from N] [--disasm] [--lines | --json]\n"
     "  --from N            begin at instruction N (default: at what is there now)\n"
     "Goes on where it was when the server was away.\n"
     "  --disasm            each instruction with its assembly text behind it\n"
     "  --symbols ELF[@BIAS]   … and its function, by this file's symbols\n"
     "  --source            … and its source line, by the same file's debug information\n"
     "  --lines             what programs print by software trace, a line each: TIME SOURCE "
     "CHANNEL "
     "TEXT\n"
     "  --json              JSON documents instead of flow text\n" CONNECTION},
#endif
#ifdef TL_HAVE_STORE
    {"store", tl_cmd_store, "copy traces between stores",
     "usage: tracelake store copy FROM TO [TRACE…]\n"
     "FROM and TO are data folders or rados:POOL… as of 'serve --store'. A server may work with "
     "FROM\n"
     "meanwhile, and with a cluster TO. All traces, or these, are copied with everything that is "
     "kept\n"
     "of them once they are sealed; each is read back and compared. What is there already is left "
     "as it "
     "is, so\n"
     "run it again to go on, and again to copy what has come since. Exit status 1 if something "
     "could\n"
     "not be copied (yet).\n"
     "  -q, --quiet         print failures alone\n"
     "  --json              an object for each trace, a line each: its id, outcome (copied, "
     "there,\n"
     "                      busy, other, damaged, missing) and bytes\n"},
#endif
#ifdef TL_HAVE_TOKEN
    {"token", tl_cmd_token, "add, list and revoke access tokens",
     "usage: tracelake token add --tokens FILE --role ROLE [options]\n"
     "       tracelake token list --tokens FILE [--json]\n"
     "       tracelake token revoke --tokens FILE NAME|ID…\n"
     "Changes the file that 'serve --tokens' reads, on the server's machine. 'add' prints the "
     "token,\n"
     "once: the file has its digest alone. A server takes the change with SIGHUP "
     "(systemctl reload).\n"
     "  --tokens FILE       the file (default: $TRACELAKE_TOKENS); 'add' makes it\n"
     "  --role ROLE         read; push: and bring traces in; admin: and change and remove\n"
     "  --name NAME         what people call it\n"
     "  --expires WHEN      2027-01-31, or so long from now: 90d, 12h (default: never)\n"
     "  --rig GLOB          only traces of such rigs; may be repeated\n"
     "  --label KEY=VALUE   only traces with this label; may be repeated\n"
     "  --cert NAME         no token: for who shows a certificate with this name (see 'serve\n"
     "                      --tls-client-ca')\n"
     "  --json              list, and what 'add' made, as JSON\n"},
#endif
#ifdef TL_HAVE_DUMP
    {"dump", tl_cmd_dump, "STF records as text",
     "usage: tracelake dump FILE|- [--from N --to M] [--format FORM] [-o OUT]\n"
     "FILE is STF, plain or as .zstf, gzip, xz or zstd; its content decides, not its name.\n"
     "  --from N --to M     records N to M-1 (default: all)\n"
     "  --format FORM       instructions instead: champsim (64 bytes each), bb (basic-block "
     "vectors\n"
     "                      of --interval N instructions), pc (an address a line) or disasm\n"
     "  --disasm            the same as --format disasm: number, address, encoding, text\n"
     "  --symbols ELF[@BIAS]   … and the function, by this file's symbols; as --image\n"
     "  -o OUT              write to this file\n"
     "  --json              records as JSON, an object a line\n"},
#endif
#ifdef TL_HAVE_CHECK
    {"check", tl_cmd_check, "check STF files against the specification",
     "usage: tracelake check [--limit N] FILE…\n"
     "Prints each violation with its offset. Exit status 1 where there is an error.\n"
     "  --limit N           print so many of each rule (default 100, 0: all)\n"
     "  --summary           print the first of each rule, and how many there are\n"
     "  --json              an object for each file, a line each: findings (offset, record, "
     "severity,\n"
     "                      rule, text), how many there are by rule, totals\n"},
#endif
#ifdef TL_HAVE_SLICE
    {"slice", tl_cmd_slice, "cut a range out of an STF file",
     "usage: tracelake slice FILE [range] -o OUT.stf|OUT.zstf\n"
     "  --insn A:B          instructions A to B-1, from 0 (A: to the end, :B from the start)\n"
     "a range by what is executed in it, within --insn:\n"
     "  --from-pc ADDR | --from-symbol F   where it begins: an address (hexadecimal), or where a\n"
     "                      function does\n"
     "  --occurrence N      … the N-th time (default 1)\n"
     "  --to-pc ADDR | --to-symbol F   where it ends, the next time\n"
     "  --count N           instructions\n"
     "  --warm-up N         instructions in front of it that come along\n"
     "  --symbols ELF[@BIAS]   the program that has the functions\n"
     "  -o FILE             compressed in chunks where the name ends in .zstf, else plain\n"
     "  --chunk N           instructions per chunk (default 100000)\n"
     "  --level N           zstd level, 1 to 19 (default 1)\n"
     "  --reserve-end       end a plain file with record 255, as STF 1.3 wants it\n"
     "  --json              tell what was written, as JSON\n"},
#endif
#ifdef TL_HAVE_SIMPOINTS
    {"simpoints", tl_cmd_simpoints, "regions that stand for all of an execution",
     "usage: tracelake simpoints TRACE/STREAM|FILE [options]\n"
     "  --interval N        instructions of a region, e.g. 10M (default 10M)\n"
     "  --max N             regions at most (default 30)\n"
     "  --warm-up N         instructions in front of each region that its file has, too\n"
     "  --insn A:B          look at instructions A to B-1 only\n"
     "  -o DIR              write each region as .zstf, the basic-block vectors, weights and\n"
     "                      regions.yaml, which tells what is where\n"
     "  --save NAME         keep the regions at the server as NAME.1, NAME.2 … for\n"
     "                      'tracelake get TRACE --region NAME.1'\n"
     "  --json              print them as JSON\n" CONNECTION},
#endif
    {"completion", tl_cmd_completion, "print what makes a shell complete commands",
     "usage: tracelake completion bash|zsh|fish\n"
     "Prints a script for the shell, which then asks this program for commands, options, formats, "
     "and\n"
     "names of traces and streams of the server. To have it in every shell:\n"
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

int tl_cli_usage(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "tracelake: %s: ", command);
    vfprintf(stderr, format, args);
    fprintf(stderr, "; see 'tracelake %s --help'\n", command);
    va_end(args);
    return TL_CLI_USAGE;
}

int tl_cli_empty_range(const char *command, uint64_t at)
{
    tl_cli_warn(command, "nothing is in the range %llu:%llu", (unsigned long long)at,
                (unsigned long long)at);
    return TL_CLI_BAD;
}

void tl_cli_warn(const char *where, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    const int n = vasprintf(&text, format, args);
    va_end(args);
    tl_progress_hide();
    fputs("tracelake: ", stderr);
    if (where) {
        tl_print_plain(stderr, where, 0);
        fputs(": ", stderr);
    }
    tl_print_plain(stderr, n < 0 ? "no memory" : text, 0);
    fputc('\n', stderr);
    if (n >= 0)
        free(text);
}

int tl_cli_fail(const char *where, const struct tl_fail *fail)
{
    const size_t n = where ? strlen(where) : 0;
    tl_progress_hide();
    fputs("tracelake: ", stderr);
    /* Messages about opening a file already contain its name. */
    if (where && (strncmp(fail->text, where, n) != 0 || fail->text[n] != ':')) {
        tl_print_plain(stderr, where, 0);
        fputs(": ", stderr);
    }
    if (fail->offset != TL_NO_OFFSET && fail->offset != 0)
        fprintf(stderr, "offset 0x%llx: ", (unsigned long long)fail->offset);
    tl_print_plain(stderr, fail->text[0] ? fail->text : tl_err_name(fail->code), 0);
    fputc('\n', stderr);
    switch (fail->code) {
    case TL_USAGE:
        return TL_CLI_USAGE;
    case TL_UNREACHABLE:
    case TL_DENIED:
        return TL_CLI_REFUSED;
    default:
        return TL_CLI_BAD;
    }
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
