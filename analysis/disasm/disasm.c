/* SPDX-License-Identifier: MIT */
/*
 * Disassembles with whichever version of LLVM is installed, found by dlopen() when it is first
 * needed. Targets of branches are computed here, because LLVM prints displacements.
 */
#include "disasm/disasm.h"

#include "isa/x86.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions used of LLVM's C interface; Source: llvm-c/Disassembler.h, stable ABI. */
typedef void *llvm_context;
typedef int llvm_op_info(void *, uint64_t, uint64_t, uint64_t, int, void *);
typedef const char *llvm_symbol(void *, uint64_t, uint64_t *, uint64_t, const char **);

static struct {
    llvm_context (*create)(const char *triple, const char *cpu, const char *features, void *info,
                           int tag, llvm_op_info *, llvm_symbol *);
    int (*set_options)(llvm_context, uint64_t options);
    size_t (*decode)(llvm_context, uint8_t *, uint64_t n, uint64_t pc, char *out, size_t size);
    void (*dispose)(llvm_context);
    bool there;
} llvm;

enum { PRINT_IMMEDIATES_IN_HEX = 2 };

static void load(void)
{
    static const char *const names[] = {"libLLVM-14.so.1", "libLLVM-15.so.1", "libLLVM-16.so.1",
                                        "libLLVM.so.19.1"};
    void *lib = NULL;
    for (size_t i = 0; !lib && i < sizeof names / sizeof names[0]; i++)
        lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return;
    static const char *const targets[] = {"AArch64", "ARM", "RISCV", "X86"};
    static const char *const parts[] = {"TargetInfo", "TargetMC", "Disassembler"};
    for (size_t t = 0; t < 4; t++) {
        for (size_t p = 0; p < 3; p++) {
            char name[64];
            snprintf(name, sizeof name, "LLVMInitialize%s%s", targets[t], parts[p]);
            void (*init)(void);
            *(void **)&init = dlsym(lib, name);
            if (init)
                init();
        }
    }
    *(void **)&llvm.create = dlsym(lib, "LLVMCreateDisasmCPUFeatures");
    *(void **)&llvm.set_options = dlsym(lib, "LLVMSetDisasmOptions");
    *(void **)&llvm.decode = dlsym(lib, "LLVMDisasmInstruction");
    *(void **)&llvm.dispose = dlsym(lib, "LLVMDisasmDispose");
    llvm.there = llvm.create && llvm.set_options && llvm.decode && llvm.dispose;
}

struct tl_disasm {
    llvm_context context;
    enum tl_isa isa;
};

static const struct {
    const char *triple;
    const char *features;
} machines[TL_ISA_COUNT] = {
    [TL_ISA_A64] = {"aarch64", "+v9a,+tme,+mte,+sve2,+bf16,+i8mm,+pauth,+wfxt,+hbc"},
    [TL_ISA_A32] = {"armv8a", "+neon,+fp-armv8,+crc,+crypto"},
    [TL_ISA_T32] = {"thumbv8.1m.main", "+mve.fp,+fp64,+v8,+virtualization"},
    [TL_ISA_RV32] = {"riscv32", "+m,+a,+f,+d,+c"},
    [TL_ISA_RV64] = {"riscv64", "+m,+a,+f,+d,+c,+v,+zba,+zbb,+zbs"},
    [TL_ISA_X16] = {"i386-unknown-unknown-code16", ""},
    [TL_ISA_X32] = {"i386", ""},
    [TL_ISA_X64] = {"x86_64", ""},
};

int tl_disasm_new(struct tl_disasm **out, enum tl_isa isa, struct tl_fail *fail)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    *out = NULL;
    if ((unsigned)isa >= TL_ISA_COUNT || !machines[isa].triple)
        return tl_fail_set(fail, TL_UNSUPPORTED, "no disassembler for %s", tl_isa_name(isa));
    pthread_once(&once, load);
    if (!llvm.there)
        return tl_fail_set(fail, TL_UNSUPPORTED, "LLVM's library is not installed (libllvm14)");
    struct tl_disasm *const d = calloc(1, sizeof *d);
    if (!d)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    d->isa = isa;
    d->context = llvm.create(machines[isa].triple, "", machines[isa].features, NULL, 0, NULL, NULL);
    if (!d->context) {
        free(d);
        return tl_fail_set(fail, TL_UNSUPPORTED, "LLVM does not know %s", tl_isa_name(isa));
    }
    llvm.set_options(d->context, PRINT_IMMEDIATES_IN_HEX);
    *out = d;
    return TL_OK;
}

void tl_disasm_free(struct tl_disasm *disasm)
{
    if (!disasm)
        return;
    llvm.dispose(disasm->context);
    free(disasm);
}

/* Remove LLVM's leading tab, and replace the one after the mnemonic. */
static void tidy(char *text)
{
    char *to = text;
    bool space = true;
    for (const char *from = text; *from; from++) {
        const bool blank = *from == '\t' || *from == ' ';
        if (!blank)
            *to++ = *from;
        else if (!space)
            *to++ = ' ';
        space = blank;
    }
    if (to > text && to[-1] == ' ')
        to--;
    *to = '\0';
}

/* Compute the target of a direct branch or call. */
static bool find_target(enum tl_isa isa, uint64_t pc, struct tl_bytes code, uint64_t *out)
{
    const struct tl_isa_options any = {0};
    struct tl_x86_insn x86;
    struct tl_insn insn;
    if (tl_isa_is_x86(isa)) {
        if (tl_x86_decode(isa, code, &x86) <= 0 || !x86.direct)
            return false;
        *out = tl_x86_target(isa, pc, &x86);
        return true;
    }
    if (tl_insn_decode(isa, &any, pc, code, &insn) <= 0 || insn.kind != TL_INSN_BRANCH)
        return false;
    *out = insn.target;
    return true;
}

/* Replace the displacement that LLVM prints as the last operand with the address. */
static void name_target(const struct tl_disasm *disasm, uint64_t pc, struct tl_bytes code,
                        char *text, size_t size)
{
    char *const operand = strrchr(text, ' ');
    uint64_t target;
    if (operand && find_target(disasm->isa, pc, code, &target))
        snprintf(operand, size - (size_t)(operand - text), " 0x%llx", (unsigned long long)target);
}

int tl_disasm_text(struct tl_disasm *disasm, uint64_t pc, struct tl_bytes code, char *out,
                   size_t size)
{
    uint8_t bytes[16];
    const size_t n = code.n < sizeof bytes ? code.n : sizeof bytes;
    memcpy(bytes, code.p, n);
    const size_t used = n ? llvm.decode(disasm->context, bytes, n, pc, out, size) : 0;
    if (used) {
        tidy(out);
        name_target(disasm, pc, (struct tl_bytes){bytes, n}, out, size);
        return (int)used;
    }
    if (n >= 4)
        snprintf(out, size, ".word 0x%08x", tl_le32(bytes));
    else if (n >= 2)
        snprintf(out, size, ".hword 0x%04x", tl_le16(bytes));
    else
        snprintf(out, size, ".byte");
    return TL_BAD;
}
