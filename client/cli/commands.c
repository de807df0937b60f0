/* SPDX-License-Identifier: MIT */
/*
 * The table of commands: what each is called with and what it is for. Its options are described
 * where they are parsed, so that neither can lack one.
 */
#include "cli/commands.h"

#include "cli/cli.h"

#include <string.h>

static const struct tl_command commands[] = {
#if defined TL_HAVE_VIEW && defined TL_HAVE_SERVE && defined TL_HAVE_PUSH
    {"view", tl_cmd_view, "show captures in the browser",
     "[options] FILE…\n"
     "[options] --keep DIR [FILE…]",
     "FILE is a capture (raw trace, perf.data, STF), the folder of a snapshot, a program (ELF) or "
     "a configuration (FILE.ini); what each is, is seen by its contents. A server of its own is "
     "started, the captures are decoded, and the browser is opened at the place most worth looking "
     "at: a fault with which the trace ends, else the call that took longest beyond what is usual. "
     "The address is printed. Ctrl-C ends all."},
#endif
#ifdef TL_HAVE_SERVE
    {"serve", tl_cmd_serve, "run the server",
     "--data DIR [options]\n"
     "--config FILE [--check-config]",
     "SIGHUP reloads the configuration, tokens and certificates: options marked with * take effect "
     "then, the others at the next start. SIGTERM and SIGINT stop the server cleanly."},
#endif
#ifdef TL_HAVE_PUSH
    {"push", tl_cmd_push, "send a capture to a server",
     "[options] --format FMT INPUT|-\n"
     "[options] --snapshot DIR\n"
     "[options] perf.data\n"
     "[options] --config FILE    its [source] sections name the inputs",
     "Sends raw trace. An existing, incomplete trace is resumed where its durable bytes end, if "
     "the input begins with these; another capture under its name is refused with status 3. A pipe "
     "or a device continues to be read while the server is unreachable."},
#endif
#ifdef TL_HAVE_DECODE
    {"decode", tl_cmd_decode, "decode a capture without a server",
     "--format FMT [options] (--text | --packets | --out DIR) INPUT|-\n"
     "[options] (--text | --packets | --out DIR) perf.data\n"
     "--format di --like osd-sw-ctm|osd-sw-stm|osd-sw-print INPUT\n"
     "--format pt --like ptdump|ptxed [--cpu CPU] INPUT [-- OPTIONS]\n"
     "--snapshot DIR [--buffer NAME] (--text | --packets | --out DIR)",
     NULL},
#endif
#ifdef TL_HAVE_SETUP
    {"setup", tl_cmd_setup, "write the configuration of a capture, or check it",
     "[--from KIND] [INPUT] [-o FILE]\n"
     "(--sysfs DIR | --dt FILE | --snapshot DIR [--buffer NAME]) [-o FILE]\n"
     "--check (--config FILE | --sysfs DIR | --dt FILE) CAPTURE [-o FILE]\n"
     "--check (--snapshot DIR | perf.data) [-o FILE]",
     "Writes what 'decode --config' and 'push --config' need to know of the sources, from what a "
     "machine with Linux, its device tree, perf.data or a snapshot says of them. What is missing "
     "and therefore assumed is said on standard error."},
#endif
#ifdef TL_HAVE_LS
    {"ls", tl_cmd_ls, "list traces", "[--json] [--label KEY[=VALUE]]… [TRACE…]", NULL},
    {"show", tl_cmd_show, "show all details of a trace",
     "[--json] TRACE…\n--link NAME… [--insn N | --time T | --symbol F | …]",
     "--link prints the page's address of a trace, or TRACE/STREAM, for tickets and editors."},
    {"cp", tl_cmd_cp, "copy captures to another server", "TRACE… --to URL [--as NAME]",
     "Copies raw bytes, setup, images and labels; resumes where an earlier copy ended."},
    {"rm", tl_cmd_rm, "remove traces", "TRACE…", NULL},
    {"label", tl_cmd_label, "set or remove labels", "TRACE KEY=VALUE…",
     "An empty value removes the label."},
    {"materialise", tl_cmd_materialise, "store the shards of traces with virtual shards",
     "TRACE… [--no-wait]",
     "For a trace with virtual shards ('serve --shards', '--retain-stf') only index and tiles are "
     "stored, and its instructions are decoded from the raw bytes when they are read. This command "
     "decodes the trace again and stores the shards; meanwhile it is served as before."},
    {"seal", tl_cmd_seal, "end live captures whose rig is gone", "TRACE…",
     "Completes the capture with the bytes received so far; it can then no longer be resumed. A "
     "capture that is being pushed ends with its push. 'serve --seal-after 1h' seals "
     "automatically."},
    {"redecode", tl_cmd_redecode, "decode the raw bytes again",
     "TRACE… [--config FILE | --back] [--image FILE[@ADDR]]…",
     "The old decode is served until the new one is complete, and is kept if the new one finds "
     "nothing."},
    {"verify", tl_cmd_verify, "check every stored byte", "[--repair] (TRACE… | --all)",
     "Prints one line per problem; exit status 1 if there are any."},
#endif
#ifdef TL_HAVE_IMAGES
    {"images", tl_cmd_images, "upload, list and remove program images",
     "[--source DIR] [FILE…]\n"
     "rm [--force] IMAGE…",
     "Uploads the files, each content only once, then lists all images. A setup refers to them by "
     "sha256:… or build-id:…, even before they are uploaded.\n'rm' removes images, named by "
     "sha256:… or its beginning, by build-id:…, or by the name in the list, if only one has it; "
     "see also 'retain --images', which removes those that no trace refers to."},
#endif
#ifdef TL_HAVE_RETAIN
    {"retain", tl_cmd_retain, "set how long raw and decoded data are kept",
     "(without options: show the rules)\n"
     "[--label KEY=VALUE | --trace ID] [--raw LIMIT] [--decoded LIMIT]\n"
     "[--label KEY=VALUE | --trace ID] --remove\n"
     "[--images LIMIT]\n"
     "--dry-run [the rule to be tried]",
     "LIMIT is an age since the last change (s m h d w), a total size of all traces under the rule "
     "(K M G T), or both: 30d,200G; or none. The most specific rule applies to a trace. Traces "
     "being pushed or decoded, and those with a label keep, are never touched. At most a quarter "
     "of all traces (or eight) is removed because of age in a day."},
#endif
#ifdef TL_HAVE_GET
    {"get", tl_cmd_get, "fetch a range of a stream",
     "TRACE[/STREAM] [range] (-o F.zstf | -o F.stf | --format FORM)",
     "Without STREAM: all streams, one after another (except in the formats for simulators)."},
#endif
#ifdef TL_HAVE_RAW
    {"raw", tl_cmd_raw, "get the rig's bytes back, exactly as sent",
     "TRACE [--byte A:B] (-o FILE | -) [--config FILE [--images DIR]]", NULL},
#endif
#ifdef TL_HAVE_FIND
    {"find", tl_cmd_find, "find instructions, symbols, events",
     "TRACE/STREAM (TEXT | --pc ADDR[:ADDR] | --symbol S | --event KIND | …)\n"
     "TRACE --all (TEXT | …)      in all streams, by time",
     "TEXT is a function (finds calls; part of its name is enough), function+0xOFFSET, an address "
     "or range, an event, a mnemonic; or with its kind: call:…, pc:…, event:…, op:…, opcode:…, "
     "process:… (where a process of this name starts running), data:VAR, written:VAR (as --data "
     "and --written), text:WORD (as --text). Exit status 1 if nothing is "
     "found."},
#endif
#ifdef TL_HAVE_LOG
    {"log", tl_cmd_log, "what programs printed, line by line",
     "TRACE[/STREAM] [--insn A:B | --time A:B] [--port N] [--csv | --json] [-o FILE]",
     "Output of programs by software trace, and events of hardware: TIME SOURCE CHANNEL TEXT. "
     "Without STREAM: all streams of software trace, one after another."},
#endif
#ifdef TL_HAVE_STATS
    {"stats", tl_cmd_stats, "instruction mix, hottest functions, events",
     "TRACE/STREAM [--insn A:B | --time A:B] [--tree | --callers] [--json]", NULL},
#ifdef TL_HAVE_PROFILE
    {"profile", tl_cmd_profile, "execution counts, for compilers and profile viewers",
     "TRACE[/STREAM]… [--as FORM] [--insn A:B | --time A:B] [-o FILE]",
     "Several traces are added up. Without STREAM: all streams."},
#endif
    {"sql", tl_cmd_sql, "any question, in SQL", "TRACE 'SELECT …' [--csv | --json]",
     "SQLite's SELECT over the tables trace, stream, function, insn, call, event, gap, log and "
     "note of a trace: docs/sql.md. 'SELECT function, insns FROM call ORDER BY insns DESC LIMIT "
     "10' tells the longest calls."},
    {"mcp", tl_cmd_mcp, "answer an assistant's questions (MCP)", "[--server URL]",
     "Speaks the Model Context Protocol on standard input and output: a program that has an "
     "assistant starts it, with `tracelake mcp` as the command of a server. Tools: traces, schema, "
     "sql, disassembly, source: docs/mcp.md. Nothing can be changed by them."},
#ifdef TL_HAVE_COVERAGE
    {"coverage", tl_cmd_coverage, "which parts of the program were executed",
     "TRACE[/STREAM]… [--as text|lcov|json] [--insn A:B | --time A:B] [--context N[,N…]] [-o FILE]",
     "Functions, instructions, branches both ways and, where the images have debug information, "
     "source lines. Without STREAM: all streams together. Several traces are added up."},
#endif
    {"diff", tl_cmd_diff, "where two runs diverge, and differences by function",
     "TRACE/STREAM[@A:B] TRACE/STREAM[@A:B] [--calls] [--weight WHAT] [--limit N] [--json]",
     "Instructions match if they are at the same offset in a function of the same name, or, "
     "without symbols, at the same address. A:B are instructions, or times with units: 1.5ms:2ms. "
     "--weight time, or cycles, lists the functions whose own time differs most."},
    {"functions", tl_cmd_functions, "functions by their time",
     "TRACE/STREAM [--insn A:B | --time A:B] [--weight time|insns] [--limit N] [--json]",
     "Own time, time with callees, number of calls, and the shortest, median and longest of those "
     "that ended. Times between two timestamps are estimates; where they are uncertain by more "
     "than a tenth, their bounds are printed. Durations are in ns, or ticks where the clock is not "
     "known."},
    {"calls", tl_cmd_calls, "calls of a function, the slowest first",
     "TRACE/STREAM FUNCTION [--insn A:B | --time A:B] [--order ORDER] [--least T] [--most T]",
     "FUNCTION is a name, else part of it, or a pattern (*, ?). Calls that ended in the range, and "
     "those that go on after it; of each its duration with bounds, its own time, and how long "
     "exceptions interrupted it."},
    {"interrupts", tl_cmd_interrupts, "exceptions and interrupts by number",
     "TRACE/STREAM [--insn A:B | --time A:B] [--json]",
     "How often each was entered and how long it took; its latency, counted from the last return "
     "to code that is no handler; its period from entry to entry, and the standard deviation of "
     "that, its jitter."},
    {"gaps", tl_cmd_gaps, "the longest stretches without trace",
     "TRACE/STREAM [--insn A:B | --time A:B] [--limit N] [--json]",
     "Where trace is missing or was switched off, between which times, and why."},
    {"call", tl_cmd_call, "details of a call",
     "TRACE/STREAM (--insn N | --time T) [--depth N] [--json]",
     "The call active at an instruction, or a time such as 1.5ms: its duration, its caller, its "
     "number among the calls of "
     "the function, and their durations."},
#endif
#ifdef TL_HAVE_TAIL
    {"tail", tl_cmd_tail, "follow a live stream",
     "TRACE[/STREAM] [--from N] [--disasm] [--lines | --json]",
     "Resumes where it was after the server was unreachable."},
#endif
#ifdef TL_HAVE_STORE
    {"store", tl_cmd_store, "copy traces between stores", "copy FROM TO [TRACE…]",
     "FROM and TO are data folders or rados:POOL… as for 'serve --store'. A server may use FROM "
     "meanwhile, and TO if it is a cluster. All sealed traces, or those named, are copied with "
     "everything stored about them; each is read back and compared. Existing copies are left "
     "alone: run it again to continue, and to copy newer traces. Exit status 1 if something could "
     "not be copied (yet)."},
#endif
#ifdef TL_HAVE_TOKEN
    {"token", tl_cmd_token, "add, list and revoke access tokens",
     "add --tokens FILE --role ROLE [options]\n"
     "list --tokens FILE [--json]\n"
     "revoke --tokens FILE NAME|ID…",
     "Changes the file that 'serve --tokens' reads, on the server's machine. 'add' prints the "
     "token only once: the file contains its digest. The server reloads it on SIGHUP (systemctl "
     "reload)."},
#endif
#ifdef TL_HAVE_DUMP
    {"dump", tl_cmd_dump, "STF records as text",
     "FILE|- [--from N --to M] [--format FORM] [-o FILE]",
     "FILE is STF, plain or as .zstf, gzip, xz or zstd; recognised by content, not by name."},
#endif
#ifdef TL_HAVE_CHECK
    {"check", tl_cmd_check, "check STF files against the specification", "[--limit N] FILE…",
     "Prints each violation with its offset. Exit status 1 if there are errors."},
#endif
#ifdef TL_HAVE_SLICE
    {"slice", tl_cmd_slice, "cut a range out of an STF file", "FILE [range] -o OUT.stf|OUT.zstf",
     NULL},
#endif
#ifdef TL_HAVE_SIMPOINTS
    {"simpoints", tl_cmd_simpoints, "regions that represent a whole execution",
     "TRACE/STREAM|FILE [options]", NULL},
#endif
    {"completion", tl_cmd_completion, "print a completion script for a shell", "bash|zsh|fish",
     "Prints a script that completes commands, options, formats, and names of traces and streams "
     "on the server, by calling this program. To enable it in every shell:\n  bash: tracelake "
     "completion bash >~/.local/share/bash-completion/completions/tracelake\n  zsh: tracelake "
     "completion zsh >DIR/_tracelake, with DIR in $fpath\n  fish: tracelake completion fish "
     ">~/.config/fish/completions/tracelake.fish"},
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

void tl_command_options(const struct tl_command *command,
                        void (*reader)(void *context, const struct tl_option *options),
                        void *context)
{
    char *argv[] = {(char *)(uintptr_t)command->name, NULL};
    tl_args_watch(reader, context);
    (void)command->run(1, argv);
}
