// The operating systems: Linux and Windows.
#include "system.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <cstdlib>
#include <sys/mman.h>
#endif

namespace emulation {

#if defined(_WIN32)
char *map_pages(size_t n)
{
	return static_cast<char *>(VirtualAlloc(nullptr, n, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

bool guard_page(char *p)
{
	DWORD old;
	return VirtualProtect(p, page, PAGE_NOACCESS, &old);
}

void unmap_pages(char *p, size_t) { VirtualFree(p, 0, MEM_RELEASE); }

// The C library has a copy of the environment, which Go programs do not change.
const char *environment(const char *name)
{
	static thread_local std::string value;
	const DWORD size = GetEnvironmentVariableA(name, nullptr, 0); // with the 0 at the end
	if (size == 0)
		return nullptr;
	value.resize(size);
	value.resize(GetEnvironmentVariableA(name, value.data(), size));
	return value.c_str();
}
#else
char *map_pages(size_t n)
{
	void *p = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? nullptr : static_cast<char *>(p);
}

bool guard_page(char *p) { return mprotect(p, page, PROT_NONE) == 0; }

void unmap_pages(char *p, size_t n) { munmap(p, n); }

const char *environment(const char *name) { return getenv(name); }
#endif

} // namespace emulation
