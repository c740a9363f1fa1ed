package gen

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// ISA is the registers of an instruction set.
type ISA struct {
	Name  string // as the names of functions end
	Lanes int    // float32 values of a vector
	Vec   func() reg.VecVirtual
	Zero  func(v reg.VecVirtual)
	// PReLU multiplies x by slope, which it overwrites, where x is less than zero.
	PReLU func(slope, zero, x reg.VecVirtual)
	// FMABroadcast adds the product of a value in memory, which all lanes get, and w to acc.
	FMABroadcast func(m Mem, w, acc reg.VecVirtual)
	// FirstLanes returns how to load and store the first n lanes of a vector.
	FirstLanes func(n reg.Register) (load func(m Mem, v reg.VecVirtual), store func(v reg.VecVirtual, m Mem))
}

// What the kernels behind FMAPixels, FMAEach and Mean compute.
var (
	PixelsDoc = []string{
		"with x the values of its patch in order and t their taps,", "",
		"\tdst[p][o] = bias[o], then fma(x[i], w[t[i]][o], dst[p][o]) for each i",
	}
	EachDoc = []string{
		"with x[r] the values from that of run r on,", "",
		"\tdst[p][o] = bias[o], then fma(x[r][o], w[tap of r][o], dst[p][o]) for each r",
	}
	MeanDoc = []string{
		"with x[r] the values from that of run r on, of which there is one,", "",
		"\tdst[p][o] = 0, then dst[p][o] + x[r][o] for each r,", "",
		"divided by the number of taps,",
	}
)

// FMAFunction starts the function of a kernel for pixels × vectors of outputs.
func FMAFunction(kind string, pixels, vectors, lanes int, some bool, isa string, what ...string) (job reg.Register) {
	n := vectors * lanes
	name := fmt.Sprintf("%s%dx%d%s", kind, pixels, n, isa)
	TEXT(name, NOSPLIT, "func(job *byte)")
	outputs := fmt.Sprint(n)
	if some {
		outputs = "at most " + outputs
	}
	doc := []string{fmt.Sprintf("%s computes, for every pixel p, %d at a time, and each of %s outputs o,", name, pixels, outputs)}
	end := "and the end of that, and takes the pixels off the job."
	if strings.HasPrefix(kind, "mean") {
		end = "and takes the pixels off the job."
	}
	Doc(append(append(doc, what...), "", end)...)
	Pragma("noescape")
	return Load(Param("job"), GP64())
}

// fmaJob starts a kernel for pixels × vectors of outputs; a single vector may
// have fewer outputs than lanes.
func (isa ISA) fmaJob(kind string, pixels, vectors int, what ...string) (job reg.Register, load func(Mem, reg.VecVirtual), store func(reg.VecVirtual, Mem)) {
	if vectors > 1 {
		job = FMAFunction(kind, pixels, vectors, isa.Lanes, false, isa.Name, what...)
		return job, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }, func(v reg.VecVirtual, m Mem) { VMOVUPS(v, m) }
	}
	return isa.fmaFirst(kind, pixels, 1, what...)
}

// fmaFirst starts a kernel for pixels × vectors of outputs, the last of which may have fewer outputs
// than lanes. load and store are told vectors apart by where they lie.
func (isa ISA) fmaFirst(kind string, pixels, vectors int, what ...string) (job reg.Register, load func(Mem, reg.VecVirtual), store func(reg.VecVirtual, Mem)) {
	job = FMAFunction(kind, pixels, vectors, isa.Lanes, true, isa.Name, what...)
	lanes := GP64()
	MOVQ(Mem{Base: job, Disp: FMAOutputs}, lanes)
	full := (vectors - 1) * isa.Lanes
	if full > 0 {
		SUBQ(U8(full), lanes)
	}
	first, put := isa.FirstLanes(lanes)
	load = func(m Mem, v reg.VecVirtual) {
		if m.Disp < 4*full {
			VMOVUPS(m, v)
		} else {
			first(m, v)
		}
	}
	store = func(v reg.VecVirtual, m Mem) {
		if m.Disp < 4*full {
			VMOVUPS(v, m)
		} else {
			put(v, m)
		}
	}
	return job, load, store
}

// fmaBias returns accumulators that start from the biases.
// They are those of the channels from at on, if that is not nil, in bytes.
func (isa ISA) fmaBias(job reg.Register, pixels, vectors int, at reg.Register) []reg.VecVirtual {
	bias := GP64()
	MOVQ(Mem{Base: job, Disp: FMABias}, bias)
	if at != nil {
		ADDQ(at, bias)
	}
	acc := make([]reg.VecVirtual, pixels*vectors)
	for i := range acc {
		acc[i] = isa.Vec()
	}
	for v := range vectors {
		VMOVUPS(Mem{Base: bias, Disp: 4 * isa.Lanes * v}, acc[v])
		for p := 1; p < pixels; p++ {
			VMOVAPS(acc[v], acc[p*vectors+v])
		}
	}
	return acc
}

