// Modules, functions and launches.
#include "streams.h"

#include <climits>
#include <cstdio>
#include <cstring>

using namespace emulation;

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
	if (fault_of("refuse", f->kernel->name))
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
