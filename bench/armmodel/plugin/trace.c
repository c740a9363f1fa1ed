/* A plugin of qemu-user that counts the instructions executed at every address,
 * and writes the addresses of the first of those between two addresses, in order, and
 * then ends the program:
 *
 *	-plugin libtrace.so,counts=FILE,trace=FILE,from=0x…,to=0x…,most=N
 *
 * With l1=SETS:WAYS:AHEAD,l2=SETS:WAYS:AHEAD it also simulates two data caches, and counts
 * at every address the lines that its loads and stores have moved: see enum moved. A load
 * into XZR is taken for a prefetch, whose line comes AHEAD instructions later from behind
 * the cache.
 *
 * Debian's qemu takes plugins, but ships no header, so what is needed of its
 * interface, version 1, is declared here. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
API int qemu_plugin_version = 1;
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int flags, void *);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int op, void *, uint64_t);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int flags, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, uint32_t, uint64_t, void *), int flags, int rw, void *);
bool qemu_plugin_mem_is_store(uint32_t);
unsigned qemu_plugin_mem_size_shift(uint32_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);

enum { add_u64 = 0, no_registers = 0, loads_and_stores = 3 };

/* A counter for each of the first instructions of the address space, where a
 * static Go program is; the last one is for all others. */
enum { counters = 1 << 24 };
static uint64_t *counter;
static uint64_t from, to, most, traced;
static FILE *counts, *trace;

static void executed(unsigned cpu, void *address)
{
	fprintf(trace, "%lx\n", (unsigned long)address);
	if (++traced == most) { /* the counts are not asked for */
		fclose(trace);
		_exit(0);
	}
}

/* Lines of 64 bytes that came from the second cache or from memory, either behind a
 * line that has just come, so that a prefetcher would have asked for them, or not, and
 * those that were written back to the second cache and to memory; those that came by
 * prefetches, and the instructions by which they were late. */
enum moved {
	second_streamed, second, memory_streamed, memory, to_second, to_memory,
	second_prefetched, memory_prefetched, late, kinds
};
static uint64_t (*moves)[kinds];

enum { line_bits = 6, most_ways = 32, streams = 16, reach = 4, in_flight = 8 };
/* The instructions up to the end of the block in hand, of all threads, and those that would
 * have been executed while prefetches were late. */
static uint64_t now;
struct line {
	uint64_t tag; /* the number of the line, plus 1 */
	uint64_t ready; /* when it has come */
	bool dirty;
};
/* Sets are powers of two; the line used last is the first of its set. */
static struct cache {
	unsigned sets, ways, ahead;
	struct line (*lines)[most_ways];
	uint64_t stream[streams]; /* the last line of each, that used last first */
} l1, l2;

/* look tells whether a line is there, and has it there. *out is what it takes the place of. */
static bool look(struct cache *c, uint64_t tag, bool dirty, struct line *out)
{
	struct line *set = c->lines[tag & (c->sets - 1)], found = {tag, 0, dirty};
	unsigned i = 0;
	while (i < c->ways - 1 && set[i].tag != tag)
		i++;
	bool hit = set[i].tag == tag;
	if (hit) {
		found.dirty |= set[i].dirty;
		found.ready = set[i].ready;
	}
	*out = set[i];
	memmove(set + 1, set, i * sizeof *set);
	set[0] = found;
	return hit;
}

/* streamed tells whether a line that is missing is near the last one of a stream. */
static bool streamed(struct cache *c, uint64_t tag)
{
	unsigned i = 0;
	while (i < streams - 1 && tag - c->stream[i] - 1 >= reach && c->stream[i] - tag - 1 >= reach)
		i++;
	bool near = tag - c->stream[i] - 1 < reach || c->stream[i] - tag - 1 < reach;
	memmove(c->stream + 1, c->stream, i * sizeof *c->stream);
	c->stream[0] = tag;
	return near;
}

static bool from_second(uint64_t tag, const struct line *out, uint64_t *count)
{
	struct line last;
	if (out->tag && out->dirty) {
		count[to_second]++;
		if (!look(&l2, out->tag, true, &last) && last.tag && last.dirty)
			count[to_memory]++;
	}
	if (look(&l2, tag, false, &last))
		return true;
	if (last.tag && last.dirty)
		count[to_memory]++;
	return false;
}

static void wait_until(uint64_t ready, uint64_t *count)
{
	uint64_t start = __atomic_load_n(&now, __ATOMIC_RELAXED);
	if (ready > start) {
		count[late] += ready - start;
		__atomic_fetch_add(&now, ready - start, __ATOMIC_RELAXED);
	}
}