// fmaEnd writes the end of the sums, of the channels that fmaBias had.
func (isa ISA) fmaEnd(job reg.Register, pixels, vectors int, acc []reg.VecVirtual, load func(Mem, reg.VecVirtual), channel reg.Register) {
	some := func(label string, disp int, body func(at func(v int) reg.VecVirtual)) {
		p := GP64()
		MOVQ(Mem{Base: job, Disp: disp}, p)
		TESTQ(p, p)
		JEQ(LabelRef(label))
		if channel != nil {
			ADDQ(channel, p)
		}
		body(func(v int) reg.VecVirtual {
			x := isa.Vec()
			load(Mem{Base: p, Disp: 4 * isa.Lanes * v}, x)
			return x
		})
		Label(label)
	}
	some("scaled", FMAScale, func(at func(v int) reg.VecVirtual) {
		shifts := GP64()
		MOVQ(Mem{Base: job, Disp: FMAShift}, shifts)
		if channel != nil {
			ADDQ(channel, shifts)
		}
		for v := range vectors {
			scale, shift := at(v), isa.Vec()
			load(Mem{Base: shifts, Disp: 4 * isa.Lanes * v}, shift)
			for p := range pixels {
				VFMADD213PS(shift, scale, acc[p*vectors+v])
			}
		}
	})
	some("sloped", FMASlope, func(at func(v int) reg.VecVirtual) {
		zero := isa.Vec()
		isa.Zero(zero)
		for v := range vectors {
			for p := range pixels {
				isa.PReLU(at(v), zero, acc[p*vectors+v])
			}
		}
	})
	some("clipped", FMAClip, func(func(v int) reg.VecVirtual) {
		low, high := isa.Vec(), isa.Vec()
		VBROADCASTSS(Mem{Base: job, Disp: FMALow}, low)
		VBROADCASTSS(Mem{Base: job, Disp: FMAHigh}, high)
		for _, x := range acc {
			VMAXPS(x, low, x)  // low where it is greater
			VMINPS(x, high, x) // high where it is less
		}
	})
}

// FMARunLoop writes a loop over the runs of patches: i is the place of the first
// value, w leads to the weights of its tap, which start at weights, or where the
// job says.
func FMARunLoop(job, weights reg.Register, body func(i, w reg.GPVirtual)) {
	runs, count := GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: FMARuns}, runs)
	MOVQ(Mem{Base: job, Disp: FMACount}, count)
	TESTQ(count, count)
	JEQ(LabelRef("summed"))
	Label("run")
	i, w := GP64(), GP64()
	MOVQ(Mem{Base: runs}, i)
	MOVQ(Mem{Base: runs, Disp: 8}, w)
	IMULQ(Mem{Base: job, Disp: FMATap}, w)
	if weights != nil {
		ADDQ(weights, w)
	} else {
		ADDQ(Mem{Base: job, Disp: TileWeights}, w)
	}
	body(i, w)
	ADDQ(U8(16), runs)
	DECQ(count)
	JNE(LabelRef("run"))
	Label("summed")
}

// FMAPixels writes the ordered sums of pixels × vectors of outputs. The vectors
// are in one block of weights, or in four.
func FMAPixels(isa ISA, pixels, vectors, blocks int) {
	job, load, store := isa.fmaJob("fmaPixels", pixels, vectors,
		PixelsDoc...)
	var acc []reg.VecVirtual
	Tiles(job, pixels, func(x []reg.GPVirtual) {
		acc = isa.fmaBias(job, pixels, vectors, nil)
		block, block3 := GP64(), GP64()
		if blocks > 1 {
			MOVQ(Mem{Base: job, Disp: FMABlock}, block)
			LEAQ(Mem{Base: block, Index: block, Scale: 2}, block3)
		}
		tap := GP64()
		MOVQ(Mem{Base: job, Disp: FMATap}, tap)
		FMARunLoop(job, nil, func(i, w reg.GPVirtual) {
			each := vectors / blocks
			at := func(v int) Mem {
				m := Mem{Base: w, Disp: 4 * isa.Lanes * (v % each)}
				switch v / each {
				case 1:
					m.Index, m.Scale = block, 1
				case 2:
					m.Index, m.Scale = block, 2
				case 3:
					m.Index, m.Scale = block3, 1
				}
				return m
			}
			end := GP64()
			MOVQ(Mem{Base: job, Disp: FMARun}, end)
			ADDQ(i, end)
			Label("tap")
			weights := make([]Op, vectors)
			for v := range weights {
				weights[v] = at(v)
				if pixels > 1 {
					r := isa.Vec()
					VMOVUPS(at(v), r)
					weights[v] = r
				}
			}
			for p := range pixels {
				b := isa.Vec()
				VBROADCASTSS(Mem{Base: x[p], Index: i, Scale: 4}, b)
				for v, w := range weights {
					VFMADD231PS(w, b, acc[p*vectors+v])
				}
			}
			ADDQ(tap, w)
			INCQ(i)
			CMPQ(i, end)
			JNE(LabelRef("tap"))
		})
		isa.fmaEnd(job, pixels, vectors, acc, load, nil)
	}, func(p int, dst reg.Register) {
		for v := range vectors {
			store(acc[p*vectors+v], Mem{Base: dst, Disp: 4 * isa.Lanes * v})
		}
	})
}

