/* SPDX-License-Identifier: MIT */
/*
 * The program image: memory contents while the trace was captured, by address, address space and
 * (optionally) context and time, with symbols from ELF files.
 *
 * Regions can be bound to a context: they are visible only while the core reports that context, and
 * take precedence over unbound ones. Regions can be bound to a time: code that was loaded during
 * the trace is visible from then until it was unloaded. To look up addresses, get the view of a
 * context at a time with tl_image_view().
 *
 * Built by one thread, then frozen: after tl_image_freeze() it never changes and may be read by any
 * number of threads.
 */
#ifndef TL_IMAGE_IMAGE_H
#define TL_IMAGE_IMAGE_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>

struct tl_image;

/* Memory spaces a region can be limited to, a bit set. Named as in snapshot .ini files. */
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

/* The bit set for a snapshot's `space=` value (case-insensitive), or TL_BAD. */
int tl_space_parse(const char *name);
/* The name that tl_space_parse() maps to `space`; static storage. */
const char *tl_space_name(unsigned space);

/* Identifiers of a process and a virtual machine, as far as they are known. */
struct tl_image_context {
    uint64_t context_id; /* CONTEXTIDR, satp, CR3, … */
    uint64_t vmid;       /* VMID; base of the VMCS on x86 */
    bool has_context_id;
    bool has_vmid;
};

/*
 * Validity period: from <= t < until, in ticks of the source's timestamps (TL_ITEM_TIME). Time is 0
 * before the first timestamp.
 */
struct tl_image_span {
    uint64_t from, until; /* until 0: no end; so {0} is always */
};

struct tl_symbol {
    uint64_t address;
    uint64_t size;     /* bytes; if the file has 0, up to the next symbol or its section's end */
    const char *name;  /* owned by the image; as in the file: see image/names.h */
    uint32_t layer;    /* private: layer of the context it is bound to */
    uint32_t file;     /* private: the file it is from */
    uint64_t max_size; /* private: size in the file, or bytes to its section's end */
    uint8_t space;     /* private: address spaces */
    uint8_t rank;      /* private: among names for one address the lowest is used */
    bool shared;       /* private: other programs have functions of this name */
    uint32_t program;  /* private: the program it is of, + 1; 0: not known */
    struct tl_image_span span; /* private: validity period */
};

TL_MUST_USE int tl_image_new(struct tl_image **out);
void tl_image_free(struct tl_image *image);

/* Set the program that functions added from here on are of, by its short name; NULL or "": none, as
 * in a new image. Returns TL_NOMEM. */
TL_MUST_USE int tl_image_set_program(struct tl_image *image, const char *name);

/*
 * Set the context of everything added from here on. If it has both identifiers, both must match; if
 * it has one, that one. NULL or neither identifier: any context, as in a new image. Returns
 * TL_NOMEM, TL_LIMIT (a million contexts, or frozen).
 */
TL_MUST_USE int tl_image_bind(struct tl_image *image, const struct tl_image_context *context);

/* Set the validity period of everything added from here on; {0}: always, as in a new image. */
void tl_image_set_period(struct tl_image *image, struct tl_image_span span);

/*
 * Map `bytes` (copied) at `address`. `space` is a set of tl_space bits. `name` (copied, may be
 * NULL) is for messages. Exact duplicates are dropped; where regions of the same context overlap in
 * space and time, the last one added wins. Returns TL_NOMEM, TL_USAGE (wraps around the address
 * space).
 */
TL_MUST_USE int tl_image_add_bytes(struct tl_image *image, uint64_t address, struct tl_bytes bytes,
                                   unsigned space, const char *name, struct tl_fail *fail);

/*
 * The same for part of a file that may be mapped repeatedly, at different addresses, in different
 * contexts or at different times: its bytes are stored once. `offset`, `length` and `name` (not
 * NULL) only identify the part. tl_image_add_again() maps a part added before; it returns
 * TL_NOTFOUND if there is none.
 */
TL_MUST_USE int tl_image_add_part(struct tl_image *image, uint64_t address, struct tl_bytes bytes,
                                  unsigned space, const char *name, uint64_t offset,
                                  uint64_t length, struct tl_fail *fail);
/* After tl_image_add_part(): add the functions of the complete file that contains the part, if it
 * is an ELF file. Returns TL_NOMEM. */
TL_MUST_USE int tl_image_part_functions(struct tl_image *image, uint64_t address,
                                        struct tl_bytes file, unsigned space, struct tl_fail *fail);
TL_MUST_USE int tl_image_add_again(struct tl_image *image, uint64_t address, unsigned space,
                                   const char *name, uint64_t offset, uint64_t length,
                                   struct tl_fail *fail);

/*
 * Get the bytes of a file. They live as long as the image, and what is added of them is not copied.
 * Regular files are mapped, and should not change meanwhile; others are read. Returns TL_IO,
 * TL_NOMEM.
 */
