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

// MeanSigns writes the means of ±1 values. begin loads constants.
func MeanSigns(isa ISA, begin func() Counts) {
	name := "meanSigns" + isa.Name
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(name+" stores, for the bits of whole words and every pixel of a job with less than 256", "taps, the mean over the taps of +1 where the bit is set, else −1.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	c := begin()
	taps, dst, src := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: PoolTaps}, taps)
	all := isa.Vec()
	VPBROADCASTD(Mem{Base: job, Disp: PoolCount}, all)
	divisor, reciprocal := isa.Vec(), isa.Vec()
	VBROADCASTSS(Mem{Base: job, Disp: PoolDivisor}, divisor)
	VBROADCASTSS(Mem{Base: job, Disp: PoolReciprocal}, reciprocal)
	t, at, word, out := GP64(), GP64(), GP64(), GP64()
	Label("pixel")
	MOVQ(Mem{Base: job, Disp: PoolDst}, dst)
	MOVQ(Mem{Base: job, Disp: PoolSrc}, src)
	MOVQ(dst, out)
	XORQ(word, word)
	Label("word")
	c.Clear()
	XORQ(t, t)
	Label("tap")
	MOVQ(Mem{Base: taps, Index: t, Scale: 8}, at)
	ADDQ(word, at)
	c.Add(Mem{Base: src, Index: at, Scale: 1})
	INCQ(t)
	CMPQ(t, Mem{Base: job, Disp: PoolCount})
	JNE(LabelRef("tap"))
	for v := range 64 / isa.Lanes {
		x, q := isa.Vec(), isa.Vec()
		c.Lanes(v, x)
		VPADDD(x, x, x)
		VPSUBD(all, x, x) // 2·count − taps
		VCVTDQ2PS(x, x)
		VMULPS(reciprocal, x, q)
		VFNMADD231PS(divisor, q, x)
		VFMADD213PS(q, reciprocal, x)
		VMOVUPS(x, Mem{Base: out, Disp: 4 * v * isa.Lanes})
	}
	ADDQ(I32(256), out)
	ADDQ(U8(8), word)
	CMPQ(word, Mem{Base: job, Disp: PoolBytes})
	JNE(LabelRef("word"))
	step := GP64()
	MOVQ(Mem{Base: job, Disp: PoolStep}, step)
	ADDQ(step, Mem{Base: job, Disp: PoolSrc})
	MOVQ(Mem{Base: job, Disp: PoolDstStep}, step)
	ADDQ(step, Mem{Base: job, Disp: PoolDst})
	DECQ(Mem{Base: job, Disp: PoolPixels})
	JNE(LabelRef("pixel"))
	VZEROUPPER()
	RET()
}
