/* SPDX-License-Identifier: MIT */
/*
 * The program image: what memory held while the trace was captured, by address, address
 * space and (optionally) context and time, with symbols where an ELF file brought them.
 *
 * Regions can be bound to a context: they are there only while the core says that it runs in it,
 * and then they cover what is there always. Regions can be bound to a time: code that was loaded
 * while the trace ran is there from then on, and until it was unloaded. Who reads asks for the
 * view of a context at a time, tl_image_view(), and looks up addresses in that.
 *
 * Built by one thread, then frozen: from tl_image_freeze() on it never changes and may be
 * read by any number of threads.
 */
#ifndef TL_IMAGE_IMAGE_H
#define TL_IMAGE_IMAGE_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>

struct tl_image;

/* Memory spaces a region can be limited to, a bit set. Names as in snapshot .ini files. */
enum tl_space {
    TL_SPACE_EL1S = 1 << 0, /* EL1 and EL0, secure */
    TL_SPACE_EL1N = 1 << 1, /* EL1 and EL0, non-secure */
    TL_SPACE_EL2 = 1 << 2,  /* EL2, non-secure */
    TL_SPACE_EL3 = 1 << 3,
    TL_SPACE_EL2S = 1 << 4,
    TL_SPACE_EL1R = 1 << 5, /* Realm */
    TL_SPACE_EL2R = 1 << 6,
    TL_SPACE_ROOT = 1 << 7,
    TL_SPACE_S = TL_SPACE_EL1S | TL_SPACE_EL3 | TL_SPACE_EL2S,
    TL_SPACE_N = TL_SPACE_EL1N | TL_SPACE_EL2,
    TL_SPACE_R = TL_SPACE_EL1R | TL_SPACE_EL2R,
    TL_SPACE_ANY = 0xff
};

/* The bit set a snapshot's `space=` names (any letter case), or TL_BAD. */
int tl_space_parse(const char *name);
/* The name that tl_space_parse() gives back as `space`; static storage. */
const char *tl_space_name(unsigned space);

/* The identifiers of a process and of a virtual machine, as far as they are known. */
struct tl_image_context {
    uint64_t context_id; /* CONTEXTIDR, satp, CR3 … */
    uint64_t vmid;       /* VMID; base of the VMCS on x86 */
    bool has_context_id;
    bool has_vmid;
};

/*
 * When something is there: at times from <= t < until, as the trace tells them: ticks of the
 * source's timestamps (TL_ITEM_TIME). Before the first timestamp it is 0.
 */
struct tl_image_span {
    uint64_t from, until; /* until 0: to the end; so {0} is always */
};

struct tl_symbol {
    uint64_t address;
    uint64_t size;             /* bytes, made up to the next symbol where the file says 0 */
    const char *name;          /* owned by the image; C++ and Rust names as in the file */
    uint32_t layer;            /* private: which context it is bound to, … */
    uint32_t file;             /* … which file it is of … */
    uint8_t space;             /* … the spaces it is in … */
    struct tl_image_span span; /* … and when */
};

TL_MUST_USE int tl_image_new(struct tl_image **out);
void tl_image_free(struct tl_image *image);

/*
 * What is added from here on is there only in `context`: with both identifiers, where both agree,
 * with one, where that one does. NULL or none: always, as in a new image.
 * TL_NOMEM, TL_LIMIT (a million contexts, or frozen).
 */
TL_MUST_USE int tl_image_bind(struct tl_image *image, const struct tl_image_context *context);

/* What is added from here on is there at these times only; {0}: always, as in a new image. */
void tl_image_during(struct tl_image *image, struct tl_image_span span);

/*
 * Map `bytes` (copied) at `address`. `space` is a set of tl_space bits. `name` (copied, may be
 * NULL) is for messages. A region given again is dropped; where regions of one context overlap in
 * a space at a time, the one given last wins. Errors: TL_NOMEM, TL_USAGE (it would wrap the address
 * space).
 */
TL_MUST_USE int tl_image_add_bytes(struct tl_image *image, uint64_t address, struct tl_bytes bytes,
                                   unsigned space, const char *name, struct tl_fail *fail);

/*
 * The same of a part of a file that is perhaps mapped many times, in other places, contexts or
 * times: its bytes are kept once. `offset` and `length` only name the part, with `name`, which is
 * not NULL. tl_image_add_again() maps what was given so before; TL_NOTFOUND: nothing was.
 */
