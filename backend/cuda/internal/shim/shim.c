//go:build cuda && cgo && linux && (amd64 || arm64)

// Every driver function is defined here as a trampoline: a call through a slot
// that load fills from libcuda.so.1. So a program starts where there is no driver.
// An empty slot leads to missing; but cuInit must succeed before that, since
// gorgonia.org/cu calls it when it is initialised and ends the process otherwise.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include "../../../internal/trampoline/trampoline.h"

enum { SUCCESS = 0, STUB_LIBRARY = 34, NOT_FOUND = 500 };

__attribute__((visibility("hidden"))) int bitcnn_cuda_missing(void) { return NOT_FOUND; }
static int ready(unsigned flags) { return SUCCESS; }

#define SYMBOL(name) TRAMPOLINE(name, bitcnn_cuda_missing)
#include "symbols.h"
#undef SYMBOL

__attribute__((constructor)) static void prepare(void) { bitcnn_slot_cuInit = (void *)ready; }

static const char *load(void)
{
	static char why[1024];
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return dlerror();
	// Which file it is decides: folders of toolkits have others of the name.
	const char *path = "libcuda.so.1";
	struct link_map *map = 0;
	if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0])
		path = map->l_name;
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
	if (!init) {
		snprintf(why, sizeof why, "%s has no cuInit", path);
		return why;
	}
	int code = init(0);
	if (code == STUB_LIBRARY) {
		snprintf(why, sizeof why, "%s is the stub of a CUDA toolkit: the driver's library must be found first (LD_LIBRARY_PATH)", path);
		return why;
	}
	if (code != SUCCESS) {
		int (*name)(int, const char **) = (int (*)(int, const char **))dlsym(library, "cuGetErrorName");
		const char *text = 0;
		if (!name || name(code, &text) != SUCCESS || !text)
			text = "unknown";
		snprintf(why, sizeof why, "cuInit of %s: error %d (%s)", path, code, text);
		return why;
	}
	// Drivers lack what was added after them, and may drop what is old.
	void *found;
#define SYMBOL(name) if ((found = dlsym(library, #name))) bitcnn_slot_##name = found;
#include "symbols.h"
#undef SYMBOL
	return 0;
}

// Opening a library runs code of it, too.
TRAMPOLINE(bitcnn_cuda_load, load)
