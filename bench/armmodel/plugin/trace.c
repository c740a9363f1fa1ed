/* A plugin of qemu-user that counts the instructions executed at every address,
 * and writes the addresses of the first of those between two addresses, in order:
 *
 *	-plugin libtrace.so,counts=FILE,trace=FILE,from=0x…,to=0x…,most=N
 *
 * Debian's qemu takes plugins, but ships no header, so what is needed of its
 * interface, version 1, is declared here. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define API __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
API int qemu_plugin_version = 1;
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, int op, void *, uint64_t);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int flags, void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);

enum { add_u64 = 0, no_registers = 0 };

/* A counter for each of the first instructions of the address space, where a
 * static Go program is; the last one is for all others. */
enum { counters = 1 << 24 };
static uint64_t *counter;
static uint64_t from, to, most, traced;
static FILE *counts, *trace;

static void executed(unsigned cpu, void *address)
{
	if (traced < most) {
		traced++;
		fprintf(trace, "%lx\n", (unsigned long)address);
	}
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	size_t n = qemu_plugin_tb_n_insns(block);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
		uint64_t at = qemu_plugin_insn_vaddr(insn), slot = at / 4;
		if (slot >= counters)
			slot = counters - 1;
		qemu_plugin_register_vcpu_insn_exec_inline(insn, add_u64, &counter[slot], 1);
		if (at >= from && at < to)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, executed, no_registers, (void *)at);
	}
}

static void finished(qemu_plugin_id_t id, void *unused)
{
	for (uint64_t i = 0; i < counters; i++)
		if (counter[i])
			fprintf(counts, "%lx %lu\n", (unsigned long)(4 * i), (unsigned long)counter[i]);
	fclose(counts);
	if (trace)
		fclose(trace);
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
		else
			return 1;
	}
	counter = mmap(0, sizeof *counter * counters, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!counts || (to && !trace) || counter == MAP_FAILED)
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finished, 0);
	return 0;
}
