// The functions of the CUDA driver API that the CUDA backend calls, on the emulated
// device: here those for devices, contexts and the names of errors, in launches.cpp,
// copies.cpp, streams.cpp and graphs.cpp the others. Names, numbers and meanings are those
// of the driver API's reference.
#include "streams.h"

#include <climits>
#include <cstdio>
#include <cstring>

using namespace emulation;

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
