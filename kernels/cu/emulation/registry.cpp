// The kernels that the driver was built with.
#include "engine.h"

#include <cstring>

namespace emulation {

namespace {
// By what stands before the entries of a file, and the text of an entry.
std::map<std::pair<std::string, std::string>, Kernel> &translations()
{
	static std::map<std::pair<std::string, std::string>, Kernel> t;
	return t;
}

const char *const entry = "\n.visible .entry ";

// texts are what stands before the entries of a file, and the text of each entry, by its name.
std::pair<std::string, std::map<std::string, std::string>> texts(const std::string &ptx)
{
	size_t at = ptx.find(entry);
	std::pair<std::string, std::map<std::string, std::string>> t = {ptx.substr(0, at), {}};
	while (at != std::string::npos) {
		const size_t name = at + strlen(entry), open = ptx.find('(', name), end = ptx.find("\n}\n", name);
		if (open >= end || end == std::string::npos)
			break;
		t.second[ptx.substr(name, open - name)] = ptx.substr(at, end - at);
		at = ptx.find(entry, end);
	}
	return t;
}
} // namespace

bool add_translation(const char *ptx, std::initializer_list<std::vector<Kernel>> parts)
{
	const auto of = texts(ptx);
	for (const auto &part : parts)
		for (const Kernel &k : part) {
			const auto text = of.second.find(k.name);
			if (text != of.second.end())
				translations()[{of.first, text->second}] = k;
		}
	return true;
}

std::map<std::string, const Kernel *> find_translations(const char *ptx)
{
	std::map<std::string, const Kernel *> found;
	const auto of = texts(ptx);
	for (const auto &e : of.second) {
		const auto t = translations().find({of.first, e.second});
		if (t != translations().end())
			found[e.first] = &t->second;
	}
	return found;
}

} // namespace emulation
