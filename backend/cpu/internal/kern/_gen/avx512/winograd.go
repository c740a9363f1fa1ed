package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// winograd writes the transforms of F(2×2, 3×3).
func winograd() {
	winogradInput()
	winogradSums()
	winogradOutput("Floats")
	winogradOutput("Levels")
}

// winogradInput writes the transform of pixels. The rows of Bᵀ d are made one after the other, and of each
// its columns from left to right, of which two squares share two.
func winogradInput() {
	TEXT("winogradInputAVX512", NOSPLIT, "func(job *byte)")
	Doc("winogradInputAVX512 does a WinogradInput.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	at := gen.Fields(job)
	step, plane, vectors := at(gen.SquaresStep), at(gen.SquaresPlane), at(gen.SquaresVectors)
	step3, plane3, channel := GP64(), GP64(), GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, step3)
	LEAQ(Mem{Base: plane, Index: plane, Scale: 2}, plane3)
	XORQ(channel, channel)
	offset := ZMM()
	VPBROADCASTB(Mem{Base: job, Disp: gen.SquaresOffset}, offset)
	Label("channels")
	dst := at(gen.SquaresDst)
	ADDQ(channel, dst)
	for i, rows := range [4][2]int{{0, 2}, {1, 2}, {2, 1}, {1, 3}} {
		var pixels [2]reg.GPVirtual
		for n, y := range rows {
			pixels[n] = at(gen.SquaresSrc)
			ADDQ(channel, pixels[n])
			for range y {
				ADDQ(Mem{Base: job, Disp: gen.SquaresRow}, pixels[n])
			}
		}
		column := func(m Mem) (x, more reg.VecVirtual) {
			x, more = ZMM(), ZMM()
			second := m
			m.Base, second.Base = pixels[0], pixels[1]
			VMOVDQU64(m, x)
			if i == 1 {
				VPADDB(second, x, x)
			} else {
				VPSUBB(second, x, x)
			}
			VPADDB(offset, x, more)
			return x, more
		}
		_, more0 := column(Mem{})
		x1, more1 := column(Mem{Index: step, Scale: 1})
		to, left := GP64(), at(gen.SquaresCount)
		MOVQ(dst, to)
		next := fmt.Sprintf("row%d", i)
		Label(next)
		x2, more2 := column(Mem{Index: step, Scale: 2})
		x3, more3 := column(Mem{Index: step3, Scale: 1})
		VPSUBB(x2, more0, more0)
		VMOVDQU64(more0, Mem{Base: to})
		if i == 1 {
			VPADDB(x2, x1, more0)
		} else {
			VPADDB(x2, more1, more0)
		}
		VMOVDQU64(more0, Mem{Base: to, Index: plane, Scale: 1})
		VPSUBB(x1, more2, more0)
		VMOVDQU64(more0, Mem{Base: to, Index: plane, Scale: 2})
		VPSUBB(x3, more1, more0)
		VMOVDQU64(more0, Mem{Base: to, Index: plane3, Scale: 1})
		VMOVDQA64(more2, more0)
		VMOVDQA64(x3, x1)
		VMOVDQA64(more3, more1)
		for _, p := range pixels {
			LEAQ(Mem{Base: p, Index: step, Scale: 2}, p)
		}
		ADDQ(Mem{Base: job, Disp: gen.SquaresDstStep}, to)
		DECQ(left)
		JNE(LabelRef(next))
		LEAQ(Mem{Base: dst, Index: plane, Scale: 4}, dst)
	}
	ADDQ(U8(64), channel)
	DECQ(vectors)
	JNE(LabelRef("channels"))
	VZEROUPPER()
	RET()
}

