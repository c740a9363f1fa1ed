// The kernels that the driver was built with.
#include "engine.h"

#include <map>

namespace emulation {

namespace {
// By what stands before the entries of a file, and the text of an entry.
std::map<std::pair<std::string, std::string>, Kernel> &translations()
{
	static std::map<std::pair<std::string, std::string>, Kernel> t;
	return t;
}

const char *const entry = "\n.visible .entry ";

std::pair<std::string, std::string> text_of(const std::string &ptx, const std::string &name)
{
	const size_t at = ptx.find(entry + name + "("), end = ptx.find("\n}\n", at);
	if (at == std::string::npos || end == std::string::npos)
		return {};
	return {ptx.substr(0, ptx.find(entry)), ptx.substr(at, end - at)};
}
} // namespace

bool add_translation(const char *ptx, std::initializer_list<std::vector<Kernel>> parts)
{
	for (const auto &part : parts)
		for (const Kernel &k : part)
			translations()[text_of(ptx, k.name)] = k;
	return true;
}
const Kernel *find_translation(const char *ptx, const std::string &name)
{
	const auto t = translations().find(text_of(ptx, name));
	return t == translations().end() ? nullptr : &t->second;
}

} // namespace emulation
