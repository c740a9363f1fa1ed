// Opening the library of a driver, by the system's own means.
#if defined(_WIN32)
#include <stdio.h>
#include <windows.h>

// library_open looks in the system's folder alone, where drivers are installed: a file of
// the name in the working folder, or beside the program, may be anybody's.
static void *library_open(const char *name)
{
	return LoadLibraryExA(name, 0, LOAD_LIBRARY_SEARCH_SYSTEM32);
}

static void *library_symbol(void *library, const char *name)
{
	return (void *)GetProcAddress(library, name);
}

static const char *utf8(const wchar_t *text, char *to, int size)
{
	return WideCharToMultiByte(CP_UTF8, 0, text, -1, to, size, 0, 0) > 0 ? to : 0;
}

// library_path returns the file of a library, 0 if it is not known.
static inline const char *library_path(void *library)
{
	static char path[3 * MAX_PATH];
	wchar_t wide[MAX_PATH];
	DWORD n = GetModuleFileNameW(library, wide, MAX_PATH);
	return n > 0 && n < MAX_PATH ? utf8(wide, path, sizeof path) : 0;
}

// library_error says why library_open has just failed.
static const char *library_error(const char *name)
{
	static char why[1024];
	DWORD code = GetLastError();
	if (code == ERROR_MOD_NOT_FOUND) { // of the library, or of one that it needs
		snprintf(why, sizeof why, "%s, or a library that it needs, is not in the folder of the system", name);
		return why;
	}
	wchar_t wide[256];
	char text[3 * 256];
	DWORD n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, 0, code, 0, wide, 256, 0);
	while (n > 0 && (wide[n - 1] == L'\n' || wide[n - 1] == L'\r' || wide[n - 1] == L' ' || wide[n - 1] == L'.'))
		wide[--n] = 0;
	if (n > 0 && utf8(wide, text, sizeof text))
		snprintf(why, sizeof why, "%s: %s (error %lu)", name, text, code);
	else
		snprintf(why, sizeof why, "%s: error %lu", name, code);
	return why;
}
#else
#include <dlfcn.h>
#include <link.h>

static void *library_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

static void *library_symbol(void *library, const char *name) { return dlsym(library, name); }

// library_path returns the file of a library, 0 if it is not known.
static inline const char *library_path(void *library)
{
	struct link_map *map = 0;
	return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] ? map->l_name : 0;
}

// library_error says why library_open has just failed.
static const char *library_error(const char *name)
{
	(void)name;
	return dlerror();
}
#endif
