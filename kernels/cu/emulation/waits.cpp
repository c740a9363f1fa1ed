// What threads of a block wait for: each other, the grid, the launch before, their copies.
#include "machine.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "races.h"

namespace emulation {

static void complete_one(Warp &w, size_t i)
{
	Exchange *e = w.open[i];
	e->readers = __builtin_popcount(e->arrived);
	w.open.erase(w.open.begin() + i);
	Thread *first = &active->threads[32 * (&w - active->warps.data())];
	for (unsigned lane = 0; lane < 32; lane++)
		if (e->arrived >> lane & 1)
			first[lane].state = Thread::ready;
	races::warp_barrier(*first, e->arrived);
}

// A thread that has ended may be what others of its warp wait for.
void complete(Warp &w)
{
	for (size_t i = w.open.size(); i-- > 0;) {
		const Exchange *e = w.open[i];
		const unsigned need = e->mask & w.present & ~w.exited;
		if ((e->arrived & need) == need)
			complete_one(w, i);
	}
}

void fail(Fault f, const char *format, ...)
{
	char text[400];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	report("thread (%u,%u,%u): %s", current->index.x, current->index.y, current->index.z, text);
	fault = f;
	to_scheduler();
	abort();
}

void wait_for_block(const char *file, int line)
{
	Thread &t = *current;
	t.state = Thread::at_barrier;
	t.file = file;
	t.line = line;
	active->waiting++;
	to_scheduler();
}

void wait_for_warpgroup(unsigned barrier, unsigned threads, const char *file, int line)
{
	Thread &t = *current;
	const unsigned group = t.linear / 128, size = 128;
	if (barrier != group + 1 || threads != size || (group + 1) * size > active->threads.size())
		fail(Fault::failed, "%s:%d: barrier %u of %u threads, by one of warpgroup %u", file, line, barrier, threads, group);
	t.file = file;
	t.line = line;
	t.state = Thread::at_warpgroup_barrier;
	if (++active->at_warpgroup_barrier[group] < size) {
		to_scheduler();
		return;
	}
	active->at_warpgroup_barrier[group] = 0;
	for (unsigned i = group * size; i < (group + 1) * size; i++) {
		const Thread &other = active->threads[i];
		if (other.line != line || other.file != file)
			fail(Fault::failed, "%s:%d: divergent barrier: others of the warpgroup are at line %d", file, line, other.line);
		active->threads[i].state = Thread::ready;
	}
	races::warpgroup_barrier(*active, group);
}

void wait_for_previous(const char *file, int line)
{
	Thread &t = *current;
	t.waited = true;
	if (!ahead)
		return;
	t.state = Thread::at_previous;
	t.file = file;
	t.line = line;
	active->waiting_for_previous++;
	to_scheduler();
}

Exchange *exchange(unsigned mask, const void *value, size_t size, const char *operation, const char *file, int line)
{
	Thread &t = *current;
	Warp &w = *t.warp;
	const unsigned me = 1u << t.lane;
	if (!(mask & me))
		fail(Fault::failed, "%s:%d: %s by lane %u, which is not in its mask %#x", file, line, operation, t.lane, mask);
	size_t i = 0;
	while (i < w.open.size() && !(w.open[i]->mask == mask && w.open[i]->line == line && w.open[i]->file == file &&
		(w.open[i]->operation == operation || strcmp(w.open[i]->operation, operation) == 0)))
		i++;
	Exchange *e;
	if (i < w.open.size()) {
		e = w.open[i];
	} else {
		if (w.spare.empty())
			w.spare.push_back(new Exchange);
		e = w.spare.back();
		w.spare.pop_back();
		e->mask = mask;
		e->arrived = 0;
		e->known = false;
		e->operation = operation;
		e->file = file;
		e->line = line;
		w.open.push_back(e);
	}
	e->arrived |= me;
	memcpy(e->values[t.lane], value, size);
	const unsigned need = mask & w.present & ~w.exited;
	t.file = file;
	t.line = line;
	t.state = Thread::in_exchange;
	if ((e->arrived & need) == need)
		complete_one(w, i);
	else
		to_scheduler();
	return e;
}

void finish(Exchange *e)
{
	if (--e->readers == 0)
		current->warp->spare.push_back(e);
}

void start_copy(void *to, const void *from, unsigned bytes, unsigned read, int line)
{
	Thread &t = *current;
	t.copies.push_back({to, from, bytes, read, t.groups, line});
}

void close_group() { current->groups++; }

// Products must not read what a copy left before the thread that made it has fenced it.
static void note_copy(Thread &t, const Copy &c)
{
	const size_t at = (static_cast<char *>(c.to) - t.block->shared) / 16;
	if (!t.block->shared || c.to < t.block->shared || at >= t.block->unfenced.size())
		return;
	const auto mark = (uint16_t)(t.linear + 1);
	if (t.block->unfenced[at] != mark)
		t.unfenced.push_back((uint32_t)at);
	t.block->unfenced[at] = mark;
}

void wait_for_groups(unsigned newest)
{
	Thread &t = *current;
	size_t kept = 0;
	for (const Copy &c : t.copies) {
		if (c.group < t.groups && t.groups - c.group > newest) {
			access(c.to, c.bytes, Access::write, c.line);
			if (c.read) {
				access(c.from, c.read, Access::read, c.line);
				memcpy(c.to, c.from, c.read);
			}
			memset(static_cast<char *>(c.to) + c.read, 0, c.bytes - c.read);
			note_copy(t, c);
		} else {
			t.copies[kept++] = c;
		}
	}
	t.copies.resize(kept);
}

char *shared_memory() { return active->shared; }
size_t shared_size() { return running->kernel->own_shared + running->dynamic_shared; }

void poll(const char *file, int line)
{
	Thread &t = *current;
	const bool again = t.file == file && t.line == line;
	t.file = file;
	t.line = line;
	if (!again) // a thread that does not wait must not find what others would have done meanwhile
		return;
	t.state = Thread::ready;
	polled = true;
	to_scheduler();
}

} // namespace emulation
