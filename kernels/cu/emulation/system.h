// What the emulation asks of the operating system.
#ifndef BITCNN_EMULATION_SYSTEM_H
#define BITCNN_EMULATION_SYSTEM_H

#include "engine.h"

namespace emulation EMULATION {

const size_t page = 4096;

// map_pages returns whole pages of zeros, or nullptr; n is a multiple of page.
char *map_pages(size_t n);
// guard_page makes a page one that nothing may touch, and reports whether it did.
bool guard_page(char *p);
// unmap_pages takes all that map_pages has returned.
void unmap_pages(char *p, size_t n);

// environment returns a variable of the environment as it is now, or nullptr. What it
// returned before may change.
const char *environment(const char *name);

} // namespace emulation
#endif
