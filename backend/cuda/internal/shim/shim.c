//go:build cuda && cgo && (linux && (amd64 || arm64) || windows && amd64)

// Every driver function is defined here as a trampoline: a call through a slot
// that load fills from the driver's library. So a program starts where there is no driver.
// An empty slot leads to missing; but cuInit must succeed before that, since
// gorgonia.org/cu calls it when it is initialised and ends the process otherwise.
#define _GNU_SOURCE
#include <stdio.h>

#include "../../../internal/trampoline/trampoline.h"

#include "../../../internal/trampoline/library.h"

#if defined(_WIN32)
#define LIBRARY "nvcuda.dll"
#define FIRST_FOUND "the driver's library is that of the system's folder"
#else
#define LIBRARY "libcuda.so.1"
#define FIRST_FOUND "the driver's library must be found first (LD_LIBRARY_PATH)"
#endif

enum { SUCCESS = 0, STUB_LIBRARY = 34, NOT_FOUND = 500 };

BITCNN_HIDDEN int bitcnn_cuda_missing(void) { return NOT_FOUND; }
static int ready(unsigned flags) { return SUCCESS; }

#define SYMBOL(name) TRAMPOLINE(name, bitcnn_cuda_missing)
#include "symbols.h"
#undef SYMBOL

__attribute__((constructor)) static void prepare(void) { bitcnn_slot_cuInit = (void *)ready; }

static const char *load(void)
{
	static char why[1024];
	void *library = library_open(LIBRARY);
	if (!library)
		return library_error(LIBRARY);
	// Which file it is decides: folders of toolkits have others of the name.
	const char *path = library_path(library);
	if (!path)
		path = LIBRARY;
	int (*init)(unsigned) = (int (*)(unsigned))library_symbol(library, "cuInit");
	if (!init) {
		snprintf(why, sizeof why, "%s has no cuInit", path);
		return why;
	}
	int code = init(0);
	if (code == STUB_LIBRARY) {
		snprintf(why, sizeof why, "%s is the stub of a CUDA toolkit: " FIRST_FOUND, path);
		return why;
	}
	if (code != SUCCESS) {
		int (*name)(int, const char **) = (int (*)(int, const char **))library_symbol(library, "cuGetErrorName");
		const char *text = 0;
		if (!name || name(code, &text) != SUCCESS || !text)
			text = "unknown";
		snprintf(why, sizeof why, "cuInit of %s: error %d (%s)", path, code, text);
		return why;
	}
	// Drivers lack what was added after them, and may drop what is old.
	void *found;
#define SYMBOL(name) if ((found = library_symbol(library, #name))) bitcnn_slot_##name = found;
#include "symbols.h"
#undef SYMBOL
	return 0;
}

// Opening a library runs code of it, too.
TRAMPOLINE(bitcnn_cuda_load, load)
