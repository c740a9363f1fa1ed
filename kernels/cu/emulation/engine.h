// The machine that runs the kernels on a processor: what the instructions of
// ptx_machine.h stand on, and what the driver calls to launch.
//
// A thread of a block is a fiber. One runs at a time, until it waits for others or
// ends, so everything here is free of locks; the driver lets one launch run at once.
#ifndef BITCNN_EMULATION_ENGINE_H
#define BITCNN_EMULATION_ENGINE_H

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#if defined(_WIN32) // where nothing is seen that is not exported
#define EMULATION
#define PRINTF(text, arguments) __attribute__((format(gnu_printf, text, arguments)))
#else
#define EMULATION __attribute__((visibility("hidden")))
#define PRINTF(text, arguments) __attribute__((format(printf, text, arguments)))
#endif

struct EMULATION dim3 {
	unsigned x, y, z;
	dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
	uint64_t count() const { return (uint64_t)x * y * z; }
};

namespace emulation EMULATION {

// What a warp exchanges: the lanes that asked for the same thing in the same place
// leave their values here, and read those of others once all have come.
struct Exchange {
	unsigned mask, arrived, readers;
	const char *operation, *file;
	int line;
	bool known; // result, of all lanes' values, which the first lane that goes on computes for all
	uint32_t result;
	alignas(16) unsigned char values[32][32];
};

struct Warp {
	unsigned present = 0, exited = 0; // lanes
	uint64_t products = 0; // that it started, a sum over them
	std::vector<Exchange *> open, spare;
};

// A copy by cp.async that was started and not yet waited for: of its bytes the first
// `read` come from global memory, the others are zeros.
struct Copy {
	void *to;
	const void *from;
	unsigned bytes, read, group;
	int line;
};

// A product of wgmma that was started, or several into the same registers: their results
// come when they are waited for.
struct Product {
	std::vector<uint32_t *> registers;
	std::vector<uint32_t> results;
	unsigned group; // of the last
	struct Operands {
		uint64_t a, b, sum; // descriptions, and a sum over the bytes when it was started
		const char *file;
		int line;
	};
	std::vector<Operands> operands;
};

struct Block;

struct Thread {
	dim3 index;
	unsigned linear, lane;
	enum State { fresh, ready, at_barrier, at_warpgroup_barrier, at_previous, in_exchange, exited } state;
	bool waited; // for the launch before
	Block *block;
	Warp *warp;
	void *stack_pointer; // while it waits
	char *stack;
	const char *file; // where it waits
	int line;
	std::vector<Copy> copies;
	unsigned groups; // of copies, closed
	std::vector<Product> products;
	unsigned product_groups; // closed
	bool fenced;             // by wgmma_fence, since products were last waited for
	std::vector<uint32_t> unfenced; // 16 bytes of shared memory each that it copied to, since fence_proxy_async
};

struct Block {
	dim3 index;
	uint64_t linear;
	std::vector<Thread> threads;
	std::vector<Warp> warps;
	std::vector<unsigned> order;
	unsigned waiting, waiting_for_previous, exited;
	std::vector<unsigned> at_warpgroup_barrier; // threads, by warpgroup
	std::vector<uint16_t> unfenced; // who, plus 1, copied to 16 bytes of shared memory, since its fence_proxy_async
	char *shared; // memory: the arrays of the kernel, then the dynamic one
};

// Kernel is an entry of a PTX file, translated.
struct Kernel {
	const char *name;
	void (*call)(void *const *parameters);
	std::vector<size_t> sizes; // of its parameters
	size_t own_shared;         // bytes of shared memory before the dynamic ones
	const char *file;
	std::vector<std::pair<size_t, size_t>> arrays; // in its own shared memory: where they begin and end
};

struct Early;

struct Launch {
	const Kernel *kernel;
	void *const *parameters;
	dim3 grid, block;
	size_t dynamic_shared;
	bool cooperative;
	// It may begin before the one ahead of it on the stream has ended.
	bool dependent;
	Early *early = nullptr; // blocks that have begun
};

enum class Fault { none, failed, illegal_address };

// launch runs a kernel. A fault leaves a message on standard error. next is the dependent
// launch that comes after it, if there is one: some of its blocks run before anything
// else, as far as they do without waiting, which is earlier than on any GPU.
Fault launch(Launch &l, Launch *next);
// forget drops blocks of a launch that have begun.
void forget(Launch &l);

// dim3s of the running thread.
extern Thread *current;
extern dim3 block_size, grid_size;

void wait_for_block(const char *file, int line);
// wait_for_warpgroup waits at a barrier of so many threads: that of a warpgroup has 128, and
// its number plus 1, as barrier 0 is the block's.
void wait_for_warpgroup(unsigned barrier, unsigned threads, const char *file, int line);
void wait_for_previous(const char *file, int line);

// exchange leaves size bytes in the lane's place and waits for all lanes of the mask.
// The caller reads and then calls finish.
Exchange *exchange(unsigned mask, const void *value, size_t size, const char *operation, const char *file, int line);
void finish(Exchange *e);

void start_copy(void *to, const void *from, unsigned bytes, unsigned read, int line);
void close_group();
void wait_for_groups(unsigned newest);

// Products of wgmma (warpgroup.cpp). The registers are those of the calling thread; the
// matrices have rows of 256 bits. The descriptions are those of the PTX ISA, and must have no
// swizzling.
void fence_proxy_async();
void wgmma_fence(const char *file, int line);
void wgmma_and(std::initializer_list<uint32_t *> d, uint64_t a, uint64_t b, bool add, const char *file, int line);
void wgmma_u8s8(std::initializer_list<uint32_t *> d, uint64_t a, uint64_t b, bool add, const char *file, int line);
void wgmma_commit(const char *file, int line);
void wgmma_wait(unsigned newest, const char *file, int line);
// check_products fails where a thread ends that has not waited for products.
void check_products(const Thread &t);
// same_products reports whether the warps of each warpgroup started the same products.
bool same_products(const Block &b);

// Where addresses of shared memory begin, so that one that was never set is none.
const uint64_t shared_base = 1024;

// The shared memory of the block that runs.
char *shared_memory();
size_t shared_size();

// poll lets others run where the thread reads once more what one of them may write.
void poll(const char *file, int line);

// What is checked of accesses to shared and global memory, and of fences, where the driver is
// built for it (races.cpp); the line is that of the PTX file.
enum class Access { read, write, atomic, acquire };
#if defined(EMULATION_CHECKED)
void access(const void *p, size_t size, Access how, int line);
void fence();
#else
inline void access(const void *, size_t, Access, int) {}
inline void fence() {}
#endif

// fail ends the launch from within a thread of it.
[[noreturn]] void fail(Fault fault, const char *format, ...) PRINTF(2, 3);

// fused returns a·b + c, rounded once. The C library of MinGW-w64 rounds twice; all processors
// with AVX2 have the instruction.
inline float fused(float a, float b, float c)
{
#if defined(_WIN32)
	__asm__ volatile("vfmadd231ss %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
	return c;
#else
	return __builtin_fmaf(a, b, c);
#endif
}

// add_translation adds a file of PTX, by its text, and its kernels as C++. No other file can be
// loaded.
bool add_translation(const char *ptx, std::initializer_list<std::vector<Kernel>> parts);
// find_translations returns the kernels of a PTX text, by name: those whose entries are the same as in a
// file that was added. The text may have some of the file's entries or all.
std::map<std::string, const Kernel *> find_translations(const char *ptx);

} // namespace emulation
#endif
