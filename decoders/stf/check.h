/* SPDX-License-Identifier: MIT */
/*
 * Does a trace obey the STF specification? Every rule that can be told from the trace alone, with
 * the place of each violation. No I/O, not thread-safe. docs/stf.md lists the rules.
 */
#ifndef TL_STF_CHECK_H
#define TL_STF_CHECK_H

#include "stf/file.h"
#include "stf/writer.h"

TL_C_BEGIN

enum tl_stf_severity {
    TL_STF_NOTE,    /* legal, but worth knowing */
    TL_STF_WARNING, /* the specification wants it otherwise; readers cope */
    TL_STF_ERROR    /* against the specification, or today's readers fail on it */
};

struct tl_stf_finding {
    uint8_t severity; /* enum tl_stf_severity */
    const char *rule; /* its name, e.g. "group-order"; static storage */
    uint64_t offset;  /* in the plain stream; of container rules in the file */
    uint64_t record;  /* number of the record from 0, UINT64_MAX: none */
    char text[160];
};

/* A result < 0 stops the check, which returns it. */
typedef int tl_stf_finding_sink(void *context, const struct tl_stf_finding *finding);

struct tl_stf_checker;

TL_MUST_USE int tl_stf_checker_new(struct tl_stf_checker **out, tl_stf_finding_sink *sink,
                                   void *context);
void tl_stf_checker_free(struct tl_stf_checker *checker);

/* Look at one record, in order, with its offset and size. The sink's errors. */
TL_MUST_USE int tl_stf_checker_add(struct tl_stf_checker *checker,
                                   const struct tl_stf_record *record);
/* The end: what is missing. The sink's errors. */
TL_MUST_USE int tl_stf_checker_finish(struct tl_stf_checker *checker);

/* Where a checker stands: behind a record. For tl_stf_check_file(). */
struct tl_stf_checked {
    uint64_t end;     /* offset behind the record */
    uint64_t markers; /* so far */
    uint64_t pc;      /* of the next instruction */
    bool on_marker;   /* the record is one */
    struct tl_stf_layout layout;
};
struct tl_stf_checked tl_stf_checker_at(const struct tl_stf_checker *checker);

uint64_t tl_stf_checker_records(const struct tl_stf_checker *checker);
uint64_t tl_stf_checker_insns(const struct tl_stf_checker *checker);

/* The rules of a .zstf container: chunks full, ending on markers, start PCs. Reads all of it, a
 * chunk at a time. */
TL_MUST_USE int tl_stf_check_container(struct tl_zstf *zstf, tl_stf_finding_sink *sink,
                                       void *context, struct tl_fail *fail);

/*
 * All rules on a whole file: its records through `checker` (which has had none), and its
 * container, unpacked once for both. TL_OK: read to its end, whatever was found. TL_BAD and others
 * in `fail`: it could not be read that far. The sink's errors.
 */
TL_MUST_USE int tl_stf_check_file(struct tl_stf_file *file, struct tl_stf_checker *checker,
                                  tl_stf_finding_sink *sink, void *context, struct tl_fail *fail);

/* "note", "warning", "error". */
const char *tl_stf_severity_name(enum tl_stf_severity severity);

TL_C_END

#endif
