// Streams, events and graphs of the emulated driver, and what its functions begin with.
//
// What is put on a stream is done when somebody waits for it, not before: who reads
// results or reuses page-locked memory too early sees it.
#ifndef BITCNN_EMULATION_STREAMS_H
#define BITCNN_EMULATION_STREAMS_H

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

#include "driver.h"

namespace emulation EMULATION {

// A launch, with parameters that lie one behind the other, each on a multiple of 16 bytes,
// as kernels translated from PTX have them.
struct KernelLaunch {
	std::vector<uint64_t> values;
	std::vector<void *> pointers;
	Launch launch;
	double takes; // ms
	~KernelLaunch() { forget(launch); }
};

// What is put on a stream: a launch, or something else.
struct Operation {
	std::function<Result()> run;
	std::shared_ptr<KernelLaunch> kernel;
	template <class F, class = std::enable_if_t<std::is_invocable_v<F>>> Operation(F run) : run(std::move(run)) {}
	Operation(std::shared_ptr<KernelLaunch> kernel) : kernel(std::move(kernel)) {}
};
using Work = std::deque<Operation>;

struct Context;

struct Stream {
	Context *context;
	unsigned flags;
	Work queue;
	bool capturing = false, spoiled = false;
	int capture_mode = 0;
	std::thread::id capture_thread;
	Work captured;
};

struct Context {
	Result error = success; // once a kernel has failed, every call returns this
	int retained = 0;       // of the primary context
	unsigned flags = 0;     // how threads wait
	Stream null{this, 0, {}, false, false, 0, {}, {}};
	std::set<Stream *> streams;
};

// What an event was recorded for last. Who waits for it means this one, though the event
// may be recorded again, or destroyed, before.
struct Record {
	Context *context;
	Stream *stream;
	double time = -1; // ms; negative until it is reached
};

struct Event {
	unsigned flags;
	std::shared_ptr<Record> record;
};

struct Graph {
	Work work;
};

// All that is alive, which the mutex guards.
extern std::mutex mutex;
extern bool initialized;
extern Context primary;
extern thread_local std::vector<Context *> contexts; // of a thread, the current one last
extern std::set<Context *> made;
extern std::set<Stream *> all_streams;
extern std::set<Event *> events;
extern std::set<Graph *> graphs, executables;
extern std::set<Module *> modules;

// context is the current one, or null.
Context *context();
// stream_of finds the stream of a handle, or returns null.
Stream *stream_of(Context *c, void *handle);
// put appends to the work of a stream, or to what it records.
Result put(Stream *s, Operation op);
// step does the first of what is on a stream, the others do all of it: drain of a stream or
// a context, drain_blocking of the null stream and all that wait for it, reach up to a record.
Result step(Stream &s);
Result drain(Stream &s);
Result drain(Context &c);
Result drain_blocking(Context &c);
Result reach(const std::shared_ptr<Record> &r);
// forbidden_by_capture reports whether some stream records, and spoils what it has.
bool forbidden_by_capture();

} // namespace emulation

#if defined(_WIN32)
#define API(name, ...) extern "C" __attribute__((dllexport)) int name(__VA_ARGS__)
#else
#define API(name, ...) extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__)
#endif

#define ENTER \
	std::lock_guard<std::mutex> lock(mutex); \
	if (fault_due("removed")) \
		return device_unavailable; \
	if (!initialized) \
		return not_initialized;

#define ENTER_CONTEXT \
	ENTER; \
	Context *const c = context(); \
	if (!c) \
		return invalid_context; \
	if (c->error) \
		return c->error;

// Calls that must not be made while a stream records.
#define NOT_CAPTURING \
	if (forbidden_by_capture()) \
		return capture_unsupported;

#define STREAM(handle) \
	Stream *const s = stream_of(c, handle); \
	if (!s) \
		return invalid_handle;

#endif