static void line_accessed(uint64_t tag, bool store, uint64_t *count)
{
	struct line out;
	if (look(&l1, tag, store, &out)) {
		wait_until(l1.lines[tag & (l1.sets - 1)]->ready, count);
		return;
	}
	bool behind = streamed(&l1, tag);
	if (from_second(tag, &out, count))
		count[behind ? second_streamed : second]++;
	else
		count[streamed(&l2, tag) ? memory_streamed : memory]++;
}

static void accessed(unsigned cpu, uint32_t info, uint64_t address, void *count)
{
	uint64_t first = address >> line_bits;
	uint64_t last = (address + (1 << qemu_plugin_mem_size_shift(info)) - 1) >> line_bits;
	for (; first <= last; first++)
		line_accessed(first + 1, qemu_plugin_mem_is_store(info), count);
}

/* prefetched waits for one of those in flight to come, and starts to bring a line. */
static void prefetched(unsigned cpu, uint32_t info, uint64_t address, void *counted)
{
	static uint64_t flight[in_flight]; /* when the last ones come, in turn */
	static unsigned next;
	uint64_t tag = (address >> line_bits) + 1, *count = counted;
	struct line out;
	if (look(&l1, tag, false, &out))
		return;
	bool near = from_second(tag, &out, count);
	count[near ? second_prefetched : memory_prefetched]++;
	wait_until(flight[next], count);
	flight[next] = __atomic_load_n(&now, __ATOMIC_RELAXED) + (near ? l1.ahead : l2.ahead);
	l1.lines[tag & (l1.sets - 1)]->ready = flight[next];
	next = (next + 1) % in_flight;
}

static void passed(unsigned cpu, void *n)
{
	__atomic_fetch_add(&now, (uint64_t)n, __ATOMIC_RELAXED);
}

static bool prefetch(const struct qemu_plugin_insn *insn)
{
	uint32_t word;
	memcpy(&word, qemu_plugin_insn_data(insn), sizeof word);
	return (word & 0xffc0001f) == 0xf940001f; /* LDR XZR, [Xn, #m] */
}

static bool make(struct cache *c, const char *size)
{
	return sscanf(size, "%u:%u:%u", &c->sets, &c->ways, &c->ahead) == 3 && c->ways && c->ways <= most_ways &&
	       c->sets && !(c->sets & (c->sets - 1)) && (c->lines = calloc(c->sets, sizeof *c->lines));
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	size_t n = qemu_plugin_tb_n_insns(block);
	if (moves)
		qemu_plugin_register_vcpu_tb_exec_cb(block, passed, no_registers, (void *)n);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
		uint64_t at = qemu_plugin_insn_vaddr(insn), slot = at / 4;
		if (slot >= counters)
			slot = counters - 1;
		qemu_plugin_register_vcpu_insn_exec_inline(insn, add_u64, &counter[slot], 1);
		if (moves)
			qemu_plugin_register_vcpu_mem_cb(insn, prefetch(insn) ? prefetched : accessed,
							 no_registers, loads_and_stores, moves[slot]);
		if (at >= from && at < to)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, executed, no_registers, (void *)at);
	}
}

static void finished(qemu_plugin_id_t id, void *unused)
{
	for (uint64_t i = 0; i < counters; i++) {
		if (!counter[i])
			continue;
		fprintf(counts, "%lx %lu", (unsigned long)(4 * i), (unsigned long)counter[i]);
		for (int kind = 0; kind < kinds; kind++)
			fprintf(counts, " %lu", moves ? (unsigned long)moves[i][kind] : 0);
		fprintf(counts, "\n");
	}
	fclose(counts);
	if (trace)
		fclose(trace);
}

static void *zeros(size_t size)
{
	void *at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return at == MAP_FAILED ? 0 : at;
}

API int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		if (!value)
			return 1;
		*value++ = 0;
		if (!strcmp(argv[i], "counts"))
			counts = fopen(value, "w");
		else if (!strcmp(argv[i], "trace"))
			trace = fopen(value, "w");
		else if (!strcmp(argv[i], "from"))
			from = strtoull(value, 0, 0);
		else if (!strcmp(argv[i], "to"))
			to = strtoull(value, 0, 0);
		else if (!strcmp(argv[i], "most"))
			most = strtoull(value, 0, 0);
		else if (!strcmp(argv[i], "l1") ? !make(&l1, value) : strcmp(argv[i], "l2") || !make(&l2, value))
			return 1;
	}
	counter = zeros(sizeof *counter * counters);
	if (!counts || (to && !trace) || !l1.lines != !l2.lines || !counter)
		return 1;
	if (l1.lines && !(moves = zeros(sizeof *moves * counters)))
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finished, 0);
	return 0;
}
