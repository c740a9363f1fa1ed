package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// A kernel convolves pixels × vectors of output channels. Its innermost loop
// sums in narrow lanes, which are added to sums in memory before they overflow.
//
// Instructions have two operands, so that what a weight selects from is copied
// first. Weights are aligned to 16 bytes and can be operands in memory, which
// costs less than a register shared by two pixels.
type kernel struct {
	bytes           bool // else nibbles
	sums            bool
	pixels, vectors int
	job             reg.Register
	counts          reg.Register // popcounts
	// Written as 32 bits, which to the allocator of registers keeps the upper
	// half alive: one of each is enough.
	temp, table reg.GPVirtual
	taken       reg.GPVirtual // pixels of a tile
	wideAt      Mem           // the address of [pixel][vector] 32 bytes: 16-bit sums of even and of odd outputs, or 32-bit sums
}

// piece is the bytes of the input that meet a vector of weights.
func (k *kernel) piece() int {
	if k.bytes {
		return 2
	}
	return 1
}

// outputs is the number of output channels of a vector.
func (k *kernel) outputs() int { return 16 / k.piece() }

// budget is the number of bytes of input after which narrow sums could
// overflow: of 8 bits with 4 for every nibble, of 16 bits as the job says.
func (k *kernel) budget() Op {
	if k.bytes {
		return Mem{Base: k.job, Disp: gen.JobBudget}
	}
	return U32(63)
}

func (k *kernel) write() {
	n := k.vectors * k.outputs()
	name, piece, product, result := "convBits", "nibbles", "popcount(x[i] XOR w[i][o])", "bit o of dst[p] = c[o] ≤ table[class[p]][o], XOR flip"
	if k.bytes {
		name, piece, product, result = "convBytes", "pairs of bytes", "Σ of 2 bytes of x[i]·w[i][o]", "bit o of dst[p] = c[o] ≥ table[class[p]][o], XOR flip"
	}
	if k.sums {
		name += "Sums"
		result = "dst[p][o] = table[class[p]][o] − 2·c[o]"
		if k.bytes {
			result = "dst[p][o] = table[class[p]][o] + c[o]"
		}
	}
	name += fmt.Sprintf("%dSSSE3", n)
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(fmt.Sprintf("%s computes, for every pixel p and each of %d outputs o, with x the", name, n),
		piece+" of the patch at src + at[p],",
		"",
		"\tc[o] = Σ over i of "+product,
		"\t"+result)
	Pragma("noescape")
	k.wideAt = gen.AlignedLocal(k.pixels*k.vectors*32, 16)
	k.temp, k.table, k.taken = GP64(), GP64(), GP64()
	k.job = Load(Param("job"), GP64())
	if !k.bytes {
		k.counts = GP64()
		LEAQ(NewDataAddr(NewStaticSymbol("popcounts"), 0), k.counts)
	}
	Label("wide")
	CMPQ(Mem{Base: k.job, Disp: gen.JobPixels}, U8(k.pixels))
	JLT(LabelRef("narrow"))
	k.tile(k.pixels, "w")
	MOVQ(U32(uint32(k.pixels)), k.taken)
	Label("store")
	k.storeTile()
	JMP(LabelRef("wide"))
	Label("narrow")
	if k.pixels > 1 {
		CMPQ(Mem{Base: k.job, Disp: gen.JobPixels}, U8(0))
		JEQ(LabelRef("done"))
		k.tile(1, "n")
		MOVQ(U32(1), k.taken)
		JMP(LabelRef("store"))
		Label("done")
	}
	RET()
}

// storeTile writes the results of as many pixels as k.taken says, and takes them off the job.
func (k *kernel) storeTile() {
	dst, class, from, left := GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: k.job, Disp: gen.JobDst}, dst)
	MOVQ(Mem{Base: k.job, Disp: gen.JobClass}, class)
	MOVQ(k.taken, left)
	sums := k.wide(from)
	Label("pixel")
	MOVL(Mem{Base: class}, k.table.As32())
	ADDQ(Mem{Base: k.job, Disp: gen.JobTable}, k.table)
	if k.bytes {
		k.storeBytes(sums, dst, k.table)
	} else {
		k.store(sums, dst, k.table)
	}
	ADDQ(Mem{Base: k.job, Disp: gen.JobDstStep}, dst)
	ADDQ(U8(4), class)
	ADDQ(U32(uint32(32*k.vectors)), from)
	DECQ(left)
	JNE(LabelRef("pixel"))
	MOVQ(dst, Mem{Base: k.job, Disp: gen.JobDst})
	SUBQ(k.taken, Mem{Base: k.job, Disp: gen.JobPixels})
	SHLQ(U8(2), k.taken)
	ADDQ(k.taken, Mem{Base: k.job, Disp: gen.JobAt})
	ADDQ(k.taken, Mem{Base: k.job, Disp: gen.JobClass})
}

