package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// pool writes pooling.
func pool() {
	means()
	pools()
	orPool4()
	meanSigns()
}

// pools write a row of pooled pixels.
func pools() {
	for _, kind := range []struct{ name, what string }{
		{"orPoolAVX2", "the OR"}, {"maxPoolAVX2", "the maximum (the first of equal float32 values)"}, {"maxPoolBytesAVX2", "the maximum of bytes"},
	} {
		name, what, float, unsigned := kind.name, kind.what, kind.name == "maxPoolAVX2", kind.name == "maxPoolBytesAVX2"
		TEXT(name, NOSPLIT, "func(job *byte)")
		Doc(name + " stores " + what + " of the taps of every pixel of the job.")
		Pragma("noescape")
		job := Load(Param("job"), GP64())
		dst, src, taps := GP64(), GP64(), GP64()
		MOVQ(Mem{Base: job, Disp: gen.PoolTaps}, taps)
		i, t, at, end := GP64(), GP64(), GP64(), GP64()
		Label("pixel")
		MOVQ(Mem{Base: job, Disp: gen.PoolDst}, dst)
		MOVQ(Mem{Base: job, Disp: gen.PoolSrc}, src)
		XORQ(i, i)
		combine := func(m Mem, x reg.VecVirtual, vector bool) {
			switch {
			case unsigned && vector:
				VPMAXUB(m, x, x)
			case unsigned: // 8 of them, for which m has no 16 bytes
				y := XMM()
				VMOVQ(m, y)
				VPMAXUB(y, x, x)
			case !float:
				VPOR(m, x, x)
			case vector:
				y := YMM()
				VMOVUPS(m, y)
				VMAXPS(x, y, x) // y where it is greater
			default:
				y := XMM()
				VMOVSS(m, y)
				VMAXSS(x, y, x)
			}
		}
		// so many bytes at a time
		type size struct {
			label   string
			vectors int // of 32 bytes
		}
		sizes := []size{{"w", 8}, {"a", 4}, {"b", 1}, {"c", 0}}
		if unsigned {
			sizes = append(sizes, size{"d", 0})
		}
		for _, s := range sizes {
			bytes := 32 * s.vectors
			if bytes == 0 {
				bytes = 8
				if float {
					bytes = 4
				}
			}
			if s.label == "d" {
				bytes = 1
			}
			Label(s.label)
			LEAQ(Mem{Base: i, Disp: bytes}, end)
			CMPQ(end, Mem{Base: job, Disp: gen.PoolBytes})
			JGT(LabelRef(s.label + "done"))
			MOVQ(Mem{Base: taps}, at)
			ADDQ(i, at)
			MOVQ(U32(1), t)
			switch {
			case s.vectors > 0:
				acc := make([]reg.VecVirtual, s.vectors)
				for v := range acc {
					acc[v] = YMM()
					VMOVDQU(Mem{Base: src, Index: at, Scale: 1, Disp: 32 * v}, acc[v])
				}
				JMP(LabelRef(s.label + "first"))
				Label(s.label + "tap")
				MOVQ(Mem{Base: taps, Index: t, Scale: 8}, at)
				ADDQ(i, at)
				for v := range acc {
					combine(Mem{Base: src, Index: at, Scale: 1, Disp: 32 * v}, acc[v], true)
				}
				INCQ(t)
				Label(s.label + "first")
				CMPQ(t, Mem{Base: job, Disp: gen.PoolCount})
				JNE(LabelRef(s.label + "tap"))
				for v := range acc {
					VMOVDQU(acc[v], Mem{Base: dst, Index: i, Scale: 1, Disp: 32 * v})
				}
			case unsigned && bytes == 1:
				acc, value := GP32(), GP32()
				MOVBLZX(Mem{Base: src, Index: at, Scale: 1}, acc)
				JMP(LabelRef(s.label + "first"))
				Label(s.label + "tap")
				MOVQ(Mem{Base: taps, Index: t, Scale: 8}, at)
				ADDQ(i, at)
				MOVBLZX(Mem{Base: src, Index: at, Scale: 1}, value)
				CMPL(value, acc)
				CMOVLGT(value, acc)
				INCQ(t)
				Label(s.label + "first")
				CMPQ(t, Mem{Base: job, Disp: gen.PoolCount})
				JNE(LabelRef(s.label + "tap"))
				MOVB(acc.As8(), Mem{Base: dst, Index: i, Scale: 1})
			case float, unsigned:
				acc := XMM()
				load, store := VMOVSS, VMOVSS
				if unsigned {
					load, store = func(ops ...Op) { VMOVQ(ops[0], ops[1]) }, func(ops ...Op) { VMOVQ(ops[0], ops[1]) }
				}
				load(Mem{Base: src, Index: at, Scale: 1}, acc)
				JMP(LabelRef(s.label + "first"))
				Label(s.label + "tap")
				MOVQ(Mem{Base: taps, Index: t, Scale: 8}, at)
				ADDQ(i, at)
				combine(Mem{Base: src, Index: at, Scale: 1}, acc, false)
				INCQ(t)
				Label(s.label + "first")
				CMPQ(t, Mem{Base: job, Disp: gen.PoolCount})
				JNE(LabelRef(s.label + "tap"))
				store(acc, Mem{Base: dst, Index: i, Scale: 1})
			default:
				acc := GP64()
				MOVQ(Mem{Base: src, Index: at, Scale: 1}, acc)
				JMP(LabelRef(s.label + "first"))
				Label(s.label + "tap")
				MOVQ(Mem{Base: taps, Index: t, Scale: 8}, at)
				ADDQ(i, at)
				ORQ(Mem{Base: src, Index: at, Scale: 1}, acc)
				INCQ(t)
				Label(s.label + "first")
				CMPQ(t, Mem{Base: job, Disp: gen.PoolCount})
				JNE(LabelRef(s.label + "tap"))
				MOVQ(acc, Mem{Base: dst, Index: i, Scale: 1})
			}
			MOVQ(end, i)
			JMP(LabelRef(s.label))
			Label(s.label + "done")
		}
		step := GP64()
		MOVQ(Mem{Base: job, Disp: gen.PoolStep}, step)
		ADDQ(step, Mem{Base: job, Disp: gen.PoolSrc})
		MOVQ(Mem{Base: job, Disp: gen.PoolDstStep}, step)
		ADDQ(step, Mem{Base: job, Disp: gen.PoolDst})
		DECQ(Mem{Base: job, Disp: gen.PoolPixels})
		JNE(LabelRef("pixel"))
		VZEROUPPER()
		RET()
	}
}

