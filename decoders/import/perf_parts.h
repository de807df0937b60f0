/* SPDX-License-Identifier: MIT */
/*
 * Private to the import of perf.data.
 *
 *   perf.c          as a whole: sources, names of events
 *   perf_records.c  from records and features to what is known
 *   perf_memory.c   from what is known to the memory of processes: images
 *   perf_names.c    … to the names of processes and threads
 *   perf_made.c     code that is in no file: of compilers at run time, of BPF, of a kernel that
 *                   changes its own
 */
#ifndef TL_IMPORT_PERF_PARTS_H
#define TL_IMPORT_PERF_PARTS_H

#include "import/made_code.h"
#include "import/maps.h"
#include "import/perf.h"
#include "perf/info.h"
#include "perf/record.h"

#define TL_PERF_NO_FILE   SIZE_MAX       /* for `dso`: nothing that is in a file … */
#define TL_PERF_MADE      (SIZE_MAX - 1) /* … in the file of code that was made */
#define TL_PERF_MADE_NAME "[made code]"

/* What a file that is mapped is called, and whether it was found. */
struct tl_perf_dso {
    char *name;
    struct tl_build_id id;
    enum tl_code_kind kind;
    struct tl_code_file file;
    char debug[4096]; /* the file that has its symbols; "": it has them itself, or there is none */
    int found;        /* as tl_code_find(); 1: not looked for yet */
    char later[9 + 2 * TL_BUILD_ID_MAX + 1]; /* how a setup names one that was not found; else "" */
    uint64_t told;                           /* of what a compiler wrote: bytes that were read */
};

/* A record of memory or of a process. */
struct tl_perf_event {
    uint64_t time, number; /* ns; the order in the file */
    uint32_t type;
    bool exec; /* COMM: the process runs another program; KSYMBOL: the code goes */
    int32_t pid, tid, ppid, ptid;
    uint64_t address, length, offset;
    size_t dso;    /* or TL_PERF_NO_FILE, TL_PERF_MADE */
    size_t symbol; /* KSYMBOL */
    char comm[16]; /* COMM */
};

/* A build ID that is told by name. */
struct tl_perf_named_id {
    char *name;
    struct tl_build_id id;
};

/* Code that the kernel made: a program of BPF, or where a probe jumps to. */
struct tl_perf_ksymbol {
    char *name;
    uint64_t address;
    bool is_bpf, told; /* told: that its code is missing */
};

/* A function of a BPF program whose code the file has. */
struct tl_perf_bpf {
    uint64_t address, length;
    uint64_t offset; /* in the file of code that was made */
    char tag[17];    /* of its program */
    bool used;
};

struct tl_perf_import {
    struct tl_code_places places;
    void (*warn)(void *context, const char *text);
    void *context;
    struct tl_perf_reader *reader;
    struct tl_perf_info info;
    char core[40];    /* of PT's errata */
    char release[64]; /* of the kernel */
    struct tl_perf_event *events;
    size_t n_events, cap_events;
    struct tl_perf_dso *dsos;
    size_t n_dsos, cap_dsos;
    struct tl_perf_named_id *ids;
    size_t n_ids, cap_ids;
    char **event_names; /* by attribute */
    size_t n_event_names, cap_event_names;
    int32_t *areas; /* CPUs of buffers */
    size_t n_areas, cap_areas;
    struct tl_made_code made;
    struct tl_perf_ksymbol *ksymbols;
    size_t n_ksymbols, cap_ksymbols;
    struct tl_perf_bpf *bpf;
    size_t n_bpf, cap_bpf;
    struct tl_perf_map poked; /* addresses in the kernel that were changed */
    size_t n_pokes;
    struct tl_clock axis; /* of the images' times */
    bool timed;           /* … which is that of the trace's timestamps */
    bool begun;           /* there was a trace */
    uint64_t number;      /* of changes to what is known */
};

void tl_perf_import_tell(const struct tl_perf_import *im, const char *format, ...) TL_PRINTF(2, 3);
/* Its time and place in the order are filled in. TL_NOMEM. */
TL_MUST_USE int tl_perf_import_event(struct tl_perf_import *im, struct tl_perf_event event);

/* ---- perf_records.c -------------------------------------------------------------------------- */

/* For the reader; `context` is the import. */
TL_MUST_USE int tl_perf_import_record(void *context, const struct tl_perf_raw *raw);
TL_MUST_USE int tl_perf_import_feature(void *context, unsigned feature, struct tl_bytes body);
TL_MUST_USE int tl_perf_import_area(void *context, const struct tl_perf_area *area, uint64_t at,
                                    struct tl_bytes bytes, uint64_t offset);

/* ---- perf_memory.c --------------------------------------------------------------------------- */

/* Append all that was mapped to the setup's images. */
TL_MUST_USE int tl_perf_import_images(struct tl_perf_import *im, struct tl_setup *setup);
/* Look for the file; one that is missing is told. */
void tl_perf_import_find(struct tl_perf_import *im, struct tl_perf_dso *dso);

/* ---- perf_names.c ---------------------------------------------------------------------------- */

/* Append names of contexts to the setup; events are in the order of time. */
TL_MUST_USE int tl_perf_import_names(const struct tl_perf_import *im, struct tl_setup *setup);

/* ---- perf_made.c ----------------------------------------------------------------------------- */

/* A KSYMBOL, or a TEXT_POKE. */
TL_MUST_USE int tl_perf_import_ksymbol(struct tl_perf_import *im, const struct tl_perf_record *r);
TL_MUST_USE int tl_perf_import_poke(struct tl_perf_import *im, const struct tl_perf_record *r);
/* The feature BPF_PROG_INFO. */
TL_MUST_USE int tl_perf_import_bpf(struct tl_perf_import *im, struct tl_bytes body);
/* Does the trace have code of the kernel? */
bool tl_perf_import_has_kernel(const struct tl_perf_import *im);
/* The code of a KSYMBOL of BPF; NULL: the file does not have it, which is told. */
struct tl_perf_bpf *tl_perf_import_bpf_of(struct tl_perf_import *im,
                                          const struct tl_perf_event *event);
/* Code that was made at run time lies in the file that its compiler mapped as a sign: read what is
 * new in it. */
TL_MUST_USE int tl_perf_import_jitted(struct tl_perf_import *im);

#endif
