package gen

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Ends writes the kernels that make outputs of sums, and sums of two values.
func Ends(isa ISA) {
	isa.ends("scale", "float32(src[o])", func(load func(r reg.Register) reg.VecVirtual, src, _ reg.Register) reg.VecVirtual {
		x := load(src)
		VCVTDQ2PS(x, x)
		return x
	})
	isa.ends("scaleFloat", "src[o]", func(load func(r reg.Register) reg.VecVirtual, src, _ reg.Register) reg.VecVirtual {
		return load(src)
	})
	isa.ends("add", "src[o] + src2[o]", func(load func(r reg.Register) reg.VecVirtual, src, src2 reg.Register) reg.VecVirtual {
		x, y := load(src), load(src2)
		VADDPS(y, x, x)
		return x
	})
}

// ends writes a kernel behind an EndJob. value makes what is to be ended.
func (isa ISA) ends(kind, what string, value func(load func(r reg.Register) reg.VecVirtual, src, src2 reg.Register) reg.VecVirtual) {
	name := kind + isa.Name
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(name+" writes the rows of an EndJob, whose values are "+what+".", "dst may be src.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	at := Fields(job)
	dst, src, src2 := at(EndDst), at(EndSrc), reg.GPVirtual(nil)
	affine := kind != "add"
	var scale, shift reg.GPVirtual
	if affine {
		scale, shift = at(EndScale), at(EndShift)
	} else {
		src2 = at(EndSrc2)
	}
	slope, clip, rows := at(EndSlope), at(EndClip), at(EndRows)
	zero, low, high := isa.Vec(), isa.Vec(), isa.Vec()
	isa.Zero(zero)
	VBROADCASTSS(Mem{Base: job, Disp: EndLow}, low)
	VBROADCASTSS(Mem{Base: job, Disp: EndHigh}, high)
	o, left := GP64(), GP64()
	Label("row")
	XORQ(o, o)
	MOVQ(Mem{Base: job, Disp: EndN}, left)
	part := func(label string, vectors int, load func(Mem, reg.VecVirtual), store func(reg.VecVirtual, Mem)) {
		x := make([]reg.VecVirtual, vectors)
		place := func(r reg.Register, v int) Mem { return Mem{Base: r, Index: o, Scale: 1, Disp: 4 * isa.Lanes * v} }
		get := func(r reg.Register, v int) reg.VecVirtual {
			y := isa.Vec()
			load(place(r, v), y)
			return y
		}
		for v := range x {
			x[v] = value(func(r reg.Register) reg.VecVirtual { return get(r, v) }, src, src2)
		}
		if affine {
			TESTQ(scale, scale)
			JEQ(LabelRef(label + "scaled"))
			for v := range x {
				a, b := get(scale, v), get(shift, v)
				VFMADD213PS(b, a, x[v])
			}
			Label(label + "scaled")
		}
		TESTQ(slope, slope)
		JEQ(LabelRef(label + "sloped"))
		for v := range x {
			isa.PReLU(get(slope, v), zero, x[v])
		}
		Label(label + "sloped")
		TESTQ(clip, clip)
		JEQ(LabelRef(label + "clipped"))
		for v := range x {
			VMAXPS(x[v], low, x[v])  // low where it is greater
			VMINPS(x[v], high, x[v]) // high where it is less
		}
		Label(label + "clipped")
		for v := range x {
			store(x[v], place(dst, v))
		}
	}
	whole := func(label string, vectors int) {
		Label(label)
		CMPQ(left, U8(isa.Lanes*vectors))
		JLT(LabelRef(label + "end"))
		part(label, vectors, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }, func(v reg.VecVirtual, m Mem) { VMOVUPS(v, m) })
		ADDQ(I32(4*isa.Lanes*vectors), o)
		SUBQ(U8(isa.Lanes*vectors), left)
		JMP(LabelRef(label))
		Label(label + "end")
	}
	whole("four", 4)
	whole("one", 1)
	TESTQ(left, left)
	JEQ(LabelRef("rowend"))
	load, store := isa.FirstLanes(left)
	part("rest", 1, load, store)
	Label("rowend")
	ADDQ(Mem{Base: job, Disp: EndDstStep}, dst)
	ADDQ(Mem{Base: job, Disp: EndSrcStep}, src)
	DECQ(rows)
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// EndFloats makes float32 values of int32 sums and ends them as a ConvJob says: pixels of
// so many vectors each.
func (isa ISA) EndFloats(job reg.Register, x []reg.VecVirtual, vectors int, label string) {
	at, shift := GP64(), GP64()
	// unless jumps over what do does where the pointer or number at disp is 0.
	unless := func(disp int, what string, do func()) {
		MOVQ(Mem{Base: job, Disp: disp}, at)
		TESTQ(at, at)
		JEQ(LabelRef(label + what))
		do()
		Label(label + what)
	}
	load := func(row reg.Register, v int) reg.VecVirtual {
		r := isa.Vec()
		VMOVUPS(Mem{Base: row, Disp: 4 * isa.Lanes * v}, r)
		return r
	}
	for _, r := range x {
		VCVTDQ2PS(r, r)
	}
	unless(JobScale, "scaled", func() {
		MOVQ(Mem{Base: job, Disp: JobShift}, shift)
		for v := range vectors {
			a, b := load(at, v), load(shift, v)
			for i := v; i < len(x); i += vectors {
				VFMADD213PS(b, a, x[i])
			}
		}
	})
	unless(JobSlope, "sloped", func() {
		zero := isa.Vec()
		isa.Zero(zero)
		for i, r := range x {
			isa.PReLU(load(at, i%vectors), zero, r)
		}
	})
	unless(JobClip, "clipped", func() {
		low, high := isa.Vec(), isa.Vec()
		VBROADCASTSS(Mem{Base: job, Disp: JobLow}, low)
		VBROADCASTSS(Mem{Base: job, Disp: JobHigh}, high)
		for _, r := range x {
			VMAXPS(r, low, r)  // low where it is greater
			VMINPS(r, high, r) // high where it is less
		}
	})
}

// StoreFloats writes the values of a pixel, plus what a ConvJob adds to them.
func (isa ISA) StoreFloats(job, dst reg.Register, x []reg.VecVirtual, label string) {
	added := GP64()
	MOVQ(Mem{Base: job, Disp: JobAdded}, added)
	TESTQ(added, added)
	JEQ(LabelRef(label + "alone"))
	for v, r := range x {
		VADDPS(Mem{Base: dst, Index: added, Scale: 1, Disp: 4*isa.Lanes*v - 1}, r, r)
	}
	Label(label + "alone")
	for v, r := range x {
		VMOVUPS(r, Mem{Base: dst, Disp: 4 * isa.Lanes * v})
	}
}

// EndLevels makes the numbers of levels of float32 values that EndFloats has ended.
func (isa ISA) EndLevels(job reg.Register, x []reg.VecVirtual, vectors int, label string) {
	scale, shift, rest := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: JobLevel}, scale)
	MOVQ(Mem{Base: job, Disp: JobRest}, rest)
	MOVQ(Mem{Base: job, Disp: JobMove}, shift)
	for v := range vectors {
		a, b := isa.Vec(), isa.Vec()
		VMOVUPS(Mem{Base: scale, Disp: 4 * isa.Lanes * v}, a)
		VMOVUPS(Mem{Base: shift, Disp: 4 * isa.Lanes * v}, b)
		TESTQ(rest, rest)
		JNE(LabelRef(fmt.Sprint(label, "rest", v)))
		for i := v; i < len(x); i += vectors {
			VMULPS(a, x[i], x[i])
		}
		JMP(LabelRef(fmt.Sprint(label, "leveled", v)))
		Label(fmt.Sprint(label, "rest", v))
		for i := v; i < len(x); i += vectors {
			isa.times(Mem{Base: rest, Disp: 4 * isa.Lanes * v}, a, x[i])
		}
		Label(fmt.Sprint(label, "leveled", v))
		for i := v; i < len(x); i += vectors {
			VADDPS(b, x[i], x[i])
		}
	}
	least, most, offset := isa.Vec(), isa.Vec(), isa.Vec()
	VBROADCASTSS(Mem{Base: job, Disp: JobLeast}, least)
	VBROADCASTSS(Mem{Base: job, Disp: JobMost}, most)
	for _, y := range x {
		VMAXPS(least, y, y) // y where it is greater
		VMINPS(most, y, y)  // y where it is less
		VCVTPS2DQ(y, y)
	}
	CMPL(Mem{Base: job, Disp: JobOffset}, U8(0))
	JEQ(LabelRef(label + "offset"))
	VPBROADCASTD(Mem{Base: job, Disp: JobOffset}, offset)
	for _, y := range x {
		VPADDD(offset, y, y)
	}
	Label(label + "offset")
}