// winogradSums writes the products, of four squares and 64 outputs at a time. The last four squares may
// include some for the second time.
func winogradSums() {
	const squares, vectors, pieces = 4, 4, 16
	TEXT("winogradSumsAVX512", NOSPLIT, "func(job *byte)")
	Doc("winogradSumsAVX512 does a WinogradSums.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	at := gen.Fields(job)
	dst, src, weights, table := at(gen.SumsDst), at(gen.SumsSrc), at(gen.SumsWeights), at(gen.SumsTable)
	size, left := at(gen.SumsChannels), GP64()
	MOVQ(U64(16), left)
	Label("sum")
	// The offset of the squares in hand, and of the last four.
	now, last := GP64(), at(gen.SumsSquares)
	XORQ(now, now)
	SUBQ(U8(squares), last)
	Label("squares")
	var x [squares]reg.GPVirtual
	for p := range x {
		x[p] = GP64()
		if p == 0 {
			MOVQ(now, x[p])
			IMULQ(size, x[p])
			ADDQ(src, x[p])
		} else {
			LEAQ(Mem{Base: x[p-1], Index: size, Scale: 1}, x[p])
		}
	}
	var acc [squares][vectors]reg.VecVirtual
	for p := range acc {
		for v := range acc[p] {
			acc[p][v] = ZMM()
			VMOVDQU64(Mem{Base: table, Disp: 64 * v}, acc[p][v])
		}
	}
	w, channels := GP64(), GP64()
	MOVQ(weights, w)
	MOVQ(size, channels)
	Label("channels")
	for i := range pieces {
		var taps [vectors]reg.VecVirtual
		for v := range taps {
			taps[v] = ZMM()
			VMOVDQU64(Mem{Base: w, Disp: 64 * (i*vectors + v)}, taps[v])
		}
		for p := range x {
			b := ZMM()
			VPBROADCASTD(Mem{Base: x[p], Disp: 4 * i}, b)
			for v := range taps {
				VPDPBUSD(taps[v], b, acc[p][v])
			}
		}
	}
	ADDQ(U32(64*pieces*vectors), w)
	for p := range x {
		ADDQ(U8(4*pieces), x[p])
	}
	SUBQ(U8(4*pieces), channels)
	JNE(LabelRef("channels"))
	to := GP64()
	MOVQ(now, to)
	SHLQ(U8(8), to)
	ADDQ(dst, to)
	for p := range acc {
		for v := range acc[p] {
			VMOVDQU64(acc[p][v], Mem{Base: to, Disp: 64 * (p*vectors + v)})
		}
	}
	CMPQ(now, last)
	JEQ(LabelRef("done"))
	ADDQ(U8(squares), now)
	CMPQ(now, last)
	CMOVQGT(last, now)
	JMP(LabelRef("squares"))
	Label("done")
	MOVQ(w, weights)
	ADDQ(U32(64*vectors), table)
	ADDQ(Mem{Base: job, Disp: gen.SumsSrcPlane}, src)
	ADDQ(Mem{Base: job, Disp: gen.SumsDstPlane}, dst)
	DECQ(left)
	JNE(LabelRef("sum"))
	VZEROUPPER()
	RET()
}

// winogradOutput writes the transform of sums, and what ends the outputs.
func winogradOutput(kind string) {
	const vectors = 4
	name := "winograd" + kind + "AVX512"
	TEXT(name, NOSPLIT, "func(job *byte)")
	Doc(name + " does a WinogradJob.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	at := gen.Fields(job)
	src, dst, plane, plane3 := at(gen.JobSrc), at(0), at(gen.WinogradPlane), GP64()
	LEAQ(Mem{Base: plane, Index: plane, Scale: 2}, plane3)
	Label("square")
	var rows [4]reg.GPVirtual
	for i := range rows {
		rows[i] = GP64()
		if i == 0 {
			MOVQ(src, rows[i])
		} else {
			LEAQ(Mem{Base: rows[i-1], Index: plane, Scale: 4}, rows[i])
		}
	}
	acc := make([]reg.VecVirtual, 4*vectors)
	for v := range vectors {
		var y [2][4]reg.VecVirtual
		for j, column := range []Mem{{}, {Index: plane, Scale: 1}, {Index: plane, Scale: 2}, {Index: plane3, Scale: 1}} {
			m := func(i int) Mem {
				at := column
				at.Base, at.Disp = rows[i], 64*v
				return at
			}
			m1, m2, sum, difference := ZMM(), ZMM(), ZMM(), ZMM()
			VMOVDQU64(m(1), m1)
			VMOVDQU64(m(2), m2)
			VPADDD(m2, m1, sum)
			VPSUBD(m2, m1, difference)
			VPADDD(m(0), sum, sum)
			VPSUBD(m(3), difference, difference)
			y[0][j], y[1][j] = sum, difference
		}
		for r, row := range y {
			sum, difference := ZMM(), ZMM()
			VPADDD(row[2], row[1], sum)
			VPSUBD(row[2], row[1], difference)
			VPADDD(row[0], sum, sum)
			VPSUBD(row[3], difference, difference)
			VPSRAD(U8(2), sum, sum)
			VPSRAD(U8(2), difference, difference)
			acc[2*r*vectors+v], acc[(2*r+1)*vectors+v] = sum, difference
		}
	}
	zmm.EndFloats(job, acc, vectors, "")
	if kind == "Levels" {
		zmm.EndLevels(job, acc, vectors, "")
	}
	second := GP64()
	MOVQ(dst, second)
	ADDQ(Mem{Base: job, Disp: gen.WinogradRow}, second)
	for p := range 4 {
		to := dst
		if p >= 2 {
			to = second
		}
		if kind == "Levels" {
			storeLevels(to, acc[p*vectors:][:vectors])
		} else {
			zmm.StoreFloats(job, to, acc[p*vectors:][:vectors], fmt.Sprint("pixel", p))
		}
		ADDQ(Mem{Base: job, Disp: gen.JobDstStep}, to)
	}
	ADDQ(U32(64*vectors), src)
	DECQ(Mem{Base: job, Disp: gen.JobPixels})
	JNE(LabelRef("square"))
	VZEROUPPER()
	RET()
}
