package gen

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Counts counts the bits of words, in 64 bytes.
type Counts struct {
	Clear func()
	Add   func(word Mem)
	Lanes func(v int, to reg.VecVirtual) // vector v of the counts, as int32
}

// MeanSigns writes the means of ±1 values, of four taps or any number. begin loads constants.
func MeanSigns(isa ISA, begin func() Counts) {
	numbers := GLOBL("numbers", NOPTR|RODATA)
	DATA(0, U64(0x0706050403020100))
	DATA(8, U64(0x0f0e0d0c0b0a0908))
	for _, four := range []bool{true, false} {
		name, n := "meanSigns"+isa.Name, "less than 256"
		if four {
			name, n = "meanSigns4"+isa.Name, "four"
		}
		TEXT(name, NOSPLIT, "func(job *byte)")
		Doc(name+" stores, for the bits of whole words and every pixel of a job with "+n, "taps, the mean over the taps of +1 where the bit is set, else −1.")
		Pragma("noescape")
		isa.meanSigns(Load(Param("job"), GP64()), begin(), numbers, four)
	}
}

func (isa ISA) meanSigns(job reg.Register, c Counts, numbers Mem, four bool) {
	all, divisor, reciprocal := isa.Vec(), isa.Vec(), isa.Vec()
	VPBROADCASTD(Mem{Base: job, Disp: PoolCount}, all)
	VBROADCASTSS(Mem{Base: job, Disp: PoolDivisor}, divisor)
	VBROADCASTSS(Mem{Base: job, Disp: PoolReciprocal}, reciprocal)
	mean := func(x reg.VecVirtual) {
		q := isa.Vec()
		VPADDD(x, x, x)
		VPSUBD(all, x, x) // 2·count − taps
		VCVTDQ2PS(x, x)
		VMULPS(reciprocal, x, q)
		VFNMADD231PS(divisor, q, x)
		VFMADD213PS(q, reciprocal, x)
	}
	few := isa.Vec() // the means of counts that are less than the lanes
	VPMOVZXBD(numbers, few)
	mean(few)
	taps, dst, step, word, out := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: PoolTaps}, taps)
	MOVQ(Mem{Base: job, Disp: PoolDst}, dst)
	MOVQ(Mem{Base: job, Disp: PoolStep}, step)
	src := []reg.GPVirtual{GP64()} // the taps of a pixel, or what their offsets are from
	MOVQ(Mem{Base: job, Disp: PoolSrc}, src[0])
	if four {
		for t := 3; t >= 0; t-- {
			if t > 0 {
				src = append(src, GP64())
				MOVQ(src[0], src[4-t])
			}
			ADDQ(Mem{Base: taps, Disp: 8 * t}, src[(4-t)%4])
		}
	}
	t, at := GP64(), GP64()
	Label("pixel")
	MOVQ(dst, out)
	XORQ(word, word)
	Label("word")
	c.Clear()
	if four {
		for _, s := range src {
			c.Add(Mem{Base: s, Index: word, Scale: 1})
		}
	} else {
		XORQ(t, t)
		Label("tap")
		MOVQ(Mem{Base: taps, Index: t, Scale: 8}, at)
		ADDQ(word, at)
		c.Add(Mem{Base: src[0], Index: at, Scale: 1})
		INCQ(t)
		CMPQ(t, Mem{Base: job, Disp: PoolCount})
		JNE(LabelRef("tap"))
		CMPQ(t, U8(isa.Lanes))
		JGE(LabelRef("many"))
	}
	each := func(end func(x reg.VecVirtual)) {
		for v := range 64 / isa.Lanes {
			x := isa.Vec()
			c.Lanes(v, x)
			end(x)
			VMOVUPS(x, Mem{Base: out, Disp: 4 * v * isa.Lanes})
		}
	}
	each(func(x reg.VecVirtual) { VPERMPS(few, x, x) })
	if !four {
		JMP(LabelRef("next"))
		Label("many")
		each(mean)
		Label("next")
	}
	ADDQ(I32(256), out)
	ADDQ(U8(8), word)
	CMPQ(word, Mem{Base: job, Disp: PoolBytes})
	JNE(LabelRef("word"))
	for _, s := range src {
		ADDQ(step, s)
	}
	ADDQ(Mem{Base: job, Disp: PoolDstStep}, dst)
	DECQ(Mem{Base: job, Disp: PoolPixels})
	JNE(LabelRef("pixel"))
	VZEROUPPER()
	RET()
}