// tile computes some pixels.
func (k *kernel) tile(pixels int, label string) {
	at := GP64()
	MOVQ(Mem{Base: k.job, Disp: gen.JobAt}, at)
	x := make([]reg.GPVirtual, pixels)
	for p := range x {
		x[p] = GP64()
		MOVL(Mem{Base: at, Disp: 4 * p}, x[p].As32())
		ADDQ(Mem{Base: k.job, Disp: gen.JobSrc}, x[p])
	}
	acc := make([]reg.VecVirtual, pixels*k.vectors)
	for i := range acc {
		acc[i] = XMM()
		PXOR(acc[i], acc[i])
	}
	wide := k.wide(k.temp)
	for i := range acc {
		MOVO(acc[i], wide.Offset(32*i))
		MOVO(acc[i], wide.Offset(32*i+16))
	}
	w, i, row, end, stop, budget := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: k.job, Disp: gen.JobWeights}, w)
	XORQ(i, i)
	MOVQ(Mem{Base: k.job, Disp: gen.JobRows}, row)
	MOVQ(k.budget(), budget)
	Label(label + "row")
	MOVQ(Mem{Base: k.job, Disp: gen.JobRunBytes}, end)
	ADDQ(i, end)
	Label(label + "chunk")
	LEAQ(Mem{Base: i, Index: budget, Scale: 1}, stop)
	CMPQ(stop, end)
	CMOVQGT(end, stop)
	ADDQ(i, budget)
	SUBQ(stop, budget)
	pairs := k.table // where the last pair of pieces starts, not free yet for tables
	LEAQ(Mem{Base: stop, Disp: -k.piece()}, pairs)
	CMPQ(i, pairs)
	JGE(LabelRef(label + "piece"))
	Label(label + "pair")
	k.step(x, acc, w, i, 2)
	CMPQ(i, pairs)
	JLT(LabelRef(label + "pair"))
	JG(LabelRef(label + "pieces"))
	Label(label + "piece")
	k.step(x, acc, w, i, 1)
	Label(label + "pieces")
	CMPQ(budget, U8(0))
	JNE(LabelRef(label + "go"))
	Label(label + "flush") // when narrow sums could overflow, and in the end
	k.widen(acc)
	TESTQ(row, row)
	JEQ(LabelRef(label + "summed"))
	for _, a := range acc {
		PXOR(a, a)
	}
	MOVQ(k.budget(), budget)
	Label(label + "go")
	CMPQ(i, end)
	JNE(LabelRef(label + "chunk"))
	ADDQ(Mem{Base: k.job, Disp: gen.JobRowSkip}, i)
	DECQ(row)
	JNE(LabelRef(label + "row"))
	JMP(LabelRef(label + "flush"))
	Label(label + "summed")
}

// step adds n pieces of every patch.
func (k *kernel) step(x []reg.GPVirtual, acc []reg.VecVirtual, w, i reg.Register, n int) {
	for piece := range n {
		k.addPiece(x, acc, w, i, piece)
	}
	ADDQ(U32(uint32(16*k.vectors*n)), w)
	ADDQ(U8(k.piece()*n), i)
}

func (k *kernel) addPiece(x []reg.GPVirtual, acc []reg.VecVirtual, w, i reg.Register, piece int) {
	for p := range x {
		in, n := Mem{Base: x[p], Index: i, Scale: 1, Disp: piece * k.piece()}, k.temp
		b := XMM()
		if k.bytes {
			MOVWLZX(in, n.As32())
			MOVD(n.As32(), b)
			PSHUFLW(U8(0), b, b)
			PSHUFD(U8(0), b, b)
		} else {
			MOVBLZX(in, n.As32())
			MOVO(Mem{Base: k.counts, Index: n, Scale: 1}, b)
		}
		for v := range k.vectors {
			t := b
			if v < k.vectors-1 {
				t = XMM()
				MOVO(b, t)
			}
			weights := Mem{Base: w, Disp: 16 * (piece*k.vectors + v)}
			if k.bytes {
				PMADDUBSW(weights, t)
				PADDW(t, acc[p*k.vectors+v])
			} else {
				PSHUFB(weights, t)
				PADDB(t, acc[p*k.vectors+v])
			}
		}
	}
}

// wide is the sums in memory, whose address it loads into a register.
func (k *kernel) wide(at reg.GPVirtual) Mem {
	MOVQ(k.wideAt, at)
	return Mem{Base: at}
}

// widen adds the narrow sums to those in memory.
func (k *kernel) widen(acc []reg.VecVirtual) {
	wide := k.wide(k.temp)
	var mask reg.VecVirtual
	if !k.bytes {
		mask = XMM()
		PCMPEQW(mask, mask)
		PSRLW(U8(8), mask)
	}
	for i, a := range acc {
		low, high := XMM(), XMM()
		lowSum, highSum := wide.Offset(32*i), wide.Offset(32*i+16)
		if k.bytes { // each 16 bits twice, shifted so that the sign is extended
			MOVO(a, low)
			PUNPCKLWL(low, low)
			PSRAL(U8(16), low)
			MOVO(a, high)
			PUNPCKHWL(high, high)
			PSRAL(U8(16), high)
		} else {
			MOVO(a, low)
			PAND(mask, low)
			MOVO(a, high)
			PSRLW(U8(8), high)
		}
		for _, s := range []struct {
			in  reg.VecVirtual
			out Mem
		}{{low, lowSum}, {high, highSum}} {
			if k.bytes {
				PADDL(s.out, s.in)
			} else {
				PADDW(s.out, s.in)
			}
			MOVO(s.in, s.out)
		}
	}
}

// join puts part, of n bits, at place i of word.
func join(word, part reg.GPVirtual, i, n int) {
	if i == 0 {
		MOVQ(part, word)
		return
	}
	SHLQ(U8(i*n), part)
	ORQ(part, word)
}

// storeWord stores n bits, which so far say where a bit is not to be.
func (k *kernel) storeWord(word reg.Register, n int, dst reg.Register) {
	if k.sums {
		return
	}
	mask := GP64()
	MOVQ(U64(1<<(n-1)<<1-1), mask)
	XORQ(mask, word)
	XORQ(Mem{Base: k.job, Disp: gen.JobFlip}, word)
	MOVQ(word, Mem{Base: dst})
}
