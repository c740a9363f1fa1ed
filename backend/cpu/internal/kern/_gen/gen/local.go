package gen

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
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
