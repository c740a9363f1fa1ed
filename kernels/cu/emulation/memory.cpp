// Device and page-locked memory. An allocation ends where a page begins that cannot
// be touched, and the bytes around it must be unchanged when it is freed.
#include "driver.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "races.h"
#include "system.h"

namespace emulation {
namespace {

struct Allocation {
	size_t size; // asked for
	char *map;
	size_t mapped;
};
std::map<uint64_t, Allocation> allocations;
std::map<const void *, size_t> host;
uint64_t bytes;

const unsigned char garbage = 0xa5, untouched = 0x5a;

const size_t round_up = 16; // what the widest load reads at once

// The bytes around the allocation that share its pages.
template <class F> bool around(uint64_t p, const Allocation &a, F f)
{
	const auto *begin = reinterpret_cast<const char *>(p);
	for (char *q = a.map; q < begin; q++)
		if (!f(q))
			return false;
	for (char *q = a.map + (begin - a.map) + a.size; q < a.map + a.mapped - page; q++)
		if (!f(q))
			return false;
	return true;
}

const std::pair<const uint64_t, Allocation> *find(uint64_t p)
{
	auto it = allocations.upper_bound(p);
	if (it == allocations.begin())
		return nullptr;
	--it;
	return p < it->first + it->second.size ? &*it : nullptr;
}

} // namespace

Result allocate(uint64_t *p, size_t n)
{
	if (n == 0)
		return invalid_value;
	if (fault_due("alloc") || fault_once("one-alloc") || n > total_memory() || bytes + n > total_memory())
		return out_of_memory;
	Allocation a{n, nullptr, 0};
	const size_t size = (n + round_up - 1) / round_up * round_up;
	a.mapped = (size + page - 1) / page * page + page;
	a.map = map_pages(a.mapped);
	if (!a.map)
		return out_of_memory;
	char *begin = a.map + a.mapped - page - size;
	*p = reinterpret_cast<uint64_t>(begin);
	memset(begin, garbage, n);
	around(*p, a, [](char *q) { *q = (char)untouched; return true; });
	guard_page(a.map + a.mapped - page);
	races::allocated(*p, n);
	allocations[*p] = a;
	bytes += n;
	return success;
}

Result release(uint64_t p)
{
	const auto it = allocations.find(p);
	if (it == allocations.end())
		return invalid_value;
	const Allocation a = it->second;
	Result r = success;
	if (!around(p, a, [](char *q) { return (unsigned char)*q == untouched; })) {
		fprintf(stderr, "emulated driver: bytes around an allocation of %zu bytes were overwritten\n", a.size);
		r = illegal_address;
	}
	unmap_pages(a.map, a.mapped);
	races::freed(p);
	bytes -= a.size;
	allocations.erase(it);
	return r;
}

Result allocate_host(void **p, size_t n)
{
	if (n == 0)
		return invalid_value;
	if (fault_due("alloc") || fault_once("one-alloc") || fault_due("host-alloc"))
		return out_of_memory;
	// A page that cannot be touched lies behind it: kernels may use it, too.
	const size_t size = (n + round_up - 1) / round_up * round_up, mapped = (size + page - 1) / page * page + page;
	char *m = map_pages(mapped);
	if (!m)
		return out_of_memory;
	guard_page(m + mapped - page);
	*p = m + mapped - page - size;
	memset(*p, garbage, n);
	races::allocated(reinterpret_cast<uint64_t>(*p), n);
	host[*p] = n;
	return success;
}

Result release_host(void *p)
{
	const auto it = host.find(p);
	if (it == host.end())
		return invalid_value;
	races::freed(reinterpret_cast<uint64_t>(p));
	const auto first = reinterpret_cast<uintptr_t>(p) / page * page;
	unmap_pages(reinterpret_cast<char *>(first), (it->second + reinterpret_cast<uintptr_t>(p) - first + page - 1) / page * page + page);
	host.erase(it);
	return success;
}

bool on_device(uint64_t p, size_t n)
{
	// Page-locked memory has the same address on the device.
	const auto it = host.upper_bound(reinterpret_cast<const void *>(p));
	if (it != host.begin()) {
		const auto &h = *std::prev(it);
		const uint64_t at = p - reinterpret_cast<uint64_t>(h.first);
		if (at < h.second)
			return n <= h.second - at;
	}
	const auto *a = find(p);
	return a && n <= a->second.size - (p - a->first);
}

bool locked(const void *p)
{
	auto it = host.upper_bound(p);
	if (it == host.begin())
		return false;
	--it;
	return static_cast<const char *>(p) < static_cast<const char *>(it->first) + it->second;
}

Result address_range(uint64_t *base, size_t *size, uint64_t p)
{
	const auto *a = find(p);
	if (!a)
		return not_found;
	if (base)
		*base = a->first;
	if (size)
		*size = a->second.size;
	return success;
}

uint64_t allocated_bytes() { return bytes; }
size_t device_allocations() { return allocations.size(); }
size_t host_allocations() { return host.size(); }

} // namespace emulation
