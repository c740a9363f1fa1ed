// What checks accesses sees of a launch (races.cpp). Without EMULATION_CHECKED there is
// nothing.
#ifndef BITCNN_EMULATION_RACES_H
#define BITCNN_EMULATION_RACES_H

#include "engine.h"

namespace emulation EMULATION {
namespace races EMULATION {
#if defined(EMULATION_CHECKED)
void start_launch(const Launch &l);
void start(const Block &b);
void block_barrier(const Block &b);
void warp_barrier(const Thread &first, unsigned lanes);
void warpgroup_barrier(const Block &b, unsigned group);
// found reports whether this launch had a race or another wrong access.
bool found();
// The device's memory, so that accesses can be told from others and bounded.
void allocated(uintptr_t p, size_t n);
void freed(uintptr_t p);
void written(uintptr_t p, size_t n);
#else
inline void start_launch(const Launch &) {}
inline void start(const Block &) {}
inline void block_barrier(const Block &) {}
inline void warp_barrier(const Thread &, unsigned) {}
inline void warpgroup_barrier(const Block &, unsigned) {}
inline bool found() { return false; }
inline void allocated(uintptr_t, size_t) {}
inline void freed(uintptr_t) {}
inline void written(uintptr_t, size_t) {}
#endif
} // namespace races
} // namespace emulation
#endif
