// What the parts of the emulated driver share.
#ifndef BITCNN_EMULATION_DRIVER_H
#define BITCNN_EMULATION_DRIVER_H

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine.h"

namespace emulation EMULATION {

// CUresult, those that are returned.
enum Result {
	success = 0, invalid_value = 1, out_of_memory = 2, not_initialized = 3, stub_library = 34, no_device = 100, invalid_device = 101,
	invalid_image = 200, invalid_context = 201, no_binary_for_gpu = 209, invalid_ptx = 218,
	unsupported_ptx_version = 222, file_not_found = 301, invalid_handle = 400, not_found = 500, not_ready = 600,
	illegal_address = 700, launch_out_of_resources = 701, primary_context_active = 708, launch_failed = 719,
	cooperative_launch_too_large = 720, not_supported = 801, capture_unsupported = 900, capture_invalidated = 901,
	device_unavailable = 46, unknown = 999,
};

// Settings from the environment, read again at every use so that tests can change
// them; see kernels/cu/README.md.
int compute_capability();  // 90 for 9.0
int driver_version();      // 12040 for CUDA 12.4
bool absent();
bool stub(); // the library of a toolkit that stands for a driver when programs are linked
bool integrated();
uint64_t total_memory();
// fault_due counts an event ("alloc", "launch", "call") and reports whether the
// environment asks for it to fail.
bool fault_due(const char *event);
// fault_once is fault_due for the N-th event alone.
bool fault_once(const char *event);

// fault_of reports whether the environment asks for a fault of a kernel: that the driver
// refuses its launches ("refuse"), or that what it writes is wrong ("wrong").
bool fault_of(const char *what, const std::string &kernel);
// Where the environment sets a clock, launches alone take time: clock_of tells how many
// milliseconds one of a kind ("launch", "cooperative", "node", "dependent") takes.
bool clock_set();
double clock_of(const char *event);

// The machine's sizes for a compute capability.
struct Limits {
	int multiprocessors, threads_per_multiprocessor, blocks_per_multiprocessor;
	int shared_per_multiprocessor, shared_per_block, shared_per_block_opt_in, reserved_shared;
};
Limits limits(int capability);

// Function is an entry of a module.
struct Function {
	const Kernel *kernel;
	int max_threads;   // of a block, by .maxntid
	int static_shared; // bytes
	int max_dynamic;   // bytes of dynamic shared memory, settable
	int ptx_version;   // 78 for 7.8
};

struct Module {
	std::map<std::string, Function> functions;
};

// load checks the text of a PTX file against the compiled kernels. The message says
// what is wrong with it.
Result load(const char *ptx, Module &m, std::string &message);

// Device memory and page-locked host memory.
Result allocate(uint64_t *p, size_t n);
Result release(uint64_t p);
Result allocate_host(void **p, size_t n);
Result release_host(void *p);
bool on_device(uint64_t p, size_t n); // all of it in one allocation
bool locked(const void *p);           // page-locked host memory
Result address_range(uint64_t *base, size_t *size, uint64_t p);
uint64_t allocated_bytes();
size_t device_allocations();
size_t host_allocations();

} // namespace emulation
#endif
