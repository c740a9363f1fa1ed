// What the environment asks of the emulated device.
#include "driver.h"
#include "system.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulation {

namespace {
const char *setting(const char *name)
{
	const char *s = environment(name);
	return s ? s : "";
}
} // namespace

int compute_capability()
{
	int major = 9, minor = 0;
	const char *s = setting("BCNN_EMULATOR_CAPABILITY");
	if (*s && (sscanf(s, "%d.%d", &major, &minor) != 2 || major < 1 || minor < 0 || minor > 9)) {
		fprintf(stderr, "emulated driver: BCNN_EMULATOR_CAPABILITY is %s: want, for instance, 7.5\n", s);
		return 90;
	}
	return 10 * major + minor;
}

// Faults are given as EVENT:N, separated by commas: the N-th event from now, and
// all after it, fail.
namespace {
long fault_at(const char *event)
{
	const size_t n = strlen(event);
	for (const char *s = setting("BCNN_EMULATOR_FAULT"); *s;) {
		if (strncmp(s, event, n) == 0) {
			if (s[n] == ':')
				return atol(s + n + 1);
			if (s[n] == 0 || s[n] == ',')
				return 1;
		}
		s += strcspn(s, ",");
		s += *s == ',';
	}
	return 0;
}
} // namespace

bool fault_due(const char *event)
{
	static std::map<std::string, long> counts;
	static std::string last;
	if (last != setting("BCNN_EMULATOR_FAULT")) { // counting begins anew
		last = setting("BCNN_EMULATOR_FAULT");
		counts.clear();
	}
	const long at = fault_at(event);
	return at > 0 && ++counts[event] >= at;
}

bool fault_once(const char *event)
{
	static std::map<std::string, long> counts;
	static std::string last;
	if (last != setting("BCNN_EMULATOR_FAULT")) {
		last = setting("BCNN_EMULATOR_FAULT");
		counts.clear();
	}
	const long at = fault_at(event);
	return at > 0 && ++counts[event] == at;
}

bool fault_of(const char *what, const std::string &kernel)
{
	const std::string one = std::string(what) + ":" + kernel;
	const size_t n = one.size();
	for (const char *s = setting("BCNN_EMULATOR_FAULT"); *s; s += *s == ',') {
		const size_t length = strcspn(s, ",");
		if (length == n && strncmp(s, one.c_str(), n) == 0)
			return true;
		s += length;
	}
	return false;
}

double clock_of(const char *event)
{
	const size_t n = strlen(event);
	for (const char *s = setting("BCNN_EMULATOR_CLOCK"); *s; s += *s == ',') {
		if (strncmp(s, event, n) == 0 && s[n] == ':')
			return atof(s + n + 1) * 1e-3;
		s += strcspn(s, ",");
	}
	return 0;
}

bool clock_set() { return *setting("BCNN_EMULATOR_CLOCK"); }

bool absent() { return fault_at("absent") > 0; }

bool stub() { return fault_at("stub") > 0; }

bool integrated() { return fault_at("integrated") > 0; }

int driver_version()
{
	const long version = fault_at("driver");
	return version > 1 ? (int)version : 12040;
}

uint64_t total_memory()
{
	const char *s = setting("BCNN_EMULATOR_MEMORY");
	return *s ? strtoull(s, nullptr, 10) : 1ull << 30;
}

// From the CUDA programming guide, table of technical specifications; few
// multiprocessors, so that grids which fill the device stay small.
Limits limits(int capability)
{
	Limits l = {4, 2048, 32, 96 << 10, 48 << 10, 96 << 10, 0};
	if (capability < 70) {
		l.shared_per_multiprocessor = capability == 53 ? 64 << 10 : 96 << 10;
		l.shared_per_block_opt_in = 48 << 10;
	} else if (capability == 75) {
		l = {4, 1024, 16, 64 << 10, 48 << 10, 64 << 10, 0};
	} else if (capability == 80 || capability == 87) {
		l = {4, 2048, 32, 164 << 10, 48 << 10, 163 << 10, 1 << 10};
		if (capability == 87)
			l.threads_per_multiprocessor = 1536, l.blocks_per_multiprocessor = 16;
	} else if (capability == 86 || capability == 89) {
		l = {4, 1536, capability == 89 ? 24 : 16, 100 << 10, 48 << 10, 99 << 10, 1 << 10};
	} else if (capability >= 90) {
		l = {4, 2048, 32, 228 << 10, 48 << 10, 227 << 10, 1 << 10};
	}
	return l;
}

} // namespace emulation
