// Reads of a PTX file what the driver must know: its target, its entries with the
// sizes of their parameters, and their shared memory. Entries are executed by what was
// translated of this very text.
#include "driver.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulation {
namespace {

// PTX versions and the CUDA version whose driver first took them (PTX ISA, release
// notes).
struct { int ptx, cuda; } const versions[] = {
	{60, 9000}, {61, 9010}, {62, 9020}, {63, 10000}, {64, 10010}, {65, 10020}, {70, 11000}, {71, 11010},
	{72, 11020}, {73, 11030}, {74, 11040}, {75, 11050}, {76, 11060}, {77, 11070}, {78, 11080}, {80, 12000},
	{81, 12010}, {82, 12020}, {83, 12030}, {84, 12040},
};

int cuda_of(int ptx)
{
	for (const auto &v : versions)
		if (v.ptx == ptx)
			return v.cuda;
	return ptx < 60 ? 0 : 1 << 30;
}

// The number behind a word at p, or -1.
long number_after(const char *p, const char *end, const char *word)
{
	const size_t n = strlen(word);
	for (; (p = strstr(p, word)) && p < end; p += n) {
		long v;
		if (sscanf(p + n, "%ld", &v) == 1)
			return v;
	}
	return -1;
}

// The size of one parameter's declaration, ".param .u64 name" or
// ".param .align 4 .b8 name[160]".
long parameter_size(const std::string &declaration)
{
	long element = 0;
	for (const auto &[type, size] : std::initializer_list<std::pair<const char *, long>>{
			 {".u64 ", 8}, {".s64 ", 8}, {".b64 ", 8}, {".f64 ", 8}, {".u32 ", 4}, {".s32 ", 4}, {".b32 ", 4}, {".f32 ", 4},
			 {".u16 ", 2}, {".s16 ", 2}, {".b16 ", 2}, {".u8 ", 1}, {".s8 ", 1}, {".b8 ", 1}})
		if (declaration.find(type) != std::string::npos)
			element = size;
	const size_t bracket = declaration.find('[');
	return bracket == std::string::npos ? element : element * atol(declaration.c_str() + bracket + 1);
}

std::string text(const char *format, ...) PRINTF(1, 2);
std::string text(const char *format, ...)
{
	char t[300];
	va_list args;
	va_start(args, format);
	vsnprintf(t, sizeof t, format, args);
	va_end(args);
	return t;
}

} // namespace

Result load(const char *ptx, Module &m, std::string &message)
{
	const char *all = ptx + strlen(ptx);
	int major = 0, minor = 0;
	const char *version = strstr(ptx, ".version ");
	const long target = number_after(ptx, all, ".target sm_");
	if (!version || sscanf(version, ".version %d.%d", &major, &minor) != 2 || target < 0) {
		message = "the image is not PTX";
		return invalid_image;
	}
	const int ptx_version = 10 * major + minor, capability = compute_capability();
	if (cuda_of(ptx_version) > driver_version()) {
		message = text("PTX %d.%d is newer than this driver of CUDA %d.%d", major, minor, driver_version() / 1000,
			driver_version() % 1000 / 10);
		return unsupported_ptx_version;
	}
	char only_this[2] = ""; // 'a': newer devices do not take it
	sscanf(strstr(ptx, ".target sm_"), ".target sm_%*d%1[a]", only_this);
	if (target > capability || (*only_this && target != capability)) {
		message = text("PTX for sm_%ld%s on a device of sm_%d", target, only_this, capability);
		return no_binary_for_gpu;
	}
	const Limits limit = limits(capability);
	auto translations = find_translations(ptx);
	for (const char *p = ptx; (p = strstr(p, ".entry "));) {
		p += 7;
		const std::string name(p, strcspn(p, "( \t\r\n"));
		const Kernel *k = translations[name];
		if (!k) {
			message = text("the emulated driver was built from another text than that of kernel %s for sm_%ld: "
				"run scripts/cuda-emulator again", name.c_str(), target);
			return invalid_ptx;
		}
		const char *body = strchr(p, '{');
		if (!body) {
			message = text("kernel %s has no body", name.c_str());
			return invalid_ptx;
		}
		const char *end = strstr(body, "\n}");
		end = end ? end : all;
		std::vector<long> sizes;
		for (const char *q = p; (q = strstr(q, ".param ")) && q < body; q += 7)
			sizes.push_back(parameter_size(std::string(q, strcspn(q, ",)"))));
		if (sizes.size() != k->sizes.size()) {
			message = text("kernel %s has %zu parameters in the PTX, %zu in the source", name.c_str(), sizes.size(),
				k->sizes.size());
			return invalid_ptx;
		}
		for (size_t i = 0; i < sizes.size(); i++)
			if (sizes[i] != (long)k->sizes[i]) {
				message = text("parameter %zu of kernel %s has %ld bytes in the PTX, %zu in the source", i, name.c_str(),
					sizes[i], k->sizes[i]);
				return invalid_ptx;
			}
		Function f{k, 1024, 0, 0, ptx_version};
		const long most = number_after(p, body, ".maxntid ");
		if (most > 0) {
			int x = 1, y = 1, z = 1;
			sscanf(strstr(p, ".maxntid ") + 9, "%d, %d, %d", &x, &y, &z);
			f.max_threads = x * y * z;
		}
		for (const char *q = body; (q = strstr(q, "\t.shared ")) && q < end; q++) {
			const std::string line(q, strcspn(q, ";"));
			f.static_shared += parameter_size(line);
		}
		if (f.static_shared > limit.shared_per_block) {
			message = text("kernel %s has %d bytes of shared memory: more than %d", name.c_str(), f.static_shared,
				limit.shared_per_block);
			return invalid_ptx;
		}
		f.max_dynamic = limit.shared_per_block - f.static_shared;
		m.functions[name] = f;
	}
	return success;
}

} // namespace emulation
