/* SPDX-License-Identifier: MIT */
/* Input captures of `decode` and `push`. */
#ifndef TL_PUSH_CAPTURES_H
#define TL_PUSH_CAPTURES_H

#include "import/bundle.h"
#include "terminal/args.h"

/* The options that say what a capture is and where its code is; the latter fill a struct
 * tl_code_places. */
#define TL_CAPTURE_ARGS(format, config, images, places)                                            \
    {"format",                                                                                     \
     0,                                                                                            \
     TL_ARG_TEXT,                                                                                  \
     &(format),                                                                                    \
     "FMT",                                                                                        \
     "tpiu[,sync=none|fsync|hsync] etm4 ete etm3 ptm mtb itm[,portN=FORM] stm[,id=0x10] orbflow "  \
     "di pt stf perf; RISC-V: ntrace nexus-sifive[,core=NAME][,src_bits=N] etrace-encap "          \
     "etrace-smi "                                                                                 \
     "etrace-esp32; what a model executed: spike[,core=N] rtl drmemtrace[,thread=N]"},             \
        {"config",  0,      TL_ARG_TEXT,                                                           \
         &(config), "FILE", "configuration of the decoder: sources, registers (INI)"},             \
        {"image",                                                                                  \
         0,                                                                                        \
         TL_ARG_LIST,                                                                              \
         &(images),                                                                                \
         "FILE[@ADDR][,space=EL1N][,context=ID][,vmid=ID][,source=nt.N][,offset=N][,length=N][,"   \
         "from=TICKS][,until=TICKS]",                                                              \
         "program image; may be given more than once"},                                            \
        {"symfs",     0,                                                                           \
         TL_ARG_TEXT, &(places).symfs,                                                             \
         "DIR",       "perf: root of the traced machine's files (default: this machine's)"},       \
        {"buildid-dir",         0,     TL_ARG_TEXT,                                                \
         &(places).buildid_dir, "DIR", "perf: perf's build-ID cache (default: ~/.debug)"},         \
        {"vmlinux", 0, TL_ARG_TEXT, &(places).vmlinux, "FILE", "perf: the kernel's ELF file"},     \
        {"guestmount", 0,                                                                          \
         TL_ARG_TEXT,  &(places).guestmount,                                                       \
         "DIR",        "perf: roots of virtual machines, DIR/PID by their processes' numbers"},    \
        {"guestvmlinux",         0,      TL_ARG_TEXT,                                              \
         &(places).guestvmlinux, "FILE", "perf: the ELF file of virtual machines' kernel"},        \
        {"guestkallsyms",         0,      TL_ARG_TEXT,                                             \
         &(places).guestkallsyms, "FILE", "perf: a copy of virtual machines' /proc/kallsyms"},     \
        {"guestmodules",         0,      TL_ARG_TEXT,                                              \
         &(places).guestmodules, "FILE", "perf: a copy of virtual machines' /proc/modules"},       \
    {                                                                                              \
        "kcore", 0, TL_ARG_TEXT, &(places).kcore, "FILE",                                          \
            "perf: a copy of /proc/kcore, or the folder that contains it"                          \
    }

struct tl_cli_captures {
    const char *command;
    struct tl_bundle_request request; /* complete except for `warn`, which prints */
    const char *buffer;               /* of a snapshot: process only this buffer; NULL: all */
    int stop; /* stop after a capture with this exit status or a higher one */
};

/* Refuse a second INPUT: what it is says by which option it goes. Returns the status. */
int tl_cli_one_input(const char *command, const char *second);
/* Check the options that name inputs (NULL: absent) for fitting together. Returns TL_ARGS_GO, or
 * the exit status: an error was reported. */
int tl_cli_captures_check(const char *command, const char *snapshot, const char *buffer,
                          const char *config, const char *input);
/*
 * Read the named inputs and pass each capture to `each`; `alone`: it is the only one. Reports
 * errors; returns the highest exit status.
 */
int tl_cli_captures(const struct tl_cli_captures *what,
                    int (*each)(void *context, struct tl_bundle_capture *capture, bool alone),
                    void *context);

/* Raw bytes of a capture that are in files; 0: the size is not completely known. */
uint64_t tl_cli_capture_bytes(const struct tl_bundle_capture *capture);

#endif
