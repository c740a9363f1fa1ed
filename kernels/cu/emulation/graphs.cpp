// Recording what is put on a stream, and graphs of it.
#include "streams.h"

using namespace emulation;

API(cuStreamBeginCapture_v2, void *stream, int mode)
{
	ENTER_CONTEXT;
	STREAM(stream);
	if (fault_due("graphs")) // a driver that has none
		return not_supported;
	if (s == &c->null || s->capturing)
		return capture_unsupported;
	s->capturing = true;
	s->spoiled = false;
	s->capture_mode = mode;
	s->capture_thread = std::this_thread::get_id();
	s->captured.clear();
	return success;
}

API(cuStreamEndCapture, void *stream, void **handle)
{
	ENTER_CONTEXT;
	STREAM(stream);
	*handle = nullptr;
	if (!s->capturing)
		return invalid_value;
	s->capturing = false;
	if (s->spoiled)
		return capture_invalidated;
	auto *g = new Graph{std::move(s->captured)};
	graphs.insert(g);
	*handle = g;
	return success;
}

API(cuStreamIsCapturing, void *stream, int *status)
{
	ENTER_CONTEXT;
	STREAM(stream);
	*status = !s->capturing ? 0 : s->spoiled ? 2 : 1;
	return success;
}

API(cuGraphInstantiateWithFlags, void **handle, void *graph, unsigned long long)
{
	ENTER_CONTEXT;
	auto *g = static_cast<Graph *>(graph);
	if (!graphs.count(g))
		return invalid_handle;
	if (fault_due("instantiate"))
		return out_of_memory;
	auto *e = new Graph(*g);
	executables.insert(e);
	*handle = e;
	return success;
}

API(cuGraphInstantiate_v2, void **handle, void *graph, void **, char *, size_t)
{
	return cuGraphInstantiateWithFlags(handle, graph, 0);
}

API(cuGraphUpload, void *, void *)
{
	ENTER_CONTEXT;
	return success;
}

API(cuGraphLaunch, void *handle, void *stream)
{
	ENTER_CONTEXT;
	STREAM(stream);
	auto *e = static_cast<Graph *>(handle);
	if (!executables.count(e))
		return invalid_handle;
	if (fault_due("graph"))
		return out_of_memory;
	for (const Operation &op : e->work)
		put(s, op);
	return success;
}

API(cuGraphDestroy, void *handle)
{
	ENTER;
	auto *g = static_cast<Graph *>(handle);
	if (!graphs.erase(g))
		return invalid_handle;
	delete g;
	return success;
}

API(cuGraphExecDestroy, void *handle)
{
	ENTER;
	auto *e = static_cast<Graph *>(handle);
	if (!executables.erase(e))
		return invalid_handle;
	delete e;
	return success;
}
