package gen

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ISA is the registers of an instruction set.
type ISA struct {
	Name  string // as the names of functions end
	Lanes int    // float32 values of a vector
	Vec   func() reg.VecVirtual
	// FirstLanes returns how to load and store the first n lanes of a vector.
	FirstLanes func(n reg.Register) (load func(m Mem, v reg.VecVirtual), store func(v reg.VecVirtual, m Mem))
}

// FMAPixels writes the ordered sums of pixels × vectors of outputs; a single
// vector may have fewer outputs than lanes.
func FMAPixels(isa ISA, pixels, vectors int) {
	n := vectors * isa.Lanes
	name := fmt.Sprintf("fmaPixels%dx%d%s", pixels, n, isa.Name)
	TEXT(name, NOSPLIT, "func(job *byte)")
	outputs := fmt.Sprint(n)
	if vectors == 1 {
		outputs = "at most " + outputs
	}
	Doc(fmt.Sprintf("%s computes, for every pixel p, %d at a time, and each of %s outputs o,", name, pixels, outputs),
		"with x the values of its patch in order,",
		"",
		"\tdst[p][o] = bias[o], then fma(x[i], w[i][o], dst[p][o]) for each i",
		"",
		"and takes the pixels off the job.")
	Pragma("noescape")
	job := Load(Param("job"), GP64())
	load := func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }
	store := func(v reg.VecVirtual, m Mem) { VMOVUPS(v, m) }
	if vectors == 1 {
		n := GP64()
		MOVQ(Mem{Base: job, Disp: FMAOutputs}, n)
		load, store = isa.FirstLanes(n)
	}
	place := func(base reg.Register, v int) Mem { return Mem{Base: base, Disp: 4 * isa.Lanes * v} }
	acc := make([]reg.VecVirtual, pixels*vectors)
	Tiles(job, pixels, func(x []reg.GPVirtual) {
		bias := GP64()
		MOVQ(Mem{Base: job, Disp: FMABias}, bias)
		for i := range acc {
			acc[i] = isa.Vec()
		}
		for v := range vectors {
			load(place(bias, v), acc[v])
			for p := 1; p < pixels; p++ {
				VMOVAPS(acc[v], acc[p*vectors+v])
			}
		}
		w, tap := GP64(), GP64()
		MOVQ(Mem{Base: job, Disp: TileWeights}, w)
		MOVQ(Mem{Base: job, Disp: FMATap}, tap)
		Rows(job, func(i, end reg.GPVirtual) {
			Label("tap")
			weights := make([]reg.VecVirtual, vectors)
			for v := range weights {
				weights[v] = isa.Vec()
				load(place(w, v), weights[v])
			}
			for p := range pixels {
				b := isa.Vec()
				VBROADCASTSS(Mem{Base: x[p], Index: i, Scale: 1}, b)
				for v := range weights {
					VFMADD231PS(weights[v], b, acc[p*vectors+v])
				}
			}
			ADDQ(tap, w)
			ADDQ(U8(4), i)
			CMPQ(i, end)
			JNE(LabelRef("tap"))
		})
	}, func(p int, dst reg.Register) {
		for v := range vectors {
			store(acc[p*vectors+v], place(dst, v))
		}
	})
}
