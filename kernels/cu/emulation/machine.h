// What the parts of the machine share: the launch that runs, fibers and their stacks, shared
// memory, and who waits for whom.
#ifndef BITCNN_EMULATION_MACHINE_H
#define BITCNN_EMULATION_MACHINE_H

#include "engine.h"

namespace emulation EMULATION {

extern const Launch *running;
extern Block *active; // the block that runs
extern bool ahead;    // of the launch before the one that runs, whose blocks begin
extern bool polled;   // the thread that ran last asked for others to run
extern Fault fault;   // of the launch that runs

// report prints what is wrong with the kernel.
void report(const char *format, ...) PRINTF(1, 2);

// prepare gives a thread a stack, on which entry will run.
void prepare(Thread &t, void (*entry)());
// switch_to runs a thread until it calls to_scheduler.
void switch_to(Thread &t);
void to_scheduler();
void release_stack(char *stack);
void release_all_stacks();
// catch_faults makes a launch fail of which a thread touches what it must not, between
// begin_kernel and end_kernel.
void catch_faults();
void begin_kernel();
void end_kernel();

// complete lets those of a warp go on for whom all have come, ended ones left out.
void complete(Warp &w);

// The shared memory of a block ends where memory that cannot be touched begins.
struct Shared {
	char *begin = nullptr, *map = nullptr;
	size_t mapped = 0;
	explicit Shared(size_t n);
	~Shared();
	Shared(const Shared &) = delete;
};

} // namespace emulation
#endif
