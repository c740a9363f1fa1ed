package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// A kernel convolves pixels × vectors of output channels. Its innermost loop
// sums in narrow lanes, which are added to sums in memory before they overflow.
type kernel struct {
	bytes           bool // else bits, in nibbles
	paired          bool // of bits: both nibbles of a byte at once, for 16 outputs
	sums            bool
	floats          bool // ended sums
	levels          bool // of bytes: the numbers of their levels
	pooled          bool // of four pixels
	pixels, vectors int
	job             reg.Register
	counts          reg.Register // popcounts
	// Written as 32 bits, which to the allocator of registers keeps the upper
	// half alive: one of each is enough.
	temp, table reg.GPVirtual
	taken       reg.GPVirtual // pixels of a tile
	flushed     Mem           // 0 until there are sums in memory
	order       Mem           // see levelOrder
	wideAt      Mem           // the address of [pixel][vector] 64 bytes: 16-bit sums of even and of odd outputs, or 32-bit sums
}

// piece is the bytes of the input that meet a vector of weights.
func (k *kernel) piece() int {
	if k.bytes || k.paired {
		return 2
	}
	return 1
}

// outputs is the number of output channels of a vector.
func (k *kernel) outputs() int { return 32 / k.piece() }

// budget is the number of bytes of input after which narrow sums could
// overflow: of 8 bits with 4 for every nibble, of 16 bits as the job says.
func (k *kernel) budget() Op {
	if k.bytes {
		return Mem{Base: k.job, Disp: gen.JobBudget}
	}
	return U32(uint32(63 * k.piece()))
}

func conv(bytes, sums, pooled bool, pixels, vectors int) {
	(&kernel{bytes: bytes, sums: sums, pooled: pooled, pixels: pixels, vectors: vectors}).write()
}

// write writes the kernel.
func (k *kernel) write() {
	bytes, sums, pooled, pixels, vectors := k.bytes, k.sums, k.pooled, k.pixels, k.vectors
	n := vectors * k.outputs()
	name, piece, product, result := "convBits", "nibbles", "popcount(x[i] XOR w[i][o])", "bit o of dst[p] = c[o] ≤ table[class[p]][o], XOR flip"
	if k.paired {
		piece = "bytes"
	}
	if bytes {
		name, piece, product, result = "convBytes", "pairs of bytes", "Σ of 2 bytes of x[i]·w[i][o]", "bit o of dst[p] = c[o] ≥ table[class[p]][o], XOR flip"
	}
	if sums {
		name += "Sums"
		result = "dst[p][o] = table[class[p]][o] − 2·c[o]"
		if bytes {
			result = "dst[p][o] = table[class[p]][o] + c[o]"
		}
	}
	switch {
	case k.levels:
		name += "Levels"
		result = "dst[p][o] = level of the end of float32(table[class[p]][o] + c[o])"
	case k.floats:
		name += "Floats"
		result = "dst[p][o] = end of float32(table[class[p]][o] − 2·c[o]), plus what is added"
		if bytes {
			result = "dst[p][o] = end of float32(table[class[p]][o] + c[o]), plus what is added"
		}
	}
	if pooled {
		name += "Pooled"
		result = strings.NewReplacer("dst[p]", "dst[p/4]", "[o],", "[o] of any of four pixels,").Replace(result)
	}
	name += fmt.Sprintf("%dAVX2", n)
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(fmt.Sprintf("%s computes, for every pixel p and each of %d outputs o, with x the", name, n),
		piece+" of the patch at src + at[p],",
		"",
		"\tc[o] = Σ over i of "+product,
		"\t"+result)
	Pragma("noescape")
	k.wideAt = gen.AlignedLocal(pixels*vectors*64, 32)
	k.flushed = AllocLocal(8)
	k.temp, k.table, k.taken = GP64(), GP64(), GP64()
	k.job = Load(Param("job"), GP64())
	if !bytes {
		k.counts = GP64()
		symbol := "popcounts"
		if k.paired {
			symbol = "popcountPairs"
		}
		LEAQ(NewDataAddr(NewStaticSymbol(symbol), 0), k.counts)
	}
	Label("wide")
	CMPQ(Mem{Base: k.job, Disp: gen.JobPixels}, U8(pixels))
	JLT(LabelRef("narrow"))
	k.tile(pixels, "w")
	k.storeTile(pixels)
	JMP(LabelRef("wide"))
	Label("narrow")
	if !pooled {
		CMPQ(Mem{Base: k.job, Disp: gen.JobPixels}, U8(0))
		JEQ(LabelRef("done"))
		k.tile(1, "n")
		MOVQ(U32(1), k.taken)
		JMP(LabelRef("store"))
	}
	Label("done")
	VZEROUPPER()
	RET()
}

