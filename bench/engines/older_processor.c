// Lets a program see an older processor: CPUID says that what OLDER_PROCESSOR names is absent.
//
//     cc -shared -fPIC -O2 -o older_processor.so older_processor.c
//     OLDER_PROCESSOR=avx2 LD_PRELOAD=./older_processor.so program
//
// avx2: neither AVX-512 nor AMX, VNNI of AVX or the like; avx512: no AMX. The kernel makes CPUID trap
// (arch_prctl(ARCH_SET_CPUID), processors with cpuid_fault), and a handler answers in its place. Threads
// that the program starts inherit the trap. Programs that ask in another way, by XGETBV alone, still see
// the truth.
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SET_CPUID = 0x1012 };

static int without_avx512;

static void hide(unsigned leaf, unsigned sub, unsigned r[4]) {
    if (leaf == 7 && sub == 0) {
        r[3] &= ~(1u << 22 | 1u << 24 | 1u << 25); // AMX-BF16, TILE, INT8
        if (without_avx512) {
            // F, DQ, IFMA, PF, ER, CD, BW, VL
            r[1] &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
            // VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ
            r[2] &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
            r[3] &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 23); // 4VNNIW, 4FMAPS, VP2INTERSECT, FP16
        }
    } else if (leaf == 7 && sub == 1) {
        r[0] &= ~(1u << 21); // AMX-FP16
        r[3] &= ~(1u << 8);  // AMX-COMPLEX
        if (without_avx512) {
            r[0] &= ~(1u << 4 | 1u << 5 | 1u << 23);        // VNNI, AVX512-BF16, IFMA
            r[3] &= ~(1u << 4 | 1u << 5 | 1u << 10 | 1u << 19); // VNNI-INT8, NE-CONVERT, VNNI-INT16, AVX10
        }
    } else if (leaf == 0xd && sub == 0) {
        r[0] &= ~(3u << 17);
        if (without_avx512)
            r[0] &= ~(7u << 5);
    }
}

static void answer(int signal, siginfo_t *info, void *context) {
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)g[REG_RIP];
    (void)info;
    if (at[0] != 0x0f || at[1] != 0xa2) { // not CPUID
        struct sigaction plain = {.sa_handler = SIG_DFL};
        sigaction(signal, &plain, NULL);
        return;
    }
    unsigned leaf = (unsigned)g[REG_RAX], sub = (unsigned)g[REG_RCX], r[4];
    syscall(SYS_arch_prctl, SET_CPUID, 1);
    __cpuid_count(leaf, sub, r[0], r[1], r[2], r[3]);
    syscall(SYS_arch_prctl, SET_CPUID, 0);
    hide(leaf, sub, r);
    g[REG_RAX] = r[0], g[REG_RBX] = r[1], g[REG_RCX] = r[2], g[REG_RDX] = r[3];
    g[REG_RIP] += 2;
}

__attribute__((constructor)) static void start(void) {
    const char *older = getenv("OLDER_PROCESSOR");
    if (older == NULL)
        return;
    without_avx512 = strcmp(older, "avx2") == 0;
    struct sigaction trap = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (!without_avx512 && strcmp(older, "avx512") != 0 || sigaction(SIGSEGV, &trap, NULL) != 0 ||
        syscall(SYS_arch_prctl, SET_CPUID, 0) != 0) {
        fputs("OLDER_PROCESSOR: avx2 or avx512, on processors with cpuid_fault\n", stderr);
        _exit(3);
    }
}