TL_MUST_USE int tl_image_add_part(struct tl_image *image, uint64_t address, struct tl_bytes bytes,
                                  unsigned space, const char *name, uint64_t offset,
                                  uint64_t length, struct tl_fail *fail);
/* Behind tl_image_add_part(): the whole file that the part is of, for the functions in it, if it is
 * an ELF file. TL_NOMEM. */
TL_MUST_USE int tl_image_part_functions(struct tl_image *image, uint64_t address,
                                        struct tl_bytes file, unsigned space, struct tl_fail *fail);
TL_MUST_USE int tl_image_add_again(struct tl_image *image, uint64_t address, unsigned space,
                                   const char *name, uint64_t offset, uint64_t length,
                                   struct tl_fail *fail);

/*
 * Map `length` bytes (UINT64_MAX: all) of a file from `offset` on. The file is read at once.
 * Errors: TL_IO, TL_BAD (offset or length outside the file), TL_NOMEM.
 */
TL_MUST_USE int tl_image_add_file(struct tl_image *image, const char *path, uint64_t address,
                                  uint64_t offset, uint64_t length, unsigned space,
                                  struct tl_fail *fail);

/*
 * Map the executable segments of an ELF file in memory (copied), moved by `bias` bytes, and
 * take its function symbols. `bytes` that do not begin with the ELF magic are TL_BAD.
 */
TL_MUST_USE int tl_image_add_elf(struct tl_image *image, struct tl_bytes bytes, uint64_t bias,
                                 unsigned space, const char *name, struct tl_fail *fail);

/* For which machine the first ELF file was made (EM_RISCV, EM_OPENRISC, …); 0: there is none. */
unsigned tl_image_machine(const struct tl_image *image);

/* Sort, resolve overlaps, index. Nothing can be added any more. TL_NOMEM, TL_LIMIT (too many
 * contexts and changes). */
TL_MUST_USE int tl_image_freeze(struct tl_image *image);

/* Is nothing mapped at all? */
bool tl_image_is_empty(const struct tl_image *image);

/*
 * A view: the memory that a context sees at a time. What is bound to both of its identifiers counts
 * first, then what is bound to the context ID, to the VMID, and what is there always. Equal views
 * show the same memory; 0 is the one of no identifiers at time 0.
 *
 * The view stays the same up to time `*until` (may be NULL), UINT64_MAX for an image that does not
 * change: so who follows a trace asks again when identifiers change or that time has come.
 */
uint64_t tl_image_view(const struct tl_image *image, const struct tl_image_context *context,
                       uint64_t time, uint64_t *until);

/*
 * The last time up to `time` at which memory changes in any context, 0 if there is none: every
 * context's view at both is the same.
 */
uint64_t tl_image_last_change(const struct tl_image *image, uint64_t time);

/*
 * Bytes mapped at `address` for `space` (one bit, or any set: the first that matches), up to
 * the end of the contiguous region. n == 0: nothing is there. Borrowed from the image. Without a
 * view: in view 0.
 */
struct tl_bytes tl_image_at(const struct tl_image *image, unsigned space, uint64_t address);
struct tl_bytes tl_image_view_at(const struct tl_image *image, uint64_t view, unsigned space,
                                 uint64_t address);
/* Where tl_image_view_at() finds nothing at `address`: it does not for all of *first..*last. */
void tl_image_view_void(const struct tl_image *image, uint64_t view, unsigned space,
                        uint64_t address, uint64_t *first, uint64_t *last);

/* All symbols in order of address. */
const struct tl_symbol *tl_image_symbols(const struct tl_image *image, size_t *n);
/* The view in which a symbol is there, as long as nothing else covers it. */
uint64_t tl_image_symbol_view(const struct tl_image *image, size_t symbol,
                              struct tl_image_context *context);
/*
 * Index into tl_image_symbols() of the one that covers `address`, or -1; or the symbol, or NULL.
 * Without a view: one that is in no context, else of any, whenever it was there.
 */
int64_t tl_image_symbol_index(const struct tl_image *image, uint64_t address);
const struct tl_symbol *tl_image_symbol_at(const struct tl_image *image, uint64_t address);
int64_t tl_image_view_symbol(const struct tl_image *image, uint64_t view, unsigned space,
                             uint64_t address);

#endif