TL_MUST_USE int tl_image_file(struct tl_image *image, const char *path, struct tl_bytes *bytes,
                              struct tl_fail *fail);

/*
 * Map `length` bytes (UINT64_MAX: all) of a file, starting at `offset`. The file is read
 * immediately. Returns TL_IO, TL_BAD (offset or length outside the file), TL_NOMEM.
 */
TL_MUST_USE int tl_image_add_file(struct tl_image *image, const char *path, uint64_t address,
                                  uint64_t offset, uint64_t length, unsigned space,
                                  struct tl_fail *fail);

/*
 * Map the executable segments of an ELF file in memory (copied), relocated by `bias` bytes, and add
 * its function symbols. Of a core file (ET_CORE) without segments only the symbols are added.
 * Returns TL_BAD if `bytes` does not begin with the ELF magic.
 */
TL_MUST_USE int tl_image_add_elf(struct tl_image *image, struct tl_bytes bytes, uint64_t bias,
                                 unsigned space, const char *name, struct tl_fail *fail);

/* Machine of the first ELF file (EM_RISCV, EM_OPENRISC, …); 0: no ELF file. */
unsigned tl_image_machine(const struct tl_image *image);
/* Does it have 32-bit addresses? */
bool tl_image_is_narrow(const struct tl_image *image);
/* Does a RISC-V ELF file say that it is built for Zcmp or Zcmt? */
bool tl_image_has_zcm(const struct tl_image *image);
/* Address of the jump table of RISC-V's Zcmt: of the psABI's symbol `__jvt_base$` in the first ELF
 * file that has it. 0: none. */
uint64_t tl_image_jump_table(const struct tl_image *image);

/* Sort, resolve overlaps, index. Nothing can be added afterwards. Returns TL_NOMEM, TL_LIMIT (too
 * many contexts and changes). */
TL_MUST_USE int tl_image_freeze(struct tl_image *image);

/* Is nothing mapped? */
bool tl_image_is_empty(const struct tl_image *image);

/* A bit to be added to a view: it then shows only regions bound to the VMID, since a virtual
 * machine does not see the memory of its host. */
#define TL_IMAGE_MACHINE (UINT64_C(1) << 63)

/*
 * Get the view: the memory visible in a context at a time. Regions bound to both of its identifiers
 * take precedence, then those bound to the context ID, to the VMID, and unbound ones. Equal views
 * show the same memory; view 0 is that of no identifiers at time 0.
 *
 * The view is valid before time `*until` (may be NULL); UINT64_MAX if the image does not change.
 * While following a trace, get a new view when identifiers change or that time is reached.
 */
uint64_t tl_image_view(const struct tl_image *image, const struct tl_image_context *context,
                       uint64_t time, uint64_t *until);

/*
 * The last time up to `time` at which memory changes in any context, 0 if there is none: between
 * that time and `time` no context's view changes.
 */
uint64_t tl_image_last_change(const struct tl_image *image, uint64_t time);

/*
 * Bytes mapped at `address` in `space` (one bit, or a set: the first that matches), up to the end
 * of the contiguous region. n == 0: unmapped. Borrowed from the image. tl_image_at() uses view 0.
 */
struct tl_bytes tl_image_at(const struct tl_image *image, unsigned space, uint64_t address);
struct tl_bytes tl_image_view_at(const struct tl_image *image, uint64_t view, unsigned space,
                                 uint64_t address);
/* For an `address` at which tl_image_view_at() finds nothing: a range *first..*last around it in
 * which nothing is mapped. */
void tl_image_view_void(const struct tl_image *image, uint64_t view, unsigned space,
                        uint64_t address, uint64_t *first, uint64_t *last);

/* All symbols, sorted by address. */
const struct tl_symbol *tl_image_symbols(const struct tl_image *image, size_t *n);
/* The view in which a symbol is visible, unless something else covers it. */
uint64_t tl_image_symbol_view(const struct tl_image *image, size_t symbol,
                              struct tl_image_context *context);
/*
 * Index into tl_image_symbols() of the symbol that covers `address`, or -1; or the symbol itself,
 * or NULL. The variants without a view prefer a symbol not bound to a context, then any, at any
 * time.
 */
int64_t tl_image_symbol_index(const struct tl_image *image, uint64_t address);
/* Is `address` of the same symbol as code that was found to be of this one (UINT32_MAX: of none),
 * in the same view and space? False: it may be, nevertheless. */
bool tl_image_symbol_goes_on(const struct tl_image *image, uint32_t symbol, uint64_t address);
const struct tl_symbol *tl_image_symbol_at(const struct tl_image *image, uint64_t address);
int64_t tl_image_view_symbol(const struct tl_image *image, uint64_t view, unsigned space,
                             uint64_t address);

#endif
