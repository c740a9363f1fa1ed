package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// The fused products and sums of float32 values are made in float64. There a
// product is exact. The sum is rounded, and then once more to float32. That is
// the same as rounding once, unless what was rounded first lies in the middle
// between two float32 values, or float32 becomes subnormal. Then the sum is
// rounded to odd, as internal/f32 does.
//
// The middle shows in the bits that float32 lacks. That something became
// subnormal and was rounded, the processor notes: the kernel looks once for a
// tile, and computes such a tile again with all sums rounded to odd.

// float writes the ordered sums of float32 values.
func float() {
	constants()
	for _, outputs := range []int{8, 4} {
		for _, pixels := range []int{2, 1} {
			fma("fmaPixels", pixels, outputs, gen.PixelsDoc)
			fma("fmaEach", pixels, outputs, gen.EachDoc)
		}
	}
	fmaOnce()
}

func constants() {
	GLOBL("floatConstants", RODATA|NOPTR)
	const (
		middle = 0x80000000_80000000 // what shifting leaves of it
		abs    = 1<<63 - 1           // all but the sign
	)
	for i, v := range []uint64{middle, middle, abs, abs} {
		DATA(8*i, U64(v))
	}
}

// floatConstant loads one of the constants.
func floatConstant(i int) reg.VecVirtual {
	v := XMM()
	MOVUPS(NewDataAddr(NewStaticSymbol("floatConstants"), 16*i), v)
	return v
}

// double loads two float32 values as float64.
func double(m Mem) reg.VecVirtual {
	v := XMM()
	CVTPS2PD(m, v)
	return v
}

// roundOdd writes acc = fma, with one rounding to float32, of a product that it
// overwrites.
func roundOdd(product, acc, abs reg.VecVirtual) {
	sum, t, e := XMM(), XMM(), XMM()
	MOVAPS(product, sum)
	ADDPD(acc, sum)
	// Knuth's exact error of the sum.
	MOVAPS(sum, t)
	SUBPD(product, t)
	SUBPD(t, acc)
	MOVAPS(sum, e)
	SUBPD(t, e)
	SUBPD(e, product)
	MOVAPS(product, e)
	ADDPD(acc, e)
	// 0 < |e| is false for a NaN, as the error of an infinite sum is.
	MOVAPS(e, acc)
	ANDPS(abs, acc)
	XORPS(t, t)
	CMPPD(acc, t, U8(1))
	// Towards 0 where the signs differ, and the last bit set.
	PXOR(sum, e)
	PSHUFD(U8(0xf5), e, e)
	PSRAL(U8(31), e)
	PAND(t, e)
	PADDQ(e, sum)
	PSRLQ(U8(63), t)
	POR(t, sum)
	CVTPD2PS(sum, sum)
	CVTPS2PD(sum, acc)
}