// EndBytes writes the kernel that ends bytes. Scale and shift of a period, which is so
// many vectors, are in registers.
func EndBytes(isa ISA, period int) {
	name := "scaleBytes" + isa.Name
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(name+" writes the end of the bytes of an EndJob, whose scale, shift and slope repeat,", "for n whole periods.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	at := Fields(job)
	dst, src, slope, clip, n := at(EndDst), at(EndSrc), at(EndSlope), at(EndClip), at(EndN)
	lane := func(r reg.Register, v int) Mem { return Mem{Base: r, Disp: 4 * isa.Lanes * v} }
	scales, shifts := make([]reg.VecVirtual, period), make([]reg.VecVirtual, period)
	scale, shift := at(EndScale), at(EndShift)
	for v := range period {
		scales[v], shifts[v] = isa.Vec(), isa.Vec()
		VMOVUPS(lane(scale, v), scales[v])
		VMOVUPS(lane(shift, v), shifts[v])
	}
	Label("next")
	for v := range period {
		x := isa.Vec()
		VPMOVZXBD(Mem{Base: src, Disp: isa.Lanes * v}, x)
		VCVTDQ2PS(x, x)
		VFMADD213PS(shifts[v], scales[v], x)
		TESTQ(slope, slope)
		JEQ(LabelRef(fmt.Sprintf("sloped%d", v)))
		y, zero := isa.Vec(), isa.Vec()
		isa.Zero(zero)
		VMOVUPS(lane(slope, v), y)
		isa.PReLU(y, zero, x)
		Label(fmt.Sprintf("sloped%d", v))
		TESTQ(clip, clip)
		JEQ(LabelRef(fmt.Sprintf("clipped%d", v)))
		bound := isa.Vec()
		VBROADCASTSS(Mem{Base: job, Disp: EndLow}, bound)
		VMAXPS(x, bound, x) // the bound where it is greater
		VBROADCASTSS(Mem{Base: job, Disp: EndHigh}, bound)
		VMINPS(x, bound, x) // the bound where it is less
		Label(fmt.Sprintf("clipped%d", v))
		VMOVUPS(x, lane(dst, v))
	}
	ADDQ(U8(isa.Lanes*period), src)
	ADDQ(U32(4*isa.Lanes*period), dst)
	DECQ(n)
	JNE(LabelRef("next"))
	VZEROUPPER()
	RET()
}
