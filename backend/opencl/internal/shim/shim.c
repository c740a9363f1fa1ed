//go:build opencl && cgo && (linux && (amd64 || arm64) || windows && amd64)

// Every OpenCL function is defined here as a trampoline: a call through a slot
// that load fills from the loader's library. So a program starts where there is no
// OpenCL. A slot that is not filled leads to unavailable.
#define _GNU_SOURCE
#include "shim.h"

#include "../../../internal/trampoline/trampoline.h"

#include "../../../internal/trampoline/library.h"

#if defined(_WIN32)
#define LIBRARY "OpenCL.dll"
#else
#define LIBRARY "libOpenCL.so.1"
#endif

BITCNN_HIDDEN long bitcnn_cl_unavailable(void) { return -1001; }

#define SYMBOL(name) TRAMPOLINE(name, bitcnn_cl_unavailable)
#include "symbols.h"
#undef SYMBOL

static const char *load(void)
{
	void *library = library_open(LIBRARY);
	if (!library)
		return library_error(LIBRARY);
#define SYMBOL(name) if (!library_symbol(library, #name)) return LIBRARY " has no " #name;
#include "symbols.h"
#undef SYMBOL
#define SYMBOL(name) bitcnn_slot_##name = library_symbol(library, #name);
#include "symbols.h"
#undef SYMBOL
	return 0;
}

// Opening a library runs code of it, too.
TRAMPOLINE(bitcnn_cl_load, load)

static long lost(void) { return CL_DEVICE_NOT_AVAILABLE; }

static void *lost_map(cl_command_queue queue, cl_mem buffer, cl_bool wait, cl_map_flags flags, size_t offset, size_t bytes,
	cl_uint events, const cl_event *list, cl_event *event, cl_int *code)
{
	*code = CL_DEVICE_NOT_AVAILABLE;
	return 0;
}

void bitcnn_cl_lose(int yes)
{
	static void *kernel, *write, *read, *map, *unmap, *finish;
	if (yes) {
		kernel = bitcnn_slot_clEnqueueNDRangeKernel, write = bitcnn_slot_clEnqueueWriteBuffer;
		read = bitcnn_slot_clEnqueueReadBuffer, finish = bitcnn_slot_clFinish;
		map = bitcnn_slot_clEnqueueMapBuffer, unmap = bitcnn_slot_clEnqueueUnmapMemObject;
	}
	bitcnn_slot_clEnqueueNDRangeKernel = yes ? (void *)lost : kernel;
	bitcnn_slot_clEnqueueWriteBuffer = yes ? (void *)lost : write;
	bitcnn_slot_clEnqueueReadBuffer = yes ? (void *)lost : read;
	bitcnn_slot_clEnqueueMapBuffer = yes ? (void *)lost_map : map;
	bitcnn_slot_clEnqueueUnmapMemObject = yes ? (void *)lost : unmap;
	bitcnn_slot_clFinish = yes ? (void *)lost : finish;
}
