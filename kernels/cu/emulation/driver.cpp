// The functions of the CUDA driver API that the CUDA backend calls, on the emulated
// device. Names, numbers and meanings are those of the driver API's reference.
//
// What is put on a stream is done when somebody waits for it, not before: who reads
// results or reuses page-locked memory too early sees it.
#include "driver.h"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "races.h"

using namespace emulation;

namespace {

// A launch, with parameters that lie one behind the other, each on a multiple of 16 bytes,
// as kernels translated from PTX have them.
struct KernelLaunch {
	std::vector<uint64_t> values;
	std::vector<void *> pointers;
	Launch launch;
	double takes; // ms
	~KernelLaunch() { forget(launch); }
};

// What is put on a stream: a launch, or something else.
struct Operation {
	std::function<Result()> run;
	std::shared_ptr<KernelLaunch> kernel;
	template <class F, class = std::enable_if_t<std::is_invocable_v<F>>> Operation(F run) : run(std::move(run)) {}
	Operation(std::shared_ptr<KernelLaunch> kernel) : kernel(std::move(kernel)) {}
};
using Work = std::deque<Operation>;

struct Context;

struct Stream {
	Context *context;
	unsigned flags;
	Work queue;
	bool capturing = false, spoiled = false;
	int capture_mode = 0;
	std::thread::id capture_thread;
	Work captured;
};

struct Context {
	Result error = success; // once a kernel has failed, every call returns this
	int retained = 0;       // of the primary context
	unsigned flags = 0;     // how threads wait
	Stream null{this, 0, {}, false, false, 0, {}, {}};
	std::set<Stream *> streams;
};

// What an event was recorded for last. Who waits for it means this one, though the event
// may be recorded again, or destroyed, before.
struct Record {
	Context *context;
	Stream *stream;
	double time = -1; // ms; negative until it is reached
};

struct Event {
	unsigned flags;
	std::shared_ptr<Record> record;
};

struct Graph {
	Work work;
};

std::mutex mutex;
bool initialized;
Context primary;
thread_local std::vector<Context *> contexts;
std::set<Context *> made;
std::set<Stream *> all_streams;
std::set<Event *> events;
std::set<Graph *> graphs, executables;
std::set<Module *> modules;

double launched; // ms that launches have taken, where the environment sets the clock

double now()
{
	if (clock_set())
		return launched;
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

Context *context() { return contexts.empty() ? nullptr : contexts.back(); }

#define API(name, ...) extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__)

#define ENTER \
	std::lock_guard<std::mutex> lock(mutex); \
	if (fault_due("removed")) \
		return device_unavailable; \
	if (!initialized) \
		return not_initialized;

#define ENTER_CONTEXT \
	ENTER; \
	Context *const c = context(); \
	if (!c) \
		return invalid_context; \
	if (c->error) \
		return c->error;

// Calls that must not be made while a stream records.
#define NOT_CAPTURING \
	if (forbidden_by_capture()) \
		return capture_unsupported;

bool forbidden_by_capture()
{
	for (Stream *s : all_streams)
		if (s->capturing && (s->capture_mode == 0 || (s->capture_mode == 1 && s->capture_thread == std::this_thread::get_id()))) {
			s->spoiled = true;
			return true;
		}
	return false;
}

// Runs a kernel; next is what comes after it on the stream.
Result execute(KernelLaunch &k, const Operation *next)
{
	if (fault_due("launch"))
		return launch_failed;
	launched += k.takes;
	Launch *const dependent = next && next->kernel && next->kernel->launch.dependent ? &next->kernel->launch : nullptr;
	switch (emulation::launch(k.launch, dependent)) {
	case Fault::none: return success;
	case Fault::illegal_address: return illegal_address;
	default: return launch_failed;
	}
}

Result step(Stream &s)
{
	if (s.queue.empty())
		return success;
	const Operation op = std::move(s.queue.front());
	s.queue.pop_front();
	const Result r = op.kernel ? execute(*op.kernel, s.queue.empty() ? nullptr : &s.queue.front()) : op.run();
	if (r != success) {
		s.context->error = r;
		s.context->null.queue.clear();
		for (Stream *other : s.context->streams)
			other->queue.clear();
	}
	return r;
}

Result drain(Stream &s)
{
	while (!s.queue.empty())
		if (const Result r = step(s))
			return r;
	return success;
}

// Does the work of a stream until a record is reached.
Result reach(const std::shared_ptr<Record> &r)
{
	while (r && r->time < 0 && (all_streams.count(r->stream) || r->stream == &r->context->null) && !r->stream->queue.empty())
		if (const Result failed = step(*r->stream))
			return failed;
	return success;
}

Result drain(Context &c)
{
	if (const Result r = drain(c.null))
		return r;
	const std::set<Stream *> streams = c.streams;
	for (Stream *s : streams)
		if (const Result r = drain(*s))
			return r;
	return c.error;
}

// The null stream waits for all streams that were not made to be independent of it.
Result drain_blocking(Context &c)
{
	if (const Result r = drain(c.null))
		return r;
	const std::set<Stream *> streams = c.streams;
	for (Stream *s : streams)
		if (!(s->flags & 1))
			if (const Result r = drain(*s))
				return r;
	return success;
}

Stream *stream_of(Context *c, void *handle)
{
	if (!handle || handle == reinterpret_cast<void *>(1) || handle == reinterpret_cast<void *>(2))
		return &c->null;
	auto *s = static_cast<Stream *>(handle);
	return c->streams.count(s) ? s : nullptr;
}

#define STREAM(handle) \
	Stream *const s = stream_of(c, handle); \
	if (!s) \
		return invalid_handle;

Result put(Stream *s, Operation op)
{
	if (s->capturing) {
		s->captured.push_back(std::move(op));
		return success;
	}
	// What is on the null stream comes before, unless the stream is independent of it.
	Stream *const null = &s->context->null;
	if (s != null && !(s->flags & 1) && !null->queue.empty())
		s->queue.push_back([=] { return drain(*null); });
	s->queue.push_back(std::move(op));
	return success;
}

Result copy_in(uint64_t to, const void *from, size_t n)
{
	memcpy(reinterpret_cast<void *>(to), from, n);
	races::written(to, n);
	return success;
}

// The copy of memory that is not page-locked, of which the bytes are taken now.
Operation staged_copy(uint64_t to, const void *from, size_t n)
{
	const auto *bytes = static_cast<const char *>(from);
	auto staged = std::make_shared<std::vector<char>>(bytes, bytes + n);
	return [=] { return copy_in(to, staged->data(), n); };
}

} // namespace

// Initialisation and devices.

API(cuInit, unsigned flags)
{
	std::lock_guard<std::mutex> lock(mutex);
	if (flags)
		return invalid_value;
	if (stub())
		return stub_library;
	if (absent())
		return no_device;
	initialized = true;
	return success;
}

API(cuDriverGetVersion, int *version)
{
	*version = driver_version();
	return success;
}

API(cuDeviceGetCount, int *n)
{
	ENTER;
	*n = absent() ? 0 : 1;
	return success;
}

API(cuDeviceGet, int *device, int ordinal)
{
	ENTER;
	*device = 0;
	return ordinal ? invalid_device : success;
}

API(cuDeviceGetName, char *name, int n, int device)
{
	ENTER;
	snprintf(name, n, "Emulated device (sm_%d)", compute_capability());
	return device ? invalid_device : success;
}

API(cuDeviceGetUuid, unsigned char *uuid, int)
{
	ENTER;
	memcpy(uuid, "bitcnn emulator!", 16);
	return success;
}

API(cuDeviceTotalMem_v2, size_t *n, int)
{
	ENTER;
	*n = total_memory();
	return success;
}

API(cuDeviceGetAttribute, int *v, int attribute, int)
{
	ENTER;
	const int capability = compute_capability();
	const Limits l = limits(capability);
	const struct { int attribute, value; } table[] = {
		{1, 1024}, {2, 1024}, {3, 1024}, {4, 64},        // threads of a block, its x, y, z
		{5, INT_MAX}, {6, 65535}, {7, 65535},            // blocks of a grid in x, y, z
		{8, l.shared_per_block}, {9, 64 << 10}, {10, 32}, // shared and constant memory, warp
		{11, INT_MAX}, {12, 65536}, {13, 1000000},       // pitch, registers of a block, clock in kHz
		{14, 512}, {15, 1}, {16, l.multiprocessors},     // alignment of textures, overlap of copies
		{18, integrated()}, {19, 1}, {31, 1}, {36, 1000000}, {37, 64},       // integrated, mapped memory, concurrent kernels, memory clock and bus
		{38, 1 << 20}, {39, l.threads_per_multiprocessor}, {40, 1}, {41, 1}, // second-level cache, engines, addresses
		{75, capability / 10}, {76, capability % 10}, {78, 1},
		{81, l.shared_per_multiprocessor}, {82, 65536},
		{95, capability >= 60}, {97, l.shared_per_block_opt_in}, // cooperative launches
		{106, l.blocks_per_multiprocessor}, {111, l.reserved_shared},
		// Ours: what is alive, for tests of leaks.
		{10000, (int)device_allocations()}, {10001, (int)host_allocations()}, {10002, (int)modules.size()},
		{10003, (int)all_streams.size()}, {10004, (int)events.size()}, {10005, (int)graphs.size()},
		{10006, (int)executables.size()}, {10007, (int)made.size() + (primary.retained > 0)},
	};
	*v = 0;
	if (attribute == 10008) // entries that were compiled
		for (const Module *m : modules)
			*v += (int)m->functions.size();
	for (const auto &a : table)
		if (a.attribute == attribute)
			*v = a.value;
	return success;
}

// Contexts.

API(cuCtxCreate_v2, void **handle, unsigned, int device)
{
	ENTER;
	if (device)
		return invalid_device;
	auto *c = new Context;
	made.insert(c);
	contexts.push_back(c);
	*handle = c;
	return success;
}

// Ends all streams of a context. Its memory must be freed before.
static void end(Context *c)
{
	for (Stream *s : c->streams) {
		all_streams.erase(s);
		delete s;
	}
	c->streams.clear();
	c->null.queue.clear();
	c->error = success;
}

API(cuCtxDestroy_v2, void *handle)
{
	ENTER;
	auto *c = static_cast<Context *>(handle);
	if (!made.erase(c))
		return invalid_context;
	end(c);
	if (context() == c)
		contexts.pop_back();
	delete c;
	return success;
}

API(cuDevicePrimaryCtxRetain, void **handle, int device)
{
	ENTER;
	if (device)
		return invalid_device;
	primary.retained++;
	*handle = &primary;
	return success;
}

API(cuDevicePrimaryCtxRelease_v2, int)
{
	ENTER;
	if (primary.retained == 0)
		return invalid_context;
	if (--primary.retained == 0)
		end(&primary);
	return success;
}

API(cuDevicePrimaryCtxSetFlags_v2, int device, unsigned flags)
{
	ENTER;
	if (device)
		return invalid_device;
	primary.flags = flags;
	return success;
}

API(cuDevicePrimaryCtxReset_v2, int)
{
	ENTER;
	end(&primary);
	return success;
}

API(cuDevicePrimaryCtxGetState, int, unsigned *flags, int *active)
{
	ENTER;
	*flags = primary.flags;
	*active = primary.retained > 0;
	return success;
}

API(cuCtxSetCurrent, void *handle)
{
	ENTER;
	auto *c = static_cast<Context *>(handle);
	if (c && c != &primary && !made.count(c))
		return invalid_context;
	if (!contexts.empty())
		contexts.pop_back();
	if (c)
		contexts.push_back(c);
	return success;
}

API(cuCtxPushCurrent_v2, void *handle)
{
	ENTER;
	auto *c = static_cast<Context *>(handle);
	if (c != &primary && !made.count(c))
		return invalid_context;
	contexts.push_back(c);
	return success;
}

API(cuCtxPopCurrent_v2, void **handle)
{
	ENTER;
	if (contexts.empty())
		return invalid_context;
	if (handle)
		*handle = contexts.back();
	contexts.pop_back();
	return success;
}

API(cuCtxGetCurrent, void **handle)
{
	ENTER;
	*handle = context();
	return success;
}

API(cuCtxGetDevice, int *device)
{
	ENTER_CONTEXT;
	*device = 0;
	return success;
}

API(cuCtxSynchronize)
{
	ENTER_CONTEXT;
	NOT_CAPTURING;
	return drain(*c);
}

// Modules and functions.

static Result load_module(void **handle, const char *ptx, std::string &message)
{
	auto m = std::make_unique<Module>();
	const Result r = load(ptx, *m, message);
	if (r != success)
		return r;
	modules.insert(m.get());
	*handle = m.release();
	return success;
}

API(cuModuleLoadDataEx, void **handle, const void *image, unsigned n, int *options, void **values)
{
	ENTER_CONTEXT;
	NOT_CAPTURING;
	std::string message;
	const Result r = load_module(handle, static_cast<const char *>(image), message);
	if (r == success)
		return r;
	char *log = nullptr;
	size_t size = 0;
	for (unsigned i = 0; i < n; i++) {
		if (options[i] == 5) // CU_JIT_ERROR_LOG_BUFFER
			log = static_cast<char *>(values[i]);
		if (options[i] == 6)
			size = reinterpret_cast<size_t>(values[i]);
	}
	if (log && size)
		snprintf(log, size, "%s", message.c_str());
	else
		fprintf(stderr, "emulated driver: %s\n", message.c_str());
	return r;
}

API(cuModuleLoadData, void **handle, const void *image)
{
	return cuModuleLoadDataEx(handle, image, 0, nullptr, nullptr);
}

API(cuModuleUnload, void *handle)
{
	ENTER;
	auto *m = static_cast<Module *>(handle);
	if (!modules.erase(m))
		return invalid_handle;
	delete m;
	return success;
}

API(cuModuleGetFunction, void **f, void *handle, const char *name)
{
	ENTER_CONTEXT;
	auto *m = static_cast<Module *>(handle);
	if (!modules.count(m))
		return invalid_handle;
	const auto it = m->functions.find(name);
	if (it == m->functions.end())
		return not_found;
	*f = &it->second;
	return success;
}

API(cuFuncGetAttribute, int *v, int attribute, void *handle)
{
	ENTER_CONTEXT;
	const auto *f = static_cast<Function *>(handle);
	switch (attribute) {
	case 0: *v = f->max_threads; break;
	case 1: *v = f->static_shared; break;
	case 5: *v = f->ptx_version; break;
	case 6: *v = compute_capability(); break;
	case 8: *v = f->max_dynamic; break;
	case 2: case 3: case 4: case 7: case 9: *v = 0; break; // constants, stack, registers: not known
	default: return invalid_value;
	}
	return success;
}

API(cuFuncSetAttribute, void *handle, int attribute, int v)
{
	ENTER_CONTEXT;
	auto *f = static_cast<Function *>(handle);
	if (attribute == 9) // preferred part of the cache: no effect
		return success;
	if (attribute != 8 || v < 0 || v > limits(compute_capability()).shared_per_block_opt_in - f->static_shared)
		return invalid_value;
	f->max_dynamic = v;
	return success;
}

API(cuFuncSetCacheConfig, void *, int)
{
	ENTER_CONTEXT;
	return success;
}

// Blocks of the function that fit on a multiprocessor, registers left out: how many
// a real compiler would use is not known here.
static int occupancy(const Function *f, int threads, size_t dynamic)
{
	const Limits l = limits(compute_capability());
	if (threads <= 0 || threads > f->max_threads || dynamic > (size_t)f->max_dynamic)
		return 0;
	const int shared = f->static_shared + (int)dynamic + l.reserved_shared;
	int n = std::min(l.blocks_per_multiprocessor, l.threads_per_multiprocessor / ((threads + 31) / 32 * 32));
	if (shared > 0)
		n = std::min(n, l.shared_per_multiprocessor / shared);
	return n;
}

API(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *n, void *f, int threads, size_t dynamic)
{
	ENTER_CONTEXT;
	*n = occupancy(static_cast<Function *>(f), threads, dynamic);
	return success;
}

// Launches.

static Result put_launch(Stream *s, const Function *f, dim3 grid, dim3 block, size_t dynamic, void **parameters, bool cooperative,
	bool dependent = false)
{
	const uint64_t threads = block.count();
	if (!f || !grid.count() || !threads || grid.x > INT_MAX || grid.y > 65535 || grid.z > 65535 || block.x > 1024 ||
		block.y > 1024 || block.z > 64 || threads > 1024)
		return invalid_value;
	if (threads > (uint64_t)f->max_threads || dynamic > (size_t)f->max_dynamic)
		return threads > (uint64_t)f->max_threads ? launch_out_of_resources : invalid_value;
	if (cooperative) {
		if (compute_capability() < 60)
			return not_supported;
		const Limits l = limits(compute_capability());
		if (grid.count() > (uint64_t)occupancy(f, threads, dynamic) * l.multiprocessors || fault_due("cooperative"))
			return cooperative_launch_too_large;
		if (s->capturing && fault_due("capture")) { // as older drivers, which record none
			s->spoiled = true;
			return capture_unsupported;
		}
	}
	if (refused(f->kernel->name))
		return launch_out_of_resources;
	if (!parameters && !f->kernel->sizes.empty())
		return invalid_value;
	if (dependent && (compute_capability() < 90 || driver_version() < 12030 || fault_due("dependent"))) {
		s->spoiled = s->capturing;
		return not_supported;
	}
	auto p = std::make_shared<KernelLaunch>(); // the parameters are read now
	const auto words = [](size_t size) { return (size + 15) / 16 * 2; };
	size_t n = 0;
	for (size_t size : f->kernel->sizes)
		n += words(size);
	p->values.resize(n);
	uint64_t *to = p->values.data();
	for (size_t i = 0; i < f->kernel->sizes.size(); i++) {
		const size_t size = f->kernel->sizes[i];
		memcpy(to, parameters[i], size);
		p->pointers.push_back(to);
		to += words(size);
	}
	p->takes = clock_of(s->capturing ? "node" : cooperative ? "cooperative" : "launch");
	if (dependent && clock_of("dependent") > 0)
		p->takes = clock_of("dependent");
	p->launch = {f->kernel, p->pointers.data(), grid, block, dynamic, cooperative, dependent};
	return put(s, p);
}

API(cuLaunchKernel, void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
	void *stream, void **parameters, void **extra)
{
	ENTER_CONTEXT;
	STREAM(stream);
	if (extra)
		return not_supported;
	return put_launch(s, static_cast<Function *>(f), dim3(gx, gy, gz), dim3(bx, by, bz), shared, parameters, false);
}

API(cuLaunchCooperativeKernel, void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
	unsigned shared, void *stream, void **parameters)
{
	ENTER_CONTEXT;
	STREAM(stream);
	return put_launch(s, static_cast<Function *>(f), dim3(gx, gy, gz), dim3(bx, by, bz), shared, parameters, true);
}

// CUlaunchConfig and CUlaunchAttribute.
struct Attribute {
	int id, padding;
	union {
		char bytes[64];
		int allowed;
	} value;
};
struct Config {
	unsigned gx, gy, gz, bx, by, bz, shared;
	void *stream;
	const Attribute *attributes;
	unsigned count;
};

API(cuLaunchKernelEx, const Config *l, void *f, void **parameters, void **extra)
{
	ENTER_CONTEXT;
	STREAM(l->stream);
	bool dependent = false;
	for (unsigned i = 0; i < l->count; i++) {
		if (l->attributes[i].id != 6) // programmatic stream serialization
			return not_supported;
		dependent = l->attributes[i].value.allowed;
	}
	if (extra)
		return not_supported;
	return put_launch(s, static_cast<Function *>(f), dim3(l->gx, l->gy, l->gz), dim3(l->bx, l->by, l->bz), l->shared, parameters,
		false, dependent);
}

// Memory.

API(cuMemAlloc_v2, uint64_t *p, size_t n)
{
	ENTER_CONTEXT;
	NOT_CAPTURING;
	return allocate(p, n);
}

API(cuMemFree_v2, uint64_t p)
{
	ENTER_CONTEXT;
	NOT_CAPTURING;
	if (p == 0)
		return success;
	if (const Result r = drain(*c))
		return r;
	return release(p);
}

API(cuMemHostAlloc, void **p, size_t n, unsigned)
{
	ENTER_CONTEXT;
	NOT_CAPTURING;
	return allocate_host(p, n);
}

API(cuMemAllocHost_v2, void **p, size_t n) { return cuMemHostAlloc(p, n, 0); }

API(cuMemFreeHost, void *p)
{
	ENTER_CONTEXT;
	NOT_CAPTURING;
	if (const Result r = drain(*c))
		return r;
	return release_host(p);
}

API(cuMemGetInfo_v2, size_t *free, size_t *total)
{
	ENTER_CONTEXT;
	*total = total_memory();
	*free = *total - std::min<uint64_t>(*total, allocated_bytes());
	return success;
}

API(cuMemGetAddressRange_v2, uint64_t *base, size_t *n, uint64_t p)
{
	ENTER_CONTEXT;
	return address_range(base, n, p);
}

API(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t n)
{
	ENTER_CONTEXT;
	NOT_CAPTURING;
	if (!on_device(to, n))
		return invalid_value;
	if (const Result r = drain_blocking(*c))
		return r;
	if (locked(from))
		return copy_in(to, from, n);
	// Of memory that is not page-locked the call returns as soon as it has been copied to
	// staging memory: streams that are independent of the null stream may be ahead of it.
	return put(&c->null, staged_copy(to, from, n));
}

API(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t n)
{
	ENTER_CONTEXT;
	NOT_CAPTURING;
	if (!on_device(from, n))
		return invalid_value;
	if (const Result r = drain_blocking(*c))
		return r;
	memcpy(to, reinterpret_cast<void *>(from), n);
	return success;
}

API(cuMemcpyDtoD_v2, uint64_t to, uint64_t from, size_t n)
{
	ENTER_CONTEXT;
	NOT_CAPTURING;
	if (!on_device(from, n) || !on_device(to, n))
		return invalid_value;
	if (const Result r = drain_blocking(*c))
		return r;
	return copy_in(to, reinterpret_cast<void *>(from), n);
}

API(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t n, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	if (!on_device(to, n))
		return invalid_value;
	if (locked(from))
		return put(s, [=] { return copy_in(to, from, n); });
	if (s->capturing)
		return capture_unsupported;
	return put(s, staged_copy(to, from, n));
}

API(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t n, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	if (!on_device(from, n))
		return invalid_value;
	const Operation op = [=] {
		memcpy(to, reinterpret_cast<void *>(from), n);
		return success;
	};
	if (locked(to))
		return put(s, op);
	if (s->capturing)
		return capture_unsupported;
	put(s, op);
	return drain(*s);
}

API(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t n, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	if (!on_device(from, n) || !on_device(to, n))
		return invalid_value;
	return put(s, [=] { return copy_in(to, reinterpret_cast<void *>(from), n); });
}

// Page-locked memory has the same address on the device.
API(cuMemcpyAsync, uint64_t to, uint64_t from, size_t n, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	if (!on_device(from, n) || !on_device(to, n))
		return invalid_value;
	return put(s, [=] { return copy_in(to, reinterpret_cast<void *>(from), n); });
}

API(cuPointerGetAttribute, void *v, int attribute, uint64_t p)
{
	ENTER_CONTEXT;
	const bool host = locked(reinterpret_cast<void *>(p));
	if (!host && !on_device(p, 1))
		return invalid_value;
	switch (attribute) {
	case 2: *static_cast<unsigned *>(v) = host ? 1 : 2; break; // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
	case 9: *static_cast<int *>(v) = 0; break;                 // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
	default: return invalid_value;
	}
	return success;
}

template <class T> static Operation fill(uint64_t to, T v, size_t n)
{
	return [=] {
		for (size_t i = 0; i < n; i++)
			reinterpret_cast<T *>(to)[i] = v;
		races::written(to, n * sizeof v);
		return success;
	};
}

template <class T> static int set_now(uint64_t to, T v, size_t n)
{
	ENTER_CONTEXT;
	NOT_CAPTURING;
	if (!on_device(to, n * sizeof v))
		return invalid_value;
	return put(&c->null, fill(to, v, n));
}

template <class T> static int set_on(uint64_t to, T v, size_t n, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	if (!on_device(to, n * sizeof v))
		return invalid_value;
	return put(s, fill(to, v, n));
}

API(cuMemsetD8_v2, uint64_t to, unsigned char v, size_t n) { return set_now(to, v, n); }
API(cuMemsetD16_v2, uint64_t to, unsigned short v, size_t n) { return set_now(to, v, n); }
API(cuMemsetD32_v2, uint64_t to, unsigned v, size_t n) { return set_now(to, v, n); }
API(cuMemsetD8Async, uint64_t to, unsigned char v, size_t n, void *stream) { return set_on(to, v, n, stream); }
API(cuMemsetD16Async, uint64_t to, unsigned short v, size_t n, void *stream) { return set_on(to, v, n, stream); }
API(cuMemsetD32Async, uint64_t to, unsigned v, size_t n, void *stream) { return set_on(to, v, n, stream); }

// Streams and events.

API(cuStreamCreate, void **handle, unsigned flags)
{
	ENTER_CONTEXT;
	auto *s = new Stream{c, flags, {}, false, false, 0, {}, {}};
	c->streams.insert(s);
	all_streams.insert(s);
	*handle = s;
	return success;
}

API(cuStreamCreateWithPriority, void **handle, unsigned flags, int) { return cuStreamCreate(handle, flags); }

// Of streams of other contexts, too.
API(cuStreamGetCtx, void *handle, void **to)
{
	ENTER_CONTEXT;
	Stream *s = stream_of(c, handle);
	if (!s && all_streams.count(static_cast<Stream *>(handle)))
		s = static_cast<Stream *>(handle);
	if (!s)
		return invalid_handle;
	*to = s->context;
	return success;
}

API(cuStreamDestroy_v2, void *handle)
{
	ENTER;
	auto *s = static_cast<Stream *>(handle);
	if (!all_streams.count(s))
		return invalid_handle;
	Context *c = s->context;
	const Result r = c->error ? success : drain(*s);
	c->streams.erase(s);
	all_streams.erase(s);
	for (Event *e : events)
		if (e->record && e->record->stream == s)
			e->record.reset();
	delete s;
	return r;
}

API(cuStreamSynchronize, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	if (s->capturing) {
		s->spoiled = true;
		return capture_unsupported;
	}
	return drain(*s);
}

// A call does a part of the work, so that who asks again and again gets to the end.
API(cuStreamQuery, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	if (s->capturing) {
		s->spoiled = true;
		return capture_unsupported;
	}
	if (s->queue.empty())
		return success;
	const Result r = step(*s);
	return r ? r : not_ready;
}

API(cuStreamWaitEvent, void *stream, void *event, unsigned)
{
	ENTER_CONTEXT;
	STREAM(stream);
	auto *e = static_cast<Event *>(event);
	if (!events.count(e))
		return invalid_handle;
	const auto record = e->record;
	if (!record || record->stream == s)
		return success;
	return put(s, [=] { return reach(record); });
}

API(cuEventCreate, void **handle, unsigned flags)
{
	ENTER_CONTEXT;
	auto *e = new Event{flags, nullptr};
	events.insert(e);
	*handle = e;
	return success;
}

API(cuEventDestroy_v2, void *handle)
{
	ENTER;
	auto *e = static_cast<Event *>(handle);
	if (!events.count(e))
		return invalid_handle;
	events.erase(e);
	delete e;
	return success;
}

API(cuEventRecord, void *handle, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	auto *e = static_cast<Event *>(handle);
	if (!events.count(e))
		return invalid_handle;
	const auto record = e->record = std::make_shared<Record>(Record{c, s});
	return put(s, [=] {
		record->time = now();
		return success;
	});
}

API(cuEventSynchronize, void *handle)
{
	ENTER_CONTEXT;
	NOT_CAPTURING;
	auto *e = static_cast<Event *>(handle);
	if (!events.count(e))
		return invalid_handle;
	return reach(e->record);
}

API(cuEventQuery, void *handle)
{
	ENTER_CONTEXT;
	auto *e = static_cast<Event *>(handle);
	if (!events.count(e))
		return invalid_handle;
	if (e->record && e->record->time < 0 && !e->record->stream->queue.empty()) {
		const Result r = step(*e->record->stream);
		return r ? r : not_ready;
	}
	return success;
}

API(cuEventElapsedTime, float *ms, void *from, void *to)
{
	ENTER_CONTEXT;
	const auto *a = static_cast<Event *>(from), *b = static_cast<Event *>(to);
	if (!a->record || !b->record || (a->flags | b->flags) & 2) // without times
		return invalid_handle;
	if (a->record->time < 0 || b->record->time < 0)
		return not_ready;
	*ms = (float)(b->record->time - a->record->time);
	return success;
}

// Graphs.

API(cuStreamBeginCapture_v2, void *stream, int mode)
{
	ENTER_CONTEXT;
	STREAM(stream);
	if (s == &c->null || s->capturing)
		return capture_unsupported;
	s->capturing = true;
	s->spoiled = false;
	s->capture_mode = mode;
	s->capture_thread = std::this_thread::get_id();
	s->captured.clear();
	return success;
}

API(cuStreamEndCapture, void *stream, void **handle)
{
	ENTER_CONTEXT;
	STREAM(stream);
	*handle = nullptr;
	if (!s->capturing)
		return invalid_value;
	s->capturing = false;
	if (s->spoiled)
		return capture_invalidated;
	auto *g = new Graph{std::move(s->captured)};
	graphs.insert(g);
	*handle = g;
	return success;
}

API(cuStreamIsCapturing, void *stream, int *status)
{
	ENTER_CONTEXT;
	STREAM(stream);
	*status = !s->capturing ? 0 : s->spoiled ? 2 : 1;
	return success;
}

API(cuGraphInstantiateWithFlags, void **handle, void *graph, unsigned long long)
{
	ENTER_CONTEXT;
	auto *g = static_cast<Graph *>(graph);
	if (!graphs.count(g))
		return invalid_handle;
	auto *e = new Graph(*g);
	executables.insert(e);
	*handle = e;
	return success;
}

API(cuGraphInstantiate_v2, void **handle, void *graph, void **, char *, size_t)
{
	return cuGraphInstantiateWithFlags(handle, graph, 0);
}

API(cuGraphUpload, void *, void *)
{
	ENTER_CONTEXT;
	return success;
}

API(cuGraphLaunch, void *handle, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	auto *e = static_cast<Graph *>(handle);
	if (!executables.count(e))
		return invalid_handle;
	for (const Operation &op : e->work)
		put(s, op);
	return success;
}

API(cuGraphDestroy, void *handle)
{
	ENTER;
	auto *g = static_cast<Graph *>(handle);
	if (!graphs.erase(g))
		return invalid_handle;
	delete g;
	return success;
}

API(cuGraphExecDestroy, void *handle)
{
	ENTER;
	auto *e = static_cast<Graph *>(handle);
	if (!executables.erase(e))
		return invalid_handle;
	delete e;
	return success;
}

// Names of errors.

static const struct { int result; const char *name, *text; } names[] = {
	{success, "CUDA_SUCCESS", "no error"},
	{invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{device_unavailable, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device is busy or unavailable"},
	{no_device, "CUDA_ERROR_NO_DEVICE", "no device was found"},
	{invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{invalid_image, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{no_binary_for_gpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
	{invalid_ptx, "CUDA_ERROR_INVALID_PTX", "a PTX compilation failed"},
	{unsupported_ptx_version, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX was compiled with an unsupported toolchain"},
	{file_not_found, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
	{invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{not_found, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{not_ready, "CUDA_ERROR_NOT_READY", "device not ready"},
	{illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{launch_out_of_resources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
	{launch_failed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	{cooperative_launch_too_large, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
	{not_supported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{capture_unsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
	{capture_invalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
};

API(cuGetErrorName, int result, const char **s)
{
	if (stub())
		return stub_library;
	for (const auto &n : names)
		if (n.result == result) {
			*s = n.name;
			return success;
		}
	*s = nullptr;
	return invalid_value;
}

API(cuGetErrorString, int result, const char **s)
{
	for (const auto &n : names)
		if (n.result == result) {
			*s = n.text;
			return success;
		}
	*s = nullptr;
	return invalid_value;
}