// fma writes sums of pixels × outputs: of all values of a run for each output,
// or of one value of its own.
func fma(kind string, pixels, outputs int, doc []string) {
	vectors := outputs / 4
	each := kind == "fmaEach"
	job := gen.FMAFunction(kind, pixels, vectors, 4, vectors == 1, "SSSE3", doc...)
	flags := AllocLocal(8)
	const subnormal = 1 << 4 // and rounded
	STMXCSR(flags)
	ANDL(I32(^subnormal), flags)
	LDMXCSR(flags)
	middle, abs := floatConstant(0), floatConstant(1)
	acc := make([]reg.VecVirtual, pixels*outputs/2)
	var rare []func() // what is behind the loops
	gen.TilesSSE(job, pixels, func(x []reg.GPVirtual) {
		// Sums are rounded to odd where more than limit bytes are flagged.
		limit := GP32()
		XORL(limit, limit)
		Label("again")
		bias := GP64()
		MOVQ(Mem{Base: job, Disp: gen.FMABias}, bias)
		for i := range acc {
			acc[i] = XMM()
			CVTPS2PD(Mem{Base: bias, Disp: 8 * (i % (outputs / 2))}, acc[i])
		}
		gen.FMARunLoop(job, nil, func(i, w reg.GPVirtual) {
			end := GP64()
			if !each {
				MOVQ(Mem{Base: job, Disp: gen.FMARun}, end)
				ADDQ(i, end)
				Label("tap")
			}
			for p := range pixels {
				var value reg.VecVirtual
				if !each {
					value = XMM()
					MOVSS(Mem{Base: x[p], Index: i, Scale: 4}, value)
					UNPCKLPS(value, value)
					CVTPS2PD(value, value)
				}
				product := func(at int) reg.VecVirtual {
					t := double(Mem{Base: w, Disp: 8 * at})
					if each {
						value = double(Mem{Base: x[p], Index: i, Scale: 4, Disp: 8 * at})
					}
					MULPD(value, t)
					return t
				}
				for q := range vectors {
					a, b := acc[p*outputs/2+2*q], acc[p*outputs/2+2*q+1]
					label := fmt.Sprintf("%d%d", p, q)
					s, t, u := product(2*q), product(2*q+1), XMM()
					ADDPD(a, s)
					ADDPD(b, t)
					MOVAPS(s, u)
					SHUFPS(U8(0x88), t, u) // the lower halves
					PSLLL(U8(3), u)
					PCMPEQL(middle, u)
					mask := GP32()
					PMOVMSKB(u, mask)
					CMPL(mask, limit)
					JGT(LabelRef("odd" + label))
					CVTPD2PS(s, s)
					CVTPS2PD(s, a)
					CVTPD2PS(t, t)
					CVTPS2PD(t, b)
					Label("done" + label)
					rare = append(rare, func() {
						Label("odd" + label)
						roundOdd(product(2*q), a, abs)
						roundOdd(product(2*q+1), b, abs)
						JMP(LabelRef("done" + label))
					})
				}
			}
			if !each {
				MOVQ(Mem{Base: job, Disp: gen.FMATap}, bias)
				ADDQ(bias, w)
				INCQ(i)
				CMPQ(i, end)
				JNE(LabelRef("tap"))
			}
		})
		STMXCSR(flags)
		TESTL(U32(subnormal), flags)
		JEQ(LabelRef("whole"))
		ANDL(I32(^subnormal), flags)
		LDMXCSR(flags)
		XORL(I32(-1), limit) // −1, the second time 0
		JNE(LabelRef("again"))
		Label("whole")
	}, func(p int, dst reg.Register) {
		for q := range vectors {
			a, b := acc[p*outputs/2+2*q], acc[p*outputs/2+2*q+1]
			CVTPD2PS(a, a)
			CVTPD2PS(b, b)
			if vectors > 1 {
				MOVLHPS(b, a)
				MOVUPS(a, Mem{Base: dst, Disp: 16 * q})
				continue
			}
			storeFirst(job, p, a, b, dst)
		}
	})
	RET()
	for _, write := range rare {
		write()
	}
}

// storeFirst stores as many of four values as the job has outputs.
func storeFirst(job reg.Register, p int, a, b reg.VecVirtual, dst reg.Register) {
	label := func(name string) string { return fmt.Sprint(name, p) }
	n := GP64()
	MOVQ(Mem{Base: job, Disp: gen.FMAOutputs}, n)
	CMPQ(n, U8(2))
	JLT(LabelRef(label("one")))
	MOVLPS(a, Mem{Base: dst})
	JEQ(LabelRef(label("stored")))
	CMPQ(n, U8(3))
	JEQ(LabelRef(label("three")))
	MOVLPS(b, Mem{Base: dst, Disp: 8})
	JMP(LabelRef(label("stored")))
	Label(label("three"))
	MOVSS(b, Mem{Base: dst, Disp: 8})
	JMP(LabelRef(label("stored")))
	Label(label("one"))
	MOVSS(a, Mem{Base: dst})
	Label(label("stored"))
}

// fmaOnce writes fused products and sums of rows.
func fmaOnce() {
	TEXT("fmaSSSE3", NOSPLIT, "func(dst, x, w, c *float32, n int)")
	Doc("fmaSSSE3 computes dst[i] = fma(x[i], w[i], c[i]) for i < n, n > 0 even. dst may", "be x.")
	Pragma("noescape")
	at := make([]reg.Register, 4)
	for i, name := range []string{"dst", "x", "w", "c"} {
		at[i] = Load(Param(name), GP64())
	}
	n := Load(Param("n"), GP64())
	abs := floatConstant(1)
	Label("next")
	t, w, c := double(Mem{Base: at[1]}), double(Mem{Base: at[2]}), double(Mem{Base: at[3]})
	MULPD(w, t)
	roundOdd(t, c, abs)
	CVTPD2PS(c, c)
	MOVLPS(c, Mem{Base: at[0]})
	for _, r := range at {
		ADDQ(U8(8), r.(reg.GPVirtual))
	}
	SUBQ(U8(2), n)
	JNE(LabelRef("next"))
	RET()
}
