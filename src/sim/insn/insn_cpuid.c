/* SPDX-License-Identifier: BSD-3-Clause */

/* What the processor has */

#include <sim/insn/insn_int.h>

#include <cpuid.h>

static insn_component_t insn_components[8];
static unsigned         insn_cpu_features;
static uint64_t         insn_xcr0;
static int              insn_cpuid_known;


static void insn_components_init(void)
{
    unsigned max = (__get_cpuid_max(0, NULL) < 0xd) ? 0 : 8;
    unsigned eax, ebx, ecx, edx, i;

    for (i = 2; i < max; ++i) {
        __cpuid_count(0xd, i, eax, ebx, ecx, edx);
        /* Bit 0 of ecx: a supervisor component, never in a signal frame */
        if ((eax != 0) && !(ecx & 1)) {
            insn_components[i].offset = ebx;
            insn_components[i].size   = eax;
        }
    }
}


static void insn_cpu_features_init(void)
{
    unsigned eax, ebx, ecx, edx;
    unsigned features = 0;

    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) {
        features |= ((ecx >> 27) & 1) ? INSN_CPU_MOVDIRI : 0;
        features |= ((ecx >> 28) & 1) ? INSN_CPU_MOVDIR64B : 0;
    }
    if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx)) {
        features |= ((ecx >> 6) & 1) ? INSN_CPU_SSE4A : 0;
    }
    insn_cpu_features = features;
}


static void insn_xcr0_init(void)
{
    unsigned eax, ebx, ecx, edx;

    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_OSXSAVE)) {
        asm volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
        insn_xcr0 = ((uint64_t)edx << 32) | eax;
    }
}


/* CPUID may trap to a hypervisor, so not at every signal. Threads that get here
 * together write the same values. */
static inline void insn_cpuid_init(void)
{
    if (INSN_UNLIKELY(!__atomic_load_n(&insn_cpuid_known, __ATOMIC_ACQUIRE))) {
        insn_components_init();
        insn_cpu_features_init();
        insn_xcr0_init();
        __atomic_store_n(&insn_cpuid_known, 1, __ATOMIC_RELEASE);
    }
}


int insn_cpu_has(unsigned feature)
{
    insn_cpuid_init();
    return (insn_cpu_features & feature) != 0;
}


uint64_t insn_cpu_xcr0(void)
{
    insn_cpuid_init();
    return insn_xcr0;
}


const insn_component_t *insn_cpu_component(unsigned number)
{
    insn_cpuid_init();
    return &insn_components[number];
}