// orPool4 writes the most common pool, of 2×2 pixels.
func orPool4() {
	TEXT("orPool4AVX2", NOSPLIT, "func(job *byte, flip uint64)")
	Doc("orPool4AVX2 is orPoolAVX2 for four taps, XOR flip in every word.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	dst, bytes, i, pixels, flip := GP64(), GP64(), GP64(), GP64(), GP64()
	Load(Param("flip"), flip)
	flips := YMM()
	VPBROADCASTQ(NewParamAddr("flip", 8), flips)
	MOVQ(Mem{Base: job, Disp: gen.PoolDst}, dst)
	MOVQ(Mem{Base: job, Disp: gen.PoolBytes}, bytes)
	MOVQ(Mem{Base: job, Disp: gen.PoolPixels}, pixels)
	taps := GP64()
	MOVQ(Mem{Base: job, Disp: gen.PoolTaps}, taps)
	var src [4]reg.GPVirtual
	for t := range src {
		src[t] = GP64()
		MOVQ(Mem{Base: job, Disp: gen.PoolSrc}, src[t])
		ADDQ(Mem{Base: taps, Disp: 8 * t}, src[t])
	}
	step, dstStep := GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: gen.PoolStep}, step)
	MOVQ(Mem{Base: job, Disp: gen.PoolDstStep}, dstStep)
	Label("pixel")
	XORQ(i, i)
	JMP(LabelRef("vectorscheck"))
	Label("vectors")
	x := YMM()
	VMOVDQU(Mem{Base: src[0], Index: i, Scale: 1}, x)
	for _, s := range src[1:] {
		VPOR(Mem{Base: s, Index: i, Scale: 1}, x, x)
	}
	VPXOR(flips, x, x)
	VMOVDQU(x, Mem{Base: dst, Index: i, Scale: 1})
	ADDQ(U8(32), i)
	Label("vectorscheck")
	end := GP64()
	LEAQ(Mem{Base: i, Disp: 32}, end)
	CMPQ(end, bytes)
	JLE(LabelRef("vectors"))
	CMPQ(i, bytes)
	JEQ(LabelRef("pixeldone"))
	Label("words")
	w := GP64()
	MOVQ(Mem{Base: src[0], Index: i, Scale: 1}, w)
	for _, s := range src[1:] {
		ORQ(Mem{Base: s, Index: i, Scale: 1}, w)
	}
	XORQ(flip, w)
	MOVQ(w, Mem{Base: dst, Index: i, Scale: 1})
	ADDQ(U8(8), i)
	CMPQ(i, bytes)
	JNE(LabelRef("words"))
	Label("pixeldone")
	for _, s := range src {
		ADDQ(step, s)
	}
	ADDQ(dstStep, dst)
	DECQ(pixels)
	JNE(LabelRef("pixel"))
	VZEROUPPER()
	RET()
}

// meanSigns writes the means of ±1 values.
func meanSigns() {
	const bit = 0x8040201008040201
	bitOf := table("bitsOfBytes", words(bit, bit, bit, bit))
	byteOf := table("bytesOfBits", words(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303))
	gen.MeanSigns(ymm, func() gen.Counts {
		bits, bytes := YMM(), YMM()
		VMOVDQU(bitOf, bits)
		VMOVDQU(byteOf, bytes)
		counts := []reg.VecVirtual{YMM(), YMM()}
		return gen.Counts{
			Clear: func() {
				for _, c := range counts {
					VPXOR(c, c, c)
				}
			},
			Add: func(m Mem) {
				for h, c := range counts {
					x := YMM()
					VPBROADCASTD(m.Offset(4*h), x)
					VPSHUFB(bytes, x, x)
					VPAND(bits, x, x)
					VPCMPEQB(bits, x, x)
					VPSUBB(x, c, c)
				}
			},
			Lanes: func(v int, to reg.VecVirtual) {
				part := counts[v/4].(reg.Vec).AsX()
				if v%4/2 > 0 {
					high := XMM()
					VEXTRACTI128(U8(1), counts[v/4], high)
					part = high
				}
				if v%2 > 0 {
					odd := XMM()
					VPSRLDQ(U8(8), part, odd)
					part = odd
				}
				VPMOVZXBD(part, to)
			},
		}
	})
}
