//go:build cuda && cgo && linux && (amd64 || arm64)

// Every driver function is defined here as a trampoline: a jump through a slot
// that load fills from libcuda.so.1. So a program starts where there is no driver.
// An empty slot leads to missing; but cuInit must succeed before that, since
// gorgonia.org/cu calls it when it is initialised and ends the process otherwise.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

enum { SUCCESS = 0, NOT_FOUND = 500 };

__attribute__((visibility("hidden"))) int bitcnn_cuda_missing(void) { return NOT_FOUND; }
static int ready(unsigned flags) { return SUCCESS; }

#if defined(__x86_64__)
#define JUMP(name) "\tjmp *bitcnn_slot_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name) \
	"\tadrp x16, bitcnn_slot_" #name "\n" \
	"\tldr x16, [x16, #:lo12:bitcnn_slot_" #name "]\n" \
	"\tbr x16\n"
#else
#error "no trampoline for this processor"
#endif

#define SYMBOL(name) \
	__attribute__((visibility("hidden"))) void *bitcnn_slot_##name = (void *)bitcnn_cuda_missing; \
	__asm__(".pushsection .text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n" \
		JUMP(name) ".size " #name ",.-" #name "\n.popsection\n");
#include "symbols.h"
#undef SYMBOL

__attribute__((constructor)) static void prepare(void) { bitcnn_slot_cuInit = (void *)ready; }

const char *bitcnn_cuda_load(void)
{
	static char why[256];
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return dlerror();
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
	if (!init)
		return "libcuda.so.1 has no cuInit";
	int code = init(0);
	if (code != SUCCESS) {
		int (*name)(int, const char **) = (int (*)(int, const char **))dlsym(library, "cuGetErrorName");
		const char *text = 0;
		if (!name || name(code, &text) != SUCCESS || !text)
			text = "unknown";
		snprintf(why, sizeof why, "cuInit: error %d (%s)", code, text);
		return why;
	}
	// Drivers lack what was added after them, and may drop what is old.
	void *found;
#define SYMBOL(name) if ((found = dlsym(library, #name))) bitcnn_slot_##name = found;
#include "symbols.h"
#undef SYMBOL
	return 0;
}