// storeTile writes the results of a tile of pixels, and takes them off the job. From the label "store" on, it
// is for as many pixels as k.taken says.
func (k *kernel) storeTile(pixels int) {
	dst, class, from, left := GP64(), GP64(), GP64(), GP64()
	places := func() {
		MOVQ(Mem{Base: k.job, Disp: gen.JobDst}, dst)
		MOVQ(Mem{Base: k.job, Disp: gen.JobClass}, class)
	}
	MOVQ(U32(uint32(pixels)), k.taken)
	if !k.bytes && !k.paired && !k.sums && !k.floats {
		places()
		k.storeAlike(dst, class)
	}
	Label("store")
	places()
	if k.pooled {
		switch {
		case k.bytes:
			MOVL(Mem{Base: class}, k.table.As32())
			ADDQ(Mem{Base: k.job, Disp: gen.JobTable}, k.table)
			k.storeBytes(k.wide(GP64()), dst, k.table)
			ADDQ(Mem{Base: k.job, Disp: gen.JobDstStep}, dst)
		case k.paired:
			k.storePooledPair(dst, class)
		default:
			k.storePooled(dst, class)
		}
	} else {
		MOVQ(k.taken, left)
		sums := k.wide(from)
		Label("pixel")
		MOVL(Mem{Base: class}, k.table.As32())
		ADDQ(Mem{Base: k.job, Disp: gen.JobTable}, k.table)
		k.store(sums, dst, k.table)
		ADDQ(Mem{Base: k.job, Disp: gen.JobDstStep}, dst)
		ADDQ(U8(4), class)
		ADDQ(U32(uint32(64*k.vectors)), from)
		DECQ(left)
		JNE(LabelRef("pixel"))
	}
	Label("stored")
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
		acc[i] = YMM()
		VPXOR(acc[i], acc[i], acc[i])
	}
	MOVQ(U32(0), k.flushed)
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
	// Several pieces at a time, then one.
	several := GP64()
	Label(label + "pieces")
	LEAQ(Mem{Base: i, Disp: unroll * k.piece()}, several)
	CMPQ(several, stop)
	JGT(LabelRef(label + "piecesdone"))
	for u := range unroll {
		k.step(x, acc, w, i, u)
	}
	ADDQ(U32(uint32(unroll*32*k.vectors)), w)
	MOVQ(several, i)
	JMP(LabelRef(label + "pieces"))
	Label(label + "piecesdone")
	CMPQ(i, stop)
	JEQ(LabelRef(label + "full"))
	Label(label + "piece")
	k.step(x, acc, w, i, 0)
	ADDQ(U32(uint32(32*k.vectors)), w)
	ADDQ(U8(k.piece()), i)
	CMPQ(i, stop)
	JNE(LabelRef(label + "piece"))
	Label(label + "full")
	CMPQ(budget, U8(0))
	JNE(LabelRef(label + "go"))
	Label(label + "flush") // when narrow sums could overflow, and in the end
	k.flush(acc, label+"flush")
	TESTQ(row, row)
	JEQ(LabelRef(label + "summed"))
	for _, a := range acc {
		VPXOR(a, a, a)
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

// unroll is the number of pieces that a round of the inner loop takes.
const unroll = 4

// step adds one piece of every patch, u pieces on.
func (k *kernel) step(x []reg.GPVirtual, acc []reg.VecVirtual, w, i reg.Register, u int) {
	weights := make([]reg.VecVirtual, k.vectors)
	for v := range weights {
		weights[v] = YMM()
		VMOVDQU(Mem{Base: w, Disp: 32 * (u*k.vectors + v)}, weights[v])
	}
	for p := range x {
		in := Mem{Base: x[p], Index: i, Scale: 1, Disp: u * k.piece()}
		b := YMM()
		switch {
		case k.bytes:
			VPBROADCASTW(in, b)
		case k.paired:
			n := k.temp
			MOVWQZX(in, n)
			VMOVDQU(Mem{Base: k.counts, Index: n, Scale: 1}, b)
		default:
			n := k.temp
			MOVBQZX(in, n)
			VBROADCASTI128(Mem{Base: k.counts, Index: n, Scale: 1}, b)
		}
		for v := range weights {
			a, t := acc[p*k.vectors+v], YMM()
			if k.bytes {
				VPMADDUBSW(weights[v], b, t)
				VPADDW(t, a, a)
			} else {
				VPSHUFB(weights[v], b, t)
				VPADDB(t, a, a)
			}
		}
	}
}

// flush adds the narrow sums to those in memory, or stores them there if they
// are the first.
func (k *kernel) flush(acc []reg.VecVirtual, label string) {
	CMPQ(k.flushed, U8(0))
	JNE(LabelRef(label + "add"))
	k.widen(acc, true)
	MOVQ(U32(1), k.flushed)
	JMP(LabelRef(label + "done"))
	Label(label + "add")
	k.widen(acc, false)
	Label(label + "done")
}

// wide is the sums in memory, whose address it loads into a register.
func (k *kernel) wide(at reg.GPVirtual) Mem {
	MOVQ(k.wideAt, at)
	return Mem{Base: at}
}

func (k *kernel) widen(acc []reg.VecVirtual, first bool) {
	wide := k.wide(k.temp)
	var mask reg.VecVirtual
	if k.paired {
		for i, a := range acc {
			sum, upper := YMM(), XMM()
			VEXTRACTI128(U8(1), a, upper)
			VPMOVZXBW(a.AsX(), sum)
			VPMOVZXBW(upper, a)
			VPADDW(a, sum, sum)
			if !first {
				VPADDW(wide.Offset(64*i), sum, sum)
			}
			VMOVDQU(sum, wide.Offset(64*i))
		}
		return
	}
	if !k.bytes {
		mask = YMM()
		VPCMPEQW(mask, mask, mask)
		VPSRLW(U8(8), mask, mask)
	}
	for i, a := range acc {
		low, high := YMM(), YMM()
		lowSum, highSum := wide.Offset(64*i), wide.Offset(64*i+32)
		if k.bytes {
			half := XMM()
			VPMOVSXWD(a.AsX(), low)
			VEXTRACTI128(U8(1), a, half)
			VPMOVSXWD(half, high)
			if !first {
				VPADDD(lowSum, low, low)
				VPADDD(highSum, high, high)
			}
		} else {
			VPAND(a, mask, low)
			VPSRLW(U8(8), a, high)
			if !first {
				VPADDW(lowSum, low, low)
				VPADDW(highSum, high, high)
			}
		}
		VMOVDQU(low, lowSum)
		VMOVDQU(high, highSum)
	}
}
