// Command avx2 writes the kernels of the instruction set avx2.
package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of kern.Job.
const (
	jobDstStep  = 8
	jobSrc      = 16
	jobTable    = 40
	jobWeights  = 48
	jobRows     = 56
	jobRunBytes = 64
	jobRowSkip  = 72
	jobPixels   = 80
	jobFlip     = 88
	jobDst      = 104
	jobAt       = 112
	jobClass    = 120
)

// A kernel convolves pixels × vectors of output channels. Its innermost loop
// sums in narrow lanes, which are added to sums in memory before they overflow.
type kernel struct {
	bytes           bool // else nibbles
	sums            bool
	pooled          bool // of four pixels
	pixels, vectors int
	job             reg.Register
	counts          reg.Register // popcounts
	// Written as 32 bits, which to the allocator of registers keeps the upper
	// half alive: one of each is enough.
	temp, table reg.GPVirtual
	flushed     Mem // 0 until there are sums in memory
	wide        Mem // [pixel][vector] 64 bytes: 16-bit sums of even and of odd outputs, or 32-bit sums
}

// piece is the bytes of the input that meet a vector of weights.
func (k *kernel) piece() int {
	if k.bytes {
		return 2
	}
	return 1
}

// outputs is the number of output channels of a vector.
func (k *kernel) outputs() int { return 32 / k.piece() }

// budget is the number of bytes of input after which narrow sums could
// overflow: of 8 bits with 4 for every nibble, of 16 bits with 2·255 for every
// two bytes.
func (k *kernel) budget() int {
	if k.bytes {
		return 2 * 64
	}
	return 63
}

func conv(bytes, sums, pooled bool, pixels, vectors int) {
	k := &kernel{bytes: bytes, sums: sums, pooled: pooled, pixels: pixels, vectors: vectors}
	n := vectors * k.outputs()
	name, piece, product, result := "convBits", "nibbles", "popcount(x[i] XOR w[i][o])", "bit o of dst[p] = c[o] ≤ table[class[p]][o], XOR flip"
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
	k.wide = AllocLocal(pixels * vectors * 64)
	k.flushed = AllocLocal(8)
	k.temp, k.table = GP64(), GP64()
	k.job = Load(Param("job"), GP64())
	if !bytes {
		k.counts = GP64()
		LEAQ(NewDataAddr(NewStaticSymbol("popcounts"), 0), k.counts)
	}
	Label("wide")
	CMPQ(Mem{Base: k.job, Disp: jobPixels}, U8(pixels))
	JLT(LabelRef("narrow"))
	k.tile(pixels, "w")
	JMP(LabelRef("wide"))
	Label("narrow")
	if !pooled {
		CMPQ(Mem{Base: k.job, Disp: jobPixels}, U8(0))
		JEQ(LabelRef("done"))
		k.tile(1, "n")
		JMP(LabelRef("narrow"))
	}
	Label("done")
	VZEROUPPER()
	RET()
}