// FMAEach writes the ordered sums of depthwise convolutions, for pixels × vectors
// of channels, which are a block of weights or a part of one. A tile takes all
// channels, a multiple of so many, because they follow each other in memory.
func FMAEach(isa ISA, pixels, vectors int) { isa.each("fmaEach", pixels, vectors, EachDoc) }

// Means writes the means of windows like FMAEach, but without weights.
func Means(isa ISA, pixels, vectors int) { isa.each("mean", pixels, vectors, MeanDoc) }

func (isa ISA) each(kind string, pixels, vectors int, doc []string) {
	job, load, store := isa.fmaJob(kind, pixels, vectors, doc...)
	mean := kind == "mean"
	Tiles(job, pixels, func(x []reg.GPVirtual) {
		channel, weights := GP64(), GP64()
		XORQ(channel, channel)
		if !mean {
			MOVQ(Mem{Base: job, Disp: TileWeights}, weights)
		}
		Label("channels")
		var acc []reg.VecVirtual
		sum := func(i reg.GPVirtual, add func(v int, m Mem, acc reg.VecVirtual)) {
			LEAQ(Mem{Base: channel, Index: i, Scale: 4}, i)
			for v := range vectors {
				for p := range pixels {
					add(v, Mem{Base: x[p], Index: i, Scale: 1, Disp: 4 * isa.Lanes * v}, acc[p*vectors+v])
				}
			}
		}
		if mean {
			acc = isa.zeros(pixels * vectors)
			runs, count := GP64(), GP64()
			MOVQ(Mem{Base: job, Disp: FMARuns}, runs)
			MOVQ(Mem{Base: job, Disp: FMACount}, count)
			Label("run")
			i := GP64()
			MOVQ(Mem{Base: runs}, i)
			sum(i, func(_ int, m Mem, acc reg.VecVirtual) {
				if vectors > 1 {
					VADDPS(m, acc, acc)
					return
				}
				values := isa.Vec()
				load(m, values)
				VADDPS(values, acc, acc)
			})
			ADDQ(U8(16), runs)
			DECQ(count)
			JNE(LabelRef("run"))
			isa.divide(job, acc)
		} else {
			acc = isa.fmaBias(job, pixels, vectors, channel)
			FMARunLoop(job, weights, func(i, w reg.GPVirtual) {
				var weight reg.VecVirtual
				last := -1
				sum(i, func(v int, m Mem, acc reg.VecVirtual) {
					if v != last {
						weight, last = isa.Vec(), v
						VMOVUPS(Mem{Base: w, Disp: 4 * isa.Lanes * v}, weight)
					}
					if vectors > 1 {
						VFMADD231PS(m, weight, acc)
						return
					}
					values := isa.Vec()
					load(m, values)
					VFMADD231PS(values, weight, acc)
				})
			})
			isa.fmaEnd(job, pixels, vectors, acc, load, channel)
		}
		dst := GP64()
		MOVQ(Mem{Base: job, Disp: TileDst}, dst)
		ADDQ(channel, dst)
		for p := range pixels {
			for v := range vectors {
				store(acc[p*vectors+v], Mem{Base: dst, Disp: 4 * isa.Lanes * v})
			}
			if p < pixels-1 {
				ADDQ(Mem{Base: job, Disp: TileDstStep}, dst)
			}
		}
		if vectors > 1 {
			if !mean {
				ADDQ(Mem{Base: job, Disp: FMABlock}, weights)
			}
			ADDQ(I32(4*isa.Lanes*vectors), channel)
			left := GP64()
			MOVQ(channel, left)
			SHRQ(U8(2), left)
			CMPQ(left, Mem{Base: job, Disp: FMAOutputs})
			JNE(LabelRef("channels"))
		}
	}, func(int, reg.Register) {})
}

func (isa ISA) zeros(n int) []reg.VecVirtual {
	acc := make([]reg.VecVirtual, n)
	for i := range acc {
		acc[i] = isa.Vec()
		isa.Zero(acc[i])
	}
	return acc
}

// divide writes the division of sums by the number of taps.
func (isa ISA) divide(job reg.Register, sums []reg.VecVirtual) {
	taps, y := isa.Vec(), isa.Vec()
	VBROADCASTSS(Mem{Base: job, Disp: MeanTaps}, taps)
	VBROADCASTSS(Mem{Base: job, Disp: MeanReciprocal}, y)
	for _, sum := range sums {
		q := isa.Vec()
		VMULPS(y, sum, q)
		VFNMADD231PS(taps, q, sum)
		VFMADD213PS(q, y, sum)
	}
}
