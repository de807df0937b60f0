/* SPDX-License-Identifier: MIT */
/*
 * Checks a trace against the STF specification: every rule that can be verified from the trace
 * alone, with the location of each violation. No I/O, not thread-safe. docs/stf.md lists the rules.
 */
#ifndef TL_STF_CHECK_H
#define TL_STF_CHECK_H

#include "stf/file.h"
#include "stf/writer.h"

TL_C_BEGIN

enum tl_stf_severity {
    TL_STF_NOTE,    /* legal, but worth knowing */
    TL_STF_WARNING, /* violates the specification, but readers cope */
    TL_STF_ERROR    /* violates the specification in a way that current readers fail on */
};

struct tl_stf_finding {
    uint8_t severity; /* enum tl_stf_severity */
    const char *rule; /* name of the rule, e.g. "group-order"; static storage */
    uint64_t offset;  /* in the plain stream; for container rules in the file */
    uint64_t record;  /* record number, from 0; UINT64_MAX: none */
    char text[160];
};

/* Receive a finding. A result < 0 stops the check, which returns it. */
typedef int tl_stf_finding_sink(void *context, const struct tl_stf_finding *finding);

struct tl_stf_checker;

TL_MUST_USE int tl_stf_checker_new(struct tl_stf_checker **out, tl_stf_finding_sink *sink,
                                   void *context);
void tl_stf_checker_free(struct tl_stf_checker *checker);

/* Check the next record, which must have its offset and size. Returns the sink's errors. */
TL_MUST_USE int tl_stf_checker_add(struct tl_stf_checker *checker,
                                   const struct tl_stf_record *record);
/* End of trace: check for what is missing. Returns the sink's errors. */
TL_MUST_USE int tl_stf_checker_finish(struct tl_stf_checker *checker);

/* Position of a checker, after a record. For tl_stf_check_file(). */
struct tl_stf_checked {
    uint64_t end;     /* offset after the record */
    uint64_t markers; /* so far */
    uint64_t pc;      /* of the next instruction */
    bool on_marker;   /* the record is a marker */
    struct tl_stf_layout layout;
};
struct tl_stf_checked tl_stf_checker_at(const struct tl_stf_checker *checker);

uint64_t tl_stf_checker_records(const struct tl_stf_checker *checker);
uint64_t tl_stf_checker_insns(const struct tl_stf_checker *checker);

/* Check the rules of a .zstf container: full chunks that end on markers, start PCs. Reads the whole
 * file, one chunk at a time. */
TL_MUST_USE int tl_stf_check_container(struct tl_zstf *zstf, tl_stf_finding_sink *sink,
                                       void *context, struct tl_fail *fail);

/*
 * Check all rules on a whole file: its records through `checker` (which must be new), and its
 * container; decompresses only once. Returns TL_OK: read to the end, whatever was found; TL_BAD and
 * others with `fail`: the file could not be read completely; or the sink's errors.
 */
TL_MUST_USE int tl_stf_check_file(struct tl_stf_file *file, struct tl_stf_checker *checker,
                                  tl_stf_finding_sink *sink, void *context, struct tl_fail *fail);

/* "note", "warning", "error". */
const char *tl_stf_severity_name(enum tl_stf_severity severity);

TL_C_END

#endif
