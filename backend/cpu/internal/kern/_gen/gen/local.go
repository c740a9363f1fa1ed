package gen

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// AlignedLocal allocates bytes on the stack at a multiple of align, a power of two,
// and returns where their address is. A stack is aligned to 8 bytes only: vectors
// that happen to cross lines of the cache cost a convolution a tenth of its time.
func AlignedLocal(bytes, align int) (address Mem) {
	local, address := AllocLocal(bytes+align-8), AllocLocal(8)
	at := GP64()
	LEAQ(local.Offset(align-8), at)
	ANDQ(I8(-align), at)
	MOVQ(at, address)
	return address
}

// Fields returns what loads a field of a job into a register.
func Fields(job reg.Register) func(disp int) reg.GPVirtual {
	return func(disp int) reg.GPVirtual {
		r := GP64()
		MOVQ(Mem{Base: job, Disp: disp}, r)
		return r
	}
}
