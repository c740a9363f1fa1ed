// Streams and events.
#include "streams.h"

#include <chrono>
#include <cstring>
#include <ctime>

using namespace emulation;

namespace emulation {

std::mutex mutex;
bool initialized;
Context primary;
thread_local std::vector<Context *> contexts;
std::set<Context *> made;
std::set<Stream *> all_streams;
std::set<Event *> events;
std::set<Graph *> graphs, executables;
std::set<Module *> modules;

namespace {

double launched; // ms that launches have taken, where the environment sets the clock

double now()
{
	if (clock_set())
		return launched;
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

} // namespace

Context *context() { return contexts.empty() ? nullptr : contexts.back(); }

bool forbidden_by_capture()
{
	for (Stream *s : all_streams)
		if (s->capturing && (s->capture_mode == 0 || (s->capture_mode == 1 && s->capture_thread == std::this_thread::get_id()))) {
			s->spoiled = true;
			return true;
		}
	return false;
}

namespace {

// Inverts the first bit of what a kernel has written: the third parameter says where or, if
// there is one parameter, its end.
void spoil(const KernelLaunch &k)
{
	const std::vector<size_t> &sizes = k.launch.kernel->sizes;
	uint8_t *out;
	if (sizes.size() > 2)
		memcpy(&out, k.pointers[2], sizeof out);
	else
		memcpy(&out, static_cast<const char *>(k.pointers[0]) + sizes[0] - sizeof out, sizeof out);
	*out ^= 1;
}

// Runs a kernel; next is what comes after it on the stream.
Result execute(KernelLaunch &k, const Operation *next)
{
	if (fault_due("launch"))
		return launch_failed;
	while (fault_due("hang")) // a barrier that nobody reaches
		std::this_thread::sleep_for(std::chrono::hours(1));
	launched += k.takes;
	Launch *const dependent = next && next->kernel && next->kernel->launch.dependent ? &next->kernel->launch : nullptr;
	switch (emulation::launch(k.launch, dependent)) {
	case Fault::none:
		if (fault_of("wrong", k.launch.kernel->name) || (k.launch.dependent && fault_of("wrong", "early")))
			spoil(k);
		return success;
	case Fault::illegal_address: return illegal_address;
	default: return launch_failed;
	}
}

} // namespace

Result step(Stream &s)
{
	if (s.queue.empty())
		return success;
	const Operation op = std::move(s.queue.front());
	s.queue.pop_front();
	const Result r = op.kernel ? execute(*op.kernel, s.queue.empty() ? nullptr : &s.queue.front()) : op.run();
	if (r != success) {
		s.context->error = r;
		s.context->null.queue.clear();
		for (Stream *other : s.context->streams)
			other->queue.clear();
	}
	return r;
}

Result drain(Stream &s)
{
	while (!s.queue.empty())
		if (const Result r = step(s))
			return r;
	return success;
}

// Does the work of a stream until a record is reached.
Result reach(const std::shared_ptr<Record> &r)
{
	while (r && r->time < 0 && (all_streams.count(r->stream) || r->stream == &r->context->null) && !r->stream->queue.empty())
		if (const Result failed = step(*r->stream))
			return failed;
	return success;
}

Result drain(Context &c)
{
	if (const Result r = drain(c.null))
		return r;
	const std::set<Stream *> streams = c.streams;
	for (Stream *s : streams)
		if (const Result r = drain(*s))
			return r;
	return c.error;
}

// The null stream waits for all streams that were not made to be independent of it.
Result drain_blocking(Context &c)
{
	if (const Result r = drain(c.null))
		return r;
	const std::set<Stream *> streams = c.streams;
	for (Stream *s : streams)
		if (!(s->flags & 1))
			if (const Result r = drain(*s))
				return r;
	return success;
}

Stream *stream_of(Context *c, void *handle)
{
	if (!handle || handle == reinterpret_cast<void *>(1) || handle == reinterpret_cast<void *>(2))
		return &c->null;
	auto *s = static_cast<Stream *>(handle);
	return c->streams.count(s) ? s : nullptr;
}

Result put(Stream *s, Operation op)
{
	if (s->capturing) {
		s->captured.push_back(std::move(op));
		return success;
	}
	// What is on the null stream comes before, unless the stream is independent of it.
	Stream *const null = &s->context->null;
	if (s != null && !(s->flags & 1) && !null->queue.empty())
		s->queue.push_back([=] { return drain(*null); });
	s->queue.push_back(std::move(op));
	return success;
}

} // namespace emulation

API(cuStreamCreate, void **handle, unsigned flags)
{
	ENTER_CONTEXT;
	auto *s = new Stream{c, flags, {}, false, false, 0, {}, {}};
	c->streams.insert(s);
	all_streams.insert(s);
	*handle = s;
	return success;
}

API(cuStreamCreateWithPriority, void **handle, unsigned flags, int) { return cuStreamCreate(handle, flags); }

// Of streams of other contexts, too.
API(cuStreamGetCtx, void *handle, void **to)
{
	ENTER_CONTEXT;
	Stream *s = stream_of(c, handle);
	if (!s && all_streams.count(static_cast<Stream *>(handle)))
		s = static_cast<Stream *>(handle);
	if (!s)
		return invalid_handle;
	*to = s->context;
	return success;
}

API(cuStreamDestroy_v2, void *handle)
{
	ENTER;
	auto *s = static_cast<Stream *>(handle);
	if (!all_streams.count(s))
		return invalid_handle;
	Context *c = s->context;
	const Result r = c->error ? success : drain(*s);
	c->streams.erase(s);
	all_streams.erase(s);
	for (Event *e : events)
		if (e->record && e->record->stream == s)
			e->record.reset();
	delete s;
	return r;
}

API(cuStreamSynchronize, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	if (s->capturing) {
		s->spoiled = true;
		return capture_unsupported;
	}
	return drain(*s);
}

// A call does a part of the work, so that who asks again and again gets to the end.
API(cuStreamQuery, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	if (s->capturing) {
		s->spoiled = true;
		return capture_unsupported;
	}
	if (s->queue.empty())
		return success;
	const Result r = step(*s);
	return r ? r : not_ready;
}

API(cuStreamWaitEvent, void *stream, void *event, unsigned)
{
	ENTER_CONTEXT;
	STREAM(stream);
	auto *e = static_cast<Event *>(event);
	if (!events.count(e))
		return invalid_handle;
	const auto record = e->record;
	if (!record || record->stream == s)
		return success;
	return put(s, [=] { return reach(record); });
}

API(cuEventCreate, void **handle, unsigned flags)
{
	ENTER_CONTEXT;
	auto *e = new Event{flags, nullptr};
	events.insert(e);
	*handle = e;
	return success;
}

API(cuEventDestroy_v2, void *handle)
{
	ENTER;
	auto *e = static_cast<Event *>(handle);
	if (!events.count(e))
		return invalid_handle;
	events.erase(e);
	delete e;
	return success;
}

API(cuEventRecord, void *handle, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	auto *e = static_cast<Event *>(handle);
	if (!events.count(e))
		return invalid_handle;
	const auto record = e->record = std::make_shared<Record>(Record{c, s});
	return put(s, [=] {
		record->time = now();
		return success;
	});
}

API(cuEventSynchronize, void *handle)
{
	ENTER_CONTEXT;
	NOT_CAPTURING;
	auto *e = static_cast<Event *>(handle);
	if (!events.count(e))
		return invalid_handle;
	return reach(e->record);
}

API(cuEventQuery, void *handle)
{
	ENTER_CONTEXT;
	auto *e = static_cast<Event *>(handle);
	if (!events.count(e))
		return invalid_handle;
	if (e->record && e->record->time < 0 && !e->record->stream->queue.empty()) {
		const Result r = step(*e->record->stream);
		return r ? r : not_ready;
	}
	return success;
}

API(cuEventElapsedTime, float *ms, void *from, void *to)
{
	ENTER_CONTEXT;
	const auto *a = static_cast<Event *>(from), *b = static_cast<Event *>(to);
	if (!a->record || !b->record || (a->flags | b->flags) & 2) // without times
		return invalid_handle;
	if (a->record->time < 0 || b->record->time < 0)
		return not_ready;
	*ms = (float)(b->record->time - a->record->time);
	return success;
}
