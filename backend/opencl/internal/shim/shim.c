//go:build opencl && cgo && linux && (amd64 || arm64)

// Every OpenCL function is defined here as a trampoline: a jump through a slot
// that load fills from libOpenCL.so.1. So a program starts where there is no
// OpenCL. They are hidden: other libraries of the process that call OpenCL must find it.
// A slot that is not filled leads to unavailable.
#define _GNU_SOURCE
#include "shim.h"
#include <dlfcn.h>

__attribute__((visibility("hidden"))) long bitcnn_cl_unavailable(void) { return -1001; }

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
	__attribute__((visibility("hidden"))) void *bitcnn_slot_##name = (void *)bitcnn_cl_unavailable; \
	__asm__(".pushsection .text\n.globl " #name "\n.hidden " #name "\n.type " #name ",@function\n" #name ":\n" \
		JUMP(name) ".size " #name ",.-" #name "\n.popsection\n");
#include "symbols.h"
#undef SYMBOL

const char *bitcnn_cl_load(void)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return dlerror();
#define SYMBOL(name) if (!dlsym(library, #name)) return "libOpenCL.so.1 has no " #name;
#include "symbols.h"
#undef SYMBOL
#define SYMBOL(name) bitcnn_slot_##name = dlsym(library, #name);
#include "symbols.h"
#undef SYMBOL
	return 0;
}

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
