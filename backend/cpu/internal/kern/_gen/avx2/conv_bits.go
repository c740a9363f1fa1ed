package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// convBits writes the convolutions of bits.
func convBits() {
	gen.Popcounts(16)
	gen.PopcountPairs()
	for _, sums := range []bool{false, true} {
		conv(false, sums, false, 4, 2)
		conv(false, sums, false, 4, 1)
	}
	(&kernel{floats: true, pixels: 4, vectors: 2}).write()
	(&kernel{floats: true, pixels: 4, vectors: 1}).write()
	for _, k := range []kernel{{}, {sums: true}, {floats: true}, {pooled: true}} {
		k.paired, k.pixels, k.vectors = true, 4, 1
		k.write()
	}
	for _, vectors := range []int{2, 1} {
		conv(false, false, true, 4, vectors)
		short(vectors)
	}
}

// store writes the results of a pixel.
func (k *kernel) store(wide Mem, dst, table reg.Register) {
	if k.bytes {
		k.storeBytes(wide, dst, table)
		return
	}
	if k.paired {
		k.storePair(wide, dst, table)
		return
	}
	word, part := GP64(), k.temp
	values := make([]reg.VecVirtual, 4*k.vectors) // of 8 outputs each
	for v := range k.vectors {
		sums := wide.Offset(64 * v)
		even, odd, low, high := YMM(), YMM(), YMM(), YMM()
		VMOVDQU(sums, even)
		VMOVDQU(sums.Offset(32), odd)
		VPUNPCKLWD(odd, even, low)  // outputs 0–7 and 16–23
		VPUNPCKHWD(odd, even, high) // outputs 8–15 and 24–31
		if k.sums || k.floats {
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
					if k.sums {
						VMOVDQU(t, Mem{Base: dst, Disp: place})
					}
					values[place/32] = t
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
	if k.floats {
		ymm.EndFloats(k.job, values, len(values), "")
		ymm.StoreFloats(k.job, dst, values, "")
	} else if !k.sums {
		XORQ(Mem{Base: k.job, Disp: gen.JobFlip}, word)
		MOVQ(word, Mem{Base: dst})
	}
}

// storePair is store for counts of 16 outputs in their order.
func (k *kernel) storePair(sums Mem, dst, table reg.Register) {
	if k.sums || k.floats {
		values := make([]reg.VecVirtual, 2) // of 8 outputs each
		for i := range values {
			c, t := YMM(), YMM()
			VPMOVZXWD(sums.Offset(16*i), c)
			VPADDD(c, c, c)
			VMOVDQU(Mem{Base: table, Disp: 32 * i}, t)
			VPSUBD(c, t, t)
			if k.sums {
				VMOVDQU(t, Mem{Base: dst, Disp: 32 * i})
			}
			values[i] = t
		}
		if k.floats {
			ymm.EndFloats(k.job, values, len(values), "")
			ymm.StoreFloats(k.job, dst, values, "")
		}
		return
	}
	greater := YMM()
	VMOVDQU(sums, greater)
	VPCMPGTW(boundsOf16(table), greater, greater)
	k.storeNot(greater, dst)
}

// storePooledPair is storePooled for counts of 16 outputs in their order.
func (k *kernel) storePooledPair(dst, class reg.Register) {
	wide := k.wide(GP64())
	var least reg.VecVirtual
	for p := range 4 {
		MOVL(Mem{Base: class, Disp: 4 * p}, k.table.As32())
		ADDQ(Mem{Base: k.job, Disp: gen.JobTable}, k.table)
		above := YMM()
		VMOVDQU(wide.Offset(64*p), above)
		VPSUBSW(boundsOf16(k.table), above, above)
		if p == 0 {
			least = above
		} else {
			VPMINSW(above, least, least)
		}
	}
	zero := YMM()
	VPXOR(zero, zero, zero)
	VPCMPGTW(zero, least, least)
	k.storeNot(least, dst)
	ADDQ(Mem{Base: k.job, Disp: gen.JobDstStep}, dst)
}

// storeNot stores the packed word of 16 outputs whose lanes are 0.
func (k *kernel) storeNot(lanes reg.VecVirtual, dst reg.Register) {
	word, upper := GP64(), XMM()
	VEXTRACTI128(U8(1), lanes, upper)
	VPACKSSWB(upper, lanes.AsX(), upper)
	VPMOVMSKB(upper, word.As32())
	XORL(U32(0xffff), word.As32())
	XORQ(Mem{Base: k.job, Disp: gen.JobFlip}, word)
	MOVQ(word, Mem{Base: dst})
}

// boundsOf16 returns the thresholds of 16 outputs in their order. Saturated to 16 bits, they mean
// the same.
func boundsOf16(table reg.Register) reg.VecVirtual {
	t := YMM()
	VMOVDQU(Mem{Base: table}, t)
	VPACKSSDW(Mem{Base: table, Disp: 32}, t, t)
	VPERMQ(U8(0xd8), t, t)
	return t
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
func (k *kernel) storeAlike(dst, class reg.Register) {
	all, one, part := XMM(), XMM(), k.temp
	VMOVDQU(Mem{Base: class}, all)
	VPBROADCASTD(Mem{Base: class}, one)
	VPXOR(one, all, all)
	VPTEST(all, all)
	JNE(LabelRef("differ"))
	MOVL(Mem{Base: class}, k.table.As32())
	ADDQ(Mem{Base: k.job, Disp: gen.JobTable}, k.table)
	var t [2][2]reg.VecVirtual
	for v := range k.vectors {
		t[v] = [2]reg.VecVirtual{bounds(k.table, v, 0), bounds(k.table, v, 1)}
	}
	wide, words := k.wide(GP64()), 4
	if k.pooled {
		words = 1
	}
	for p := range words {
		word := GP64()
		for v := range k.vectors {
			sums := wide.Offset(64 * (p*k.vectors + v))
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
		XORQ(Mem{Base: k.job, Disp: gen.JobFlip}, word)
		MOVQ(word, Mem{Base: dst})
		ADDQ(Mem{Base: k.job, Disp: gen.JobDstStep}, dst)
	}
	JMP(LabelRef("stored"))
	Label("differ")
}

// storePooled writes a packed word of four pixels, each with thresholds of its
// own: any of them has a bit if the least difference is not positive.
func (k *kernel) storePooled(dst, class reg.Register) {
	word, part, wide := GP64(), k.temp, k.wide(GP64())
	for v := range k.vectors {
		var least [2]reg.VecVirtual
		for p := range 4 {
			MOVL(Mem{Base: class, Disp: 4 * p}, k.table.As32())
			ADDQ(Mem{Base: k.job, Disp: gen.JobTable}, k.table)
			sums := wide.Offset(64 * (p*k.vectors + v))
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
	XORQ(Mem{Base: k.job, Disp: gen.JobFlip}, word)
	MOVQ(word, Mem{Base: dst})
	ADDQ(Mem{Base: k.job, Disp: gen.JobDstStep}, dst)
}

// short writes a pooled convolution of patches whose counts fit into bytes: no
// sums in memory, and 32 outputs are compared at once.
func short(vectors int) {
	const pixels = 4
	k := &kernel{pixels: pixels, vectors: vectors, temp: GP64()}
	name := fmt.Sprintf("convBitsPooledShort%dAVX2", 32*vectors)
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(fmt.Sprintf("%s computes, for every pixel p and each of %d outputs o, with x the", name, 32*vectors),
		"nibbles of the patch at src + at[p], at most 63,",
		"",
		"\tc[o] = Σ over i of popcount(x[i] XOR w[i][o])",
		"\tbit o of dst[p/4] = c[o] ≤ table[class[0]][o] of any of four pixels, XOR flip")
	Pragma("noescape")
	k.job = Load(Param("job"), GP64())
	k.counts = GP64()
	LEAQ(NewDataAddr(NewStaticSymbol("popcounts"), 0), k.counts)

	// What counts must be less than, as bytes: thresholds and 1, saturated.
	table, one := GP64(), YMM()
	MOVQ(Mem{Base: k.job, Disp: gen.JobClass}, table)
	MOVL(Mem{Base: table}, table.As32())
	ADDQ(Mem{Base: k.job, Disp: gen.JobTable}, table)
	VPCMPEQW(one, one, one)
	VPSRLW(U8(15), one, one)
	less := make([]reg.VecVirtual, vectors)
	for v := range less {
		low, high := bounds(table, v, 0), bounds(table, v, 1)
		VPADDSW(one, low, low)
		VPADDSW(one, high, high)
		VPACKUSWB(high, low, low)
		less[v] = low
	}

	Label("tile")
	CMPQ(Mem{Base: k.job, Disp: gen.JobPixels}, U8(0))
	JEQ(LabelRef("done"))
	at := GP64()
	MOVQ(Mem{Base: k.job, Disp: gen.JobAt}, at)
	x := make([]reg.GPVirtual, pixels)
	for p := range x {
		x[p] = GP64()
		MOVL(Mem{Base: at, Disp: 4 * p}, x[p].As32())
		ADDQ(Mem{Base: k.job, Disp: gen.JobSrc}, x[p])
	}
	ADDQ(U8(4*pixels), at)
	MOVQ(at, Mem{Base: k.job, Disp: gen.JobAt})
	acc := make([]reg.VecVirtual, pixels*vectors)
	for i := range acc {
		acc[i] = YMM()
		VPXOR(acc[i], acc[i], acc[i])
	}
	w, i, row, end := GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: k.job, Disp: gen.JobWeights}, w)
	XORQ(i, i)
	MOVQ(Mem{Base: k.job, Disp: gen.JobRows}, row)
	Label("row")
	MOVQ(Mem{Base: k.job, Disp: gen.JobRunBytes}, end)
	ADDQ(i, end)
	several := GP64()
	Label("pieces")
	LEAQ(Mem{Base: i, Disp: unroll}, several)
	CMPQ(several, end)
	JGT(LabelRef("rest"))
	for u := range unroll {
		k.step(x, acc, w, i, u)
	}
	ADDQ(U32(uint32(unroll*32*vectors)), w)
	MOVQ(several, i)
	JMP(LabelRef("pieces"))
	Label("rest")
	CMPQ(i, end)
	JEQ(LabelRef("full"))
	Label("piece")
	k.step(x, acc, w, i, 0)
	ADDQ(U32(uint32(32*vectors)), w)
	INCQ(i)
	CMPQ(i, end)
	JNE(LabelRef("piece"))
	Label("full")
	ADDQ(Mem{Base: k.job, Disp: gen.JobRowSkip}, i)
	DECQ(row)
	JNE(LabelRef("row"))

	word, part, dst := GP64(), k.temp, GP64()
	for v := range vectors {
		least := acc[v]
		for p := 1; p < pixels; p++ {
			VPMINUB(acc[p*vectors+v], least, least)
		}
		most := YMM()
		VPMAXUB(less[v], least, most)
		VPCMPEQB(most, least, least) // not less
		VPMOVMSKB(least, part.As32())
		NOTL(part.As32())
		if v == 0 {
			MOVQ(part, word)
		} else {
			SHLQ(U8(32), part)
			ORQ(part, word)
		}
	}
	XORQ(Mem{Base: k.job, Disp: gen.JobFlip}, word)
	MOVQ(Mem{Base: k.job, Disp: gen.JobDst}, dst)
	MOVQ(word, Mem{Base: dst})
	ADDQ(Mem{Base: k.job, Disp: gen.JobDstStep}, dst)
	MOVQ(dst, Mem{Base: k.job, Disp: gen.JobDst})
	SUBQ(U8(pixels), Mem{Base: k.job, Disp: gen.JobPixels})
	JMP(LabelRef("tile"))
	Label("done")
	VZEROUPPER()
	RET()
}
