// What the files of the emulator share.
#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

// Numbers of registers as instructions have them.
extern const int registers[16];

// operand is where an instruction reads or writes memory.
struct operand {
	uint8_t *base;
	int64_t stride; // the index, times its scale
	int length;     // bytes of the instruction behind the opcode
};

// decodeOperand reads ModRM and what follows it, with displacements of a byte that count so many bytes.
// Without SIB there is no stride.
struct operand decodeOperand(const uint8_t *code, const greg_t *regs, int x, int b, int unit);

// executeVector executes the instruction at code and returns its length, 0 if it is another one.
int executeVector(const uint8_t *code, greg_t *regs);

// is says which instruction is being executed, by its name in the manual, and reports whether it shall
// do anything: it does not if it is the one that AMX_FAULT leaves out. leftOut says so, too.
int is(const char *name);
extern __thread int leftOut;

// wrong reports whether AMX_FAULT names this.
int wrong(const char *what);
