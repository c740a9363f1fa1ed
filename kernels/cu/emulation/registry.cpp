// The kernels that the driver was built with.
#include "engine.h"

#include <map>

namespace emulation {

namespace {
std::map<std::pair<int, std::string>, Kernel> &kernels()
{
	static std::map<std::pair<int, std::string>, Kernel> k;
	return k;
}
std::map<std::string, std::string> &sources()
{
	static std::map<std::string, std::string> s;
	return s;
}
std::map<std::string, std::map<std::string, Kernel>> &translations()
{
	static std::map<std::string, std::map<std::string, Kernel>> t;
	return t;
}
} // namespace

void add_kernel(int architecture, const char *name, Kernel kernel) { kernels()[{architecture, name}] = std::move(kernel); }
const Kernel *find_kernel(int architecture, const std::string &name)
{
	const auto k = kernels().find({architecture, name});
	return k == kernels().end() ? nullptr : &k->second;
}
void add_source(const char *name, const char *hash) { sources()[name] = hash; }
std::string source_hash(const std::string &name)
{
	const auto s = sources().find(name);
	return s == sources().end() ? "" : s->second;
}
bool add_translation(const char *ptx, std::initializer_list<std::vector<Kernel>> parts)
{
	auto &kernels = translations()[ptx];
	for (const auto &part : parts)
		for (const Kernel &k : part)
			kernels[k.name] = k;
	return true;
}
bool translated() { return !translations().empty(); }
const Kernel *find_translation(const char *ptx, const std::string &name)
{
	const auto t = translations().find(ptx);
	if (t == translations().end())
		return nullptr;
	const auto k = t->second.find(name);
	return k == t->second.end() ? nullptr : &k->second;
}

} // namespace emulation