// tile computes some pixels and takes them off the job.
func (k *kernel) tile(pixels int, label string) {
	at := GP64()
	MOVQ(Mem{Base: k.job, Disp: jobAt}, at)
	x := make([]reg.GPVirtual, pixels)
	for p := range x {
		x[p] = GP64()
		MOVL(Mem{Base: at, Disp: 4 * p}, x[p].As32())
		ADDQ(Mem{Base: k.job, Disp: jobSrc}, x[p])
	}
	acc := make([]reg.VecVirtual, pixels*k.vectors)
	for i := range acc {
		acc[i] = YMM()
		VPXOR(acc[i], acc[i], acc[i])
	}
	MOVQ(U32(0), k.flushed)
	w, i, row, end, stop, budget := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: k.job, Disp: jobWeights}, w)
	XORQ(i, i)
	MOVQ(Mem{Base: k.job, Disp: jobRows}, row)
	MOVQ(U32(uint32(k.budget())), budget)
	Label(label + "row")
	MOVQ(Mem{Base: k.job, Disp: jobRunBytes}, end)
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
	k.flush(acc, label+"early")
	for _, a := range acc {
		VPXOR(a, a, a)
	}
	MOVQ(U32(uint32(k.budget())), budget)
	Label(label + "go")
	CMPQ(i, end)
	JNE(LabelRef(label + "chunk"))
	ADDQ(Mem{Base: k.job, Disp: jobRowSkip}, i)
	DECQ(row)
	JNE(LabelRef(label + "row"))
	k.flush(acc, label+"late")

	dst, class, table := GP64(), GP64(), k.table
	MOVQ(Mem{Base: k.job, Disp: jobDst}, dst)
	MOVQ(Mem{Base: k.job, Disp: jobClass}, class)
	if !k.bytes && !k.sums && pixels == 4 {
		k.storeAlike(dst, class, label)
	}
	switch {
	case k.pooled && k.bytes:
		MOVL(Mem{Base: class}, table.As32())
		ADDQ(Mem{Base: k.job, Disp: jobTable}, table)
		k.storeBytes(0, dst, table)
		ADDQ(Mem{Base: k.job, Disp: jobDstStep}, dst)
		pixels = 0
	case k.pooled:
		k.storePooled(dst, class)
		pixels = 0
	}
	for p := range pixels {
		MOVL(Mem{Base: class, Disp: 4 * p}, table.As32())
		ADDQ(Mem{Base: k.job, Disp: jobTable}, table)
		k.store(p, dst, table)
		ADDQ(Mem{Base: k.job, Disp: jobDstStep}, dst)
	}
	Label(label + "stored")
	MOVQ(dst, Mem{Base: k.job, Disp: jobDst})
	ADDQ(U8(4*len(x)), Mem{Base: k.job, Disp: jobAt})
	ADDQ(U8(4*len(x)), Mem{Base: k.job, Disp: jobClass})
	SUBQ(U8(len(x)), Mem{Base: k.job, Disp: jobPixels})
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
		if k.bytes {
			VPBROADCASTW(in, b)
		} else {
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

func (k *kernel) widen(acc []reg.VecVirtual, first bool) {
	var mask reg.VecVirtual
	if !k.bytes {
		mask = YMM()
		VPCMPEQW(mask, mask, mask)
		VPSRLW(U8(8), mask, mask)
	}
	for i, a := range acc {
		low, high := YMM(), YMM()
		lowSum, highSum := k.wide.Offset(64*i), k.wide.Offset(64*i+32)
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

// store writes the results of a pixel.
func (k *kernel) store(p int, dst, table reg.Register) {
	if k.bytes {
		k.storeBytes(p, dst, table)
		return
	}
	word, part := GP64(), k.temp
	for v := range k.vectors {
		sums := k.wide.Offset(64 * (p*k.vectors + v))
		even, odd, low, high := YMM(), YMM(), YMM(), YMM()
		VMOVDQU(sums, even)
		VMOVDQU(sums.Offset(32), odd)
		VPUNPCKLWD(odd, even, low)  // outputs 0–7 and 16–23
		VPUNPCKHWD(odd, even, high) // outputs 8–15 and 24–31
		if k.sums {
			for i, s := range []reg.VecVirtual{low, high} {
				upper := XMM()
				VEXTRACTI128(U8(1), s, upper)
				for j, h := range []Op{s.AsX(), upper} {
					place := 128*v + 32*i + 64*j
					c, t := YMM(), YMM()
					VPMOVZXWD(h, c)
					VPADDD(c, c, c)
					VMOVDQU(Mem{Base: table, Disp: place}, t)
					VPSUBD(c, t, t)
					VMOVDQU(t, Mem{Base: dst, Disp: place})
				}
			}
			continue
		}
		for i, s := range []reg.VecVirtual{low, high} {
			VPCMPGTW(bounds(table, v, i), s, s)
		}
		VPACKSSWB(high, low, low)
		VPMOVMSKB(low, part.As32())
		NOTL(part.As32())
		if v == 0 {
			MOVQ(part, word)
		} else {
			SHLQ(U8(32), part)
			ORQ(part, word)
		}
	}
	if !k.sums {
		XORQ(Mem{Base: k.job, Disp: jobFlip}, word)
		MOVQ(word, Mem{Base: dst})
	}
}

// bounds returns the thresholds of half the outputs of a vector. Saturated to 16
// bits, they mean the same.
func bounds(table reg.Register, v, half int) reg.VecVirtual {
	a, b := YMM(), YMM()
	place := 128*v + 32*half
	VBROADCASTI128(Mem{Base: table, Disp: place}, a)
	VINSERTI128(U8(1), Mem{Base: table, Disp: place + 64}, a, a)
	VBROADCASTI128(Mem{Base: table, Disp: place + 16}, b)
	VINSERTI128(U8(1), Mem{Base: table, Disp: place + 80}, b, b)
	VPACKSSDW(b, a, a)
	return a
}

// storeAlike writes packed words of four pixels that have the same thresholds,
// and leaves it to what follows if they have not.
func (k *kernel) storeAlike(dst, class reg.Register, label string) {
	all, one, part := XMM(), XMM(), k.temp
	VMOVDQU(Mem{Base: class}, all)
	VPBROADCASTD(Mem{Base: class}, one)
	VPXOR(one, all, all)
	VPTEST(all, all)
	JNE(LabelRef(label + "differ"))
	MOVL(Mem{Base: class}, k.table.As32())
	ADDQ(Mem{Base: k.job, Disp: jobTable}, k.table)
	var t [2][2]reg.VecVirtual
	for v := range k.vectors {
		t[v] = [2]reg.VecVirtual{bounds(k.table, v, 0), bounds(k.table, v, 1)}
	}
	words := 4
	if k.pooled {
		words = 1
	}
	for p := range words {
		word := GP64()
		for v := range k.vectors {
			sums := k.wide.Offset(64 * (p*k.vectors + v))
			even, odd, low, high := YMM(), YMM(), YMM(), YMM()
			VMOVDQU(sums, even)
			VMOVDQU(sums.Offset(32), odd)
			if k.pooled {
				for q := 1; q < 4; q++ {
					VPMINSW(sums.Offset(64*q*k.vectors), even, even)
					VPMINSW(sums.Offset(64*q*k.vectors+32), odd, odd)
				}
			}
			VPUNPCKLWD(odd, even, low)
			VPUNPCKHWD(odd, even, high)
			VPCMPGTW(t[v][0], low, low)
			VPCMPGTW(t[v][1], high, high)
			VPACKSSWB(high, low, low)
			VPMOVMSKB(low, part.As32())
			NOTL(part.As32())
			if v == 0 {
				MOVQ(part, word)
			} else {
				SHLQ(U8(32), part)
				ORQ(part, word)
			}
		}
		XORQ(Mem{Base: k.job, Disp: jobFlip}, word)
		MOVQ(word, Mem{Base: dst})
		ADDQ(Mem{Base: k.job, Disp: jobDstStep}, dst)
	}
	JMP(LabelRef(label + "stored"))
	Label(label + "differ")
}

// storePooled writes a packed word of four pixels, each with thresholds of its
// own: any of them has a bit if the least difference is not positive.
func (k *kernel) storePooled(dst, class reg.Register) {
	word, part := GP64(), k.temp
	for v := range k.vectors {
		var least [2]reg.VecVirtual
		for p := range 4 {
			MOVL(Mem{Base: class, Disp: 4 * p}, k.table.As32())
			ADDQ(Mem{Base: k.job, Disp: jobTable}, k.table)
			sums := k.wide.Offset(64 * (p*k.vectors + v))
			even, odd := YMM(), YMM()
			half := [2]reg.VecVirtual{YMM(), YMM()}
			VMOVDQU(sums, even)
			VMOVDQU(sums.Offset(32), odd)
			VPUNPCKLWD(odd, even, half[0])
			VPUNPCKHWD(odd, even, half[1])
			for i, h := range half {
				VPSUBSW(bounds(k.table, v, i), h, h)
				if p == 0 {
					least[i] = h
				} else {
					VPMINSW(h, least[i], least[i])
				}
			}
		}
		zero := YMM()
		VPXOR(zero, zero, zero)
		for _, s := range least {
			VPCMPGTW(zero, s, s)
		}
		VPACKSSWB(least[1], least[0], least[0])
		VPMOVMSKB(least[0], part.As32())
		NOTL(part.As32())
		if v == 0 {
			MOVQ(part, word)
		} else {
			SHLQ(U8(32), part)
			ORQ(part, word)
		}
	}
	XORQ(Mem{Base: k.job, Disp: jobFlip}, word)
	MOVQ(word, Mem{Base: dst})
	ADDQ(Mem{Base: k.job, Disp: jobDstStep}, dst)
}

func (k *kernel) storeBytes(p int, dst, table reg.Register) {
	word, part := GP64(), k.temp
	for v := range 2 * k.vectors { // 8 outputs each
		sums := k.wide.Offset(32 * (2*p*k.vectors + v))
		c := YMM()
		if k.sums {
			VMOVDQU(sums, c)
			VPADDD(Mem{Base: table, Disp: 32 * v}, c, c)
			VMOVDQU(c, Mem{Base: dst, Disp: 32 * v})
			continue
		}
		if k.pooled { // of the greatest sum
			greatest := YMM()
			VMOVDQU(sums, greatest)
			for q := 1; q < 4; q++ {
				VPMAXSD(sums.Offset(64*q*k.vectors), greatest, greatest)
			}
			VMOVDQU(Mem{Base: table, Disp: 32 * v}, c)
			VPCMPGTD(greatest, c, c)
		} else {
			VMOVDQU(Mem{Base: table, Disp: 32 * v}, c)
			VPCMPGTD(sums, c, c)
		}
		VMOVMSKPS(c, part.As32())
		if v == 0 {
			MOVQ(part, word)
		} else {
			SHLQ(U8(8*v), part)
			ORQ(part, word)
		}
	}
	if k.sums {
		return
	}
	// The bits so far say where the threshold is greater.
	mask := GP64()
	MOVQ(U64(1<<(16*k.vectors-1)<<1-1), mask)
	XORQ(mask, word)
	XORQ(Mem{Base: k.job, Disp: jobFlip}, word)
	MOVQ(word, Mem{Base: dst})
}

func main() {
	ConstraintExpr("amd64,!purego")
	popcounts := GLOBL("popcounts", RODATA|NOPTR)
	for a := range 16 {
		var row [2]uint64
		for b := range 16 {
			n := uint64(0)
			for d := a ^ b; d != 0; d &= d - 1 {
				n++
			}
			row[b/8] |= n << (8 * (b % 8))
		}
		DATA(16*a, U64(row[0]))
		DATA(16*a+8, U64(row[1]))
	}
	_ = popcounts
	for _, sums := range []bool{false, true} {
		conv(false, sums, false, 4, 2)
		conv(false, sums, false, 4, 1)
		conv(true, sums, false, 2, 4)
		conv(true, sums, false, 4, 2)
		conv(true, sums, false, 4, 1)
	}
	for _, vectors := range []int{2, 1} {
		conv(false, false, true, 4, vectors)
		conv(true, false, true, 4, vectors)
	}
	for _, shape := range [][2]int{{1, 4}, {4, 1}, {1, 1}} {
		dotBits(shape[0], shape[1])
	}
	fma()
	thresholds()
	laneMasks()
	fmaPixels(6, 2)
	fmaPixels(6, 1)
	scale()
	add()
	fmaEach()
	choose()
	pools()
	orPool4()
	narrow()
	join("join32AVX2", 4)
	join("join8AVX2", 1)
	thresholdBytes()
	spread()
	luma()
	lbp()
	minMax()
	expand()
	peak()
	Generate()
}
