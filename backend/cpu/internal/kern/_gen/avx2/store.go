package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

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
		XORQ(Mem{Base: k.job, Disp: gen.JobFlip}, word)
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
	ADDQ(Mem{Base: k.job, Disp: gen.JobTable}, k.table)
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
		XORQ(Mem{Base: k.job, Disp: gen.JobFlip}, word)
		MOVQ(word, Mem{Base: dst})
		ADDQ(Mem{Base: k.job, Disp: gen.JobDstStep}, dst)
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
			ADDQ(Mem{Base: k.job, Disp: gen.JobTable}, k.table)
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
	XORQ(Mem{Base: k.job, Disp: gen.JobFlip}, word)
	MOVQ(word, Mem{Base: dst})
	ADDQ(Mem{Base: k.job, Disp: gen.JobDstStep}, dst)
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
	XORQ(Mem{Base: k.job, Disp: gen.JobFlip}, word)
	MOVQ(word, Mem{Base: dst})
}
