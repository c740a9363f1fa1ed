// Memory, and copies and fills of it.
#include "streams.h"

#include <algorithm>
#include <cstring>

#include "races.h"

using namespace emulation;

namespace {

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
