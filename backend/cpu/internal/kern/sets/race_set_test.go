//go:build race

package sets

import (
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// What the calls below compute on: rows of racyN values, so far apart that there
// is something between them.
const (
	racyN      = 70
	racyStep   = racyN + 1
	racyPixels = 5
)

var racyPatches = &kern.Patches{Pixels: racyPixels, Step: 3, Rows: 3, RowStep: 20, RowLen: 1}

func row[T any]() []T { return make([]T, racyN) }

// rows are n rows, without what is behind the last one.
func rows[T any](n int) []T { return make([]T, (n-1)*racyStep+racyN) }

// between is what lies between the first two rows.
func between[T any](rows []T) []probe { return probes(alone, "between rows", rows[racyN:racyStep]) }

func racyEnd() kern.End {
	return kern.End{Scale: row[float32](), Shift: row[float32](), Activation: kern.Activation{Slope: row[float32]()}}
}

// racySetCalls call the functions of Set.
var racySetCalls = []racyCall{
	{"DotBits", func(s *kern.Set) (func(), []probe) {
		const k = 192
		stride := num.RoundUp(racyN, s.Block) + 1
		dst, src := make([]int32, racyPixels*stride-1), make([]uint64, span(racyPatches))
		w := s.PackBits(randomBits(racyRandom(), racyN, k), racyN, k)
		return func() { s.DotBits(dst, stride, src, racyPatches, w, 0, racyN) }, slices.Concat(
			probes(written, "dst", dst), probes(alone, "between pixels", dst[stride-1:stride]),
			probes(read, "patches", src), probes(read, "weights", w.Data))
	}},
	{"DotBytes", func(s *kern.Set) (func(), []probe) {
		stride := num.RoundUp(racyN, s.Block) + 1
		dst, src := make([]int32, racyPixels*stride-1), make([]uint8, span(racyPatches))
		w := s.PackBytes(randomBits(racyRandom(), racyN, 3), racyN, 3, 0)
		return func() { s.DotBytes(dst, stride, src, racyPatches, w, 0, racyN) }, slices.Concat(
			probes(written, "dst", dst), probes(alone, "between pixels", dst[stride-1:stride]),
			probes(read, "patches", src), probes(read, "weights", w.Data), probes(read, "zero points", w.Fix))
	}},
	{"DotWords", func(s *kern.Set) (func(), []probe) {
		stride := num.RoundUp(racyN, s.Block) + 1
		dst, src := make([]int32, racyPixels*stride-1), make([]uint8, span(racyPatches))
		w := s.PackInt8(make([]int8, racyN*3), racyN, 3, 0)
		return func() { s.DotWords(dst, stride, src, racyPatches, w, 0, racyN) }, slices.Concat(
			probes(written, "dst", dst), probes(alone, "between pixels", dst[stride-1:stride]),
			probes(read, "patches", src), probes(read, "weights", w.Data), probes(read, "zero points", w.Fix))
	}},
	{"FMAPixels", func(s *kern.Set) (func(), []probe) {
		dst, src := rows[float32](racyPixels), make([]float32, 4*3+20+2)
		end := racyEnd()
		w := kern.NewFloatWeights(s, racyN, 4, row[float32]())
		at := &kern.FloatPatches{Pixels: racyPixels, Step: 3, RunLen: 2, Runs: []kern.FloatRun{{}, {Src: 20, Tap: 2}}}
		return func() { s.FMAPixels(dst, racyStep, src, at, w, 0, racyN, end) }, slices.Concat(
			probes(written, "dst", dst), between(dst), probes(read, "patches", src), probes(read, "runs", at.Runs),
			probes(read, "w", w.Data), probes(read, "bias", w.Bias[:racyN]),
			probes(read, "scale", end.Scale), probes(read, "shift", end.Shift), probes(read, "slope", end.Slope))
	}},
	{"FMAEach", func(s *kern.Set) (func(), []probe) {
		dst, src := rows[float32](racyPixels), make([]float32, 4*3+20+racyN)
		end := racyEnd()
		w := kern.NewFloatWeights(s, racyN, 2, row[float32]())
		at := &kern.FloatPatches{Pixels: racyPixels, Step: 3, RunLen: 1, Runs: []kern.FloatRun{{}, {Src: 20, Tap: 1}}}
		return func() { s.FMAEach(dst, racyStep, src, at, w, end) }, slices.Concat(
			probes(written, "dst", dst), between(dst), probes(read, "patches", src), probes(read, "runs", at.Runs),
			probes(read, "w", w.Data), probes(read, "bias", w.Bias[:racyN]),
			probes(read, "scale", end.Scale), probes(read, "shift", end.Shift), probes(read, "slope", end.Slope))
	}},
	{"FMAGroups", func(s *kern.Set) (func(), []probe) {
		const pixels, inputs, outputs, between = 8, 4, 32, 8
		at := &kern.FloatPatches{Pixels: pixels, Step: outputs, RunLen: inputs, Slide: 3, Stride: 1}
		for r := range 3 {
			at.Runs = append(at.Runs, kern.FloatRun{Src: r * outputs, Tap: r * inputs})
		}
		if s.FMAGroups == nil || !s.Groups(at, inputs, inputs, outputs) {
			return nil, nil
		}
		dst, src := make([]float32, pixels*(outputs+between)), make([]float32, (pixels+2)*outputs)
		end := kern.End{Scale: make([]float32, outputs), Shift: make([]float32, outputs)}
		end.Slope = make([]float32, outputs)
		w := kern.NewFloatWeights(s, outputs, 3*inputs, make([]float32, outputs))
		return func() { s.FMAGroups(dst, outputs+between, src, at, w, inputs, inputs, end) }, slices.Concat(
			probes(written, "dst", dst[:outputs]), probes(alone, "between pixels", dst[outputs:outputs+between]),
			probes(written, "last dst", dst[(pixels-1)*(outputs+between):][:outputs]), probes(read, "patches", src), probes(read, "runs", at.Runs),
			probes(read, "w", w.Data), probes(read, "bias", w.Bias),
			probes(read, "scale", end.Scale), probes(read, "shift", end.Shift), probes(read, "slope", end.Slope))
	}},
	{"FMAColumns", func(s *kern.Set) (func(), []probe) {
		if s.FMAColumns == nil {
			return nil, nil
		}
		const pixels, height = 3, 2
		at := &kern.FloatColumns{
			Taps: 3, Pixels: pixels, Rows: height + 2, Step: racyStep, RowStep: (pixels + 2) * racyStep,
			DstStep: racyStep, DstRow: pixels * racyStep,
		}
		dst, src := rows[float32](height*pixels), rows[float32]((height+2)*(pixels+2))
		end := racyEnd()
		w := kern.NewColumnWeights(s, racyN, 9, row[float32]())
		return func() { s.FMAColumns(dst, src, at, w, end) }, slices.Concat(
			probes(written, "dst", dst), between(dst), probes(read, "src", src), between(src),
			probes(read, "w", w.Data), probes(read, "bias", w.Bias),
			probes(read, "scale", end.Scale), probes(read, "shift", end.Shift), probes(read, "slope", end.Slope))
	}},
	{"Depthwise", func(s *kern.Set) (func(), []probe) {
		if s.Depthwise == nil {
			return nil, nil
		}
		const pixels, channels, between, columns = 5, 70, 3, 11 // of a stride of 2
		dst, src := make([]uint8, pixels*(channels+between)), make([]uint8, 3*columns*(channels+between))
		f := kern.PackDepthwise(make([]int8, 9*channels), make([]int32, channels))
		row := func() []float32 { return make([]float32, 2*kern.BlockOutputs) }
		end, levels := kern.End{Scale: row(), Shift: row()}, kern.Levels{Scale: row(), Shift: row(), Rest: row()}
		end.Slope = row()
		j := &kern.DepthwiseJob{Row: columns * (channels + between), Column: channels + between}
		j.Dst, j.DstStep, j.Src, j.Pixels = unsafe.Pointer(&dst[kern.BlockOutputs]), channels+between, unsafe.Pointer(&src[kern.BlockOutputs]), pixels
		last := end.From(kern.BlockOutputs)
		lastLevels := levels.From(kern.BlockOutputs)
		return func() { s.Depthwise.Levels(j, f, 1, 2, &last, &lastLevels) }, slices.Concat(
			probes(written, "dst", dst[kern.BlockOutputs:channels]), probes(alone, "between pixels", dst[channels:channels+kern.BlockOutputs+between]),
			probes(written, "last dst", dst[(pixels-1)*(channels+between):][kern.BlockOutputs:channels]),
			probes(read, "src", src[kern.BlockOutputs:channels]), probes(alone, "other channels", src[:kern.BlockOutputs]),
			probes(read, "last src", src[len(src)-channels-between:][kern.BlockOutputs:channels]),
			probes(read, "scale", last.Scale), probes(read, "shift", last.Shift), probes(read, "slope", last.Slope),
			probes(read, "scale of levels", lastLevels.Scale), probes(read, "shift of levels", lastLevels.Shift), probes(read, "rest", lastLevels.Rest))
	}},
	{"Threshold", func(s *kern.Set) (func(), []probe) {
		dst, sums, t := make([]uint64, 3*racyPixels-1), rows[int32](racyPixels), row[int32]()
		return func() { s.Threshold(dst, 3, sums, racyStep, t, racyPixels) }, slices.Concat(
			probes(written, "dst", dst), probes(alone, "between pixels", dst[2:3]),
			probes(read, "sums", sums), between(sums), probes(read, "t", t))
	}},
	{"ThresholdFloat", func(s *kern.Set) (func(), []probe) {
		dst, sums, t := make([]uint64, 3*racyPixels-1), rows[float32](racyPixels), row[float32]()
		return func() { s.ThresholdFloat(dst, 3, sums, racyStep, t, racyPixels) }, slices.Concat(
			probes(written, "dst", dst), probes(alone, "between pixels", dst[2:3]),
			probes(read, "sums", sums), between(sums), probes(read, "t", t))
	}},
	{"ThresholdPlanes", func(s *kern.Set) (func(), []probe) {
		if s.ThresholdPlanes == nil {
			return nil, nil
		}
		const n = 64
		dst, values, t := make([]uint64, 3*racyPixels-1), rows[float32](racyPixels), make([]float32, 3*n)
		return func() { s.ThresholdPlanes(dst, 3, 1, values, racyStep, t, racyPixels) }, slices.Concat(
			probes(written, "dst", dst), probes(alone, "between pixels", dst[2:3]),
			probes(read, "values", values[:(racyPixels-1)*racyStep+n]), between(values), probes(read, "t", t))
	}},
	{"AddTwice", func(s *kern.Set) (func(), []probe) {
		dst, src := row[int32](), row[int32]()
		return func() { s.AddTwice(dst, src) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"Or", func(s *kern.Set) (func(), []probe) {
		dst, src := row[uint64](), row[uint64]()
		return func() { s.Or(dst, src) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"Scale", func(s *kern.Set) (func(), []probe) {
		dst, sums := rows[float32](racyPixels), rows[int32](racyPixels)
		end := racyEnd()
		return func() { s.Scale(dst, racyStep, sums, racyStep, racyN, racyPixels, end) }, slices.Concat(
			probes(written, "dst", dst), between(dst), probes(read, "sums", sums), between(sums),
			probes(read, "scale", end.Scale), probes(read, "shift", end.Shift), probes(read, "slope", end.Slope))
	}},
	{"ScaleAdd", func(s *kern.Set) (func(), []probe) {
		if s.ScaleAdd == nil {
			return nil, nil
		}
		dst, sums, added := rows[float32](racyPixels), rows[int32](racyPixels), rows[float32](racyPixels)
		end, then := racyEnd(), racyEnd()
		then.Slope = nil
		return func() { s.ScaleAdd(dst, racyStep, sums, racyStep, racyN, racyPixels, end, then, added) }, slices.Concat(
			probes(written, "dst", dst), between(dst), probes(read, "sums", sums), between(sums), probes(read, "added", added), between(added),
			probes(read, "scale", end.Scale), probes(read, "shift", end.Shift), probes(read, "slope", end.Slope),
			probes(read, "then's scale", then.Scale), probes(read, "then's shift", then.Shift))
	}},
	{"ScaleFloat", func(s *kern.Set) (func(), []probe) {
		dst, sums := rows[float32](racyPixels), rows[float32](racyPixels)
		end := racyEnd()
		return func() { s.ScaleFloat(dst, racyStep, sums, racyStep, racyN, racyPixels, end) }, slices.Concat(
			probes(written, "dst", dst), between(dst), probes(read, "sums", sums), between(sums),
			probes(read, "scale", end.Scale), probes(read, "shift", end.Shift), probes(read, "slope", end.Slope))
	}},
	{"Floats", func(s *kern.Set) (func(), []probe) {
		dst, src := row[float32](), row[uint8]()
		return func() { s.Floats(dst, src) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"ScaleBytes", func(s *kern.Set) (func(), []probe) {
		dst, src := row[float32](), row[uint8]()
		values := func() []float32 { return make([]float32, 2*kern.BytePeriod) }
		end := kern.End{Scale: values(), Shift: values(), Activation: kern.Activation{Slope: values()}}
		return func() { s.ScaleBytes(dst, src, end) }, slices.Concat(
			probes(written, "dst", dst), probes(read, "src", src), probes(read, "scale", end.Scale), probes(read, "shift", end.Shift),
			probes(read, "slope", end.Slope))
	}},
	{"Add", func(s *kern.Set) (func(), []probe) {
		dst, a, b, slope := row[float32](), row[float32](), row[float32](), row[float32]()
		return func() { s.Add(dst, a, b, kern.Activation{Slope: slope}) }, slices.Concat(
			probes(written, "dst", dst), probes(read, "a", a), probes(read, "b", b), probes(read, "slope", slope))
	}},
	{"LevelBytes", func(s *kern.Set) (func(), []probe) {
		dst, src, l := row[uint8](), row[float32](), racyLevels()
		return func() { s.LevelBytes(dst, src, l) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src), racyLevelProbes(l))
	}},
	{"LevelFloats", func(s *kern.Set) (func(), []probe) {
		dst, src, l := row[float32](), row[float32](), racyLevels()
		return func() { s.LevelFloats(dst, src, l, 0) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src), racyLevelProbes(l))
	}},
	{"LookUp", func(s *kern.Set) (func(), []probe) {
		dst, src, tables := make([]float32, 64+racyN), make([]uint8, 64+racyN), kern.NewFloatTables(make([]float32, kern.TableBytes))
		return func() { s.LookUp(dst, src, tables) }, slices.Concat(
			probes(written, "dst", dst), probes(read, "src", src), probes(read, "values", tables.Values), probes(read, "bytes", tables.Bytes))
	}},
	{"Largest", func(s *kern.Set) (func(), []probe) {
		dst, src := row[float32]()[:9], row[float32]()
		return func() { s.Largest(dst, src, 5) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src[:45]))
	}},
	{"Function", func(s *kern.Set) (func(), []probe) {
		dst, src := row[float32](), row[float32]()
		return func() { s.Function(dst, src, kern.FunctionNamed("tanh")) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"Blend", func(s *kern.Set) (func(), []probe) {
		dst, src := make([]float32, racyPixels*racyN), make([]float32, 2*racyPixels*racyN)
		index, weights := make([]int32, racyPixels), make([]float32, racyPixels)
		for i := range index {
			index[i] = int32(i)
		}
		rows, cols := kern.NewBlendTaps([]int32{1}, []float32{1}, racyPixels*racyN), kern.NewBlendTaps(index, weights, racyN)
		return func() { s.Blend(dst, src, rows, cols, racyN, racyPixels) }, slices.Concat(
			probes(written, "dst", dst), probes(read, "src", src[racyPixels*racyN:]), probes(alone, "another row", src[:racyPixels*racyN]),
			probes(read, "rows", rows), probes(read, "columns", cols))
	}},
	{"BlendRows", func(s *kern.Set) (func(), []probe) {
		if s.BlendRows == nil {
			return nil, nil
		}
		rows := kern.NewBlendTaps([]int32{1, 1}, []float32{1, 1}, racyN)
		cols := kern.NewBlendColumns(s.FloatLanes, make([]int32, 2*racyN), make([]float32, 2*racyN), 2, 1, racyN)
		dst, src := row[float32](), make([]float32, 2*racyN)
		return func() { s.BlendRows(dst, src, rows, cols) }, slices.Concat(
			probes(written, "dst", dst), probes(read, "src", src[racyN:]), probes(alone, "another row", src[:racyN]),
			probes(read, "rows", rows), probes(read, "columns", cols.Table), probes(read, "places", cols.Places))
	}},
	{"Choose", func(s *kern.Set) (func(), []probe) {
		dst, src, one, zero := row[float32](), make([]uint64, bits.Words(racyN)+1), row[float32](), row[float32]()
		return func() { s.Choose(dst, src, one, zero) }, slices.Concat(
			probes(written, "dst", dst), probes(read, "src", src[:bits.Words(racyN)]),
			probes(alone, "behind src", src[bits.Words(racyN):]), probes(read, "one", one), probes(read, "zero", zero))
	}},
	{"Pick", func(s *kern.Set) (func(), []probe) {
		picks := kern.NewPicks(s.PickLanes, 20, make([]int32, 18))
		dst, src := make([]float32, racyPixels*18), make([]float32, racyPixels*20)
		return func() { s.Pick(dst, src, picks, racyPixels) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"OrPool", func(s *kern.Set) (func(), []probe) {
		dst, src, p := racyPool[uint64]()
		return func() { s.OrPool(dst, src, p) }, racyPoolProbes(dst, src)
	}},
	{"MaxPool", func(s *kern.Set) (func(), []probe) {
		dst, src, p := racyPool[float32]()
		return func() { s.MaxPool(dst, src, p) }, racyPoolProbes(dst, src)
	}},
	{"LookUpBytes", func(s *kern.Set) (func(), []probe) {
		dst, src := make([]uint8, 8*racyN), make([]uint8, 8*racyN+8)
		table := kern.NewByteTable(make([]float32, 256))
		return func() { s.LookUpBytes(dst, src, table) }, slices.Concat(
			probes(written, "dst", dst), probes(read, "src", src[:8*racyN]), probes(alone, "behind src", src[8*racyN:]))
	}},
	{"MaxPoolBytes", func(s *kern.Set) (func(), []probe) {
		// Words of bytes, since the race detector forgets accesses to a few bytes of one.
		p := &kern.Pool{Taps: []int{72, 8}, Values: 8, Step: 16, DstStep: 16, Pixels: racyPixels}
		dst, src := make([]uint8, 16*(racyPixels-1)+8), make([]uint8, 16*(racyPixels-1)+72+8)
		return func() { s.MaxPoolBytes(dst, src, p) }, slices.Concat(probes(written, "dst", dst), probes(alone, "between pixels", dst[8:16]),
			probes(read, "src", src[8:]), probes(alone, "before the first tap", src[:8]))
	}},
	{"Mean", func(s *kern.Set) (func(), []probe) {
		const n = 3
		dst, src := make([]float32, racyPixels*n), make([]float32, 5*(racyPixels-1)+8+n)
		at := &kern.FloatPatches{Pixels: racyPixels, Step: 5, RunLen: 1, Runs: []kern.FloatRun{{Src: 6}, {Src: 8}, {Src: 1}}}
		return func() { s.Mean(dst, src, at, n, 3, 1./3) }, slices.Concat(
			probes(written, "dst", dst), probes(read, "src", src[1:]), probes(alone, "before the first run", src[:1]), probes(read, "runs", at.Runs))
	}},
	{"MeanSigns", func(s *kern.Set) (func(), []probe) {
		const words = 2 // of racyN bits
		dst, src := make([]float32, racyPixels*racyN), make([]uint64, 4*(racyPixels-1)+1+words)
		p := &kern.Pool{Taps: []int{0, 1}, Values: words, Step: 4, Pixels: racyPixels}
		return func() { s.MeanSigns(dst, src, racyN, p, 2, 0.5) }, slices.Concat(
			probes(written, "dst", dst), probes(read, "src", src), probes(alone, "between pixels", src[3:4]))
	}},
	{"Narrow", func(s *kern.Set) (func(), []probe) {
		dst, src := row[uint32](), row[uint64]()
		return func() { s.Narrow(dst, src) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"Join", func(s *kern.Set) (func(), []probe) {
		dst, src := row[uint32](), rows[uint32](3)
		return func() { s.Join(dst, src, 3, racyStep, 2) }, slices.Concat(
			probes(written, "dst", dst), probes(read, "src", src), between(src))
	}},
	{"ThresholdBytes", func(s *kern.Set) (func(), []probe) {
		dst, src, t := make([]uint64, bits.Words(racyN)), row[uint8](), make([]uint8, bits.WordBits)
		return func() { s.ThresholdBytes(dst, src, t) }, slices.Concat(
			probes(written, "dst", dst), probes(read, "src", src), probes(read, "t", t))
	}},
	{"Spread", func(s *kern.Set) (func(), []probe) {
		dst, src := row[uint64](), make([]uint64, bits.Words(3*racyN))
		return func() { s.Spread(dst, src, 3, 0) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"Luma", func(s *kern.Set) (func(), []probe) {
		dst, rgb := row[uint8](), make([]uint8, 3*racyN)
		return func() { s.Luma(dst, rgb) }, slices.Concat(probes(written, "dst", dst), probes(read, "rgb", rgb))
	}},
	{"LBP", func(s *kern.Set) (func(), []probe) {
		dst, above, middle, below := row[uint64](), row[uint8](), make([]uint8, racyN+2), row[uint8]()
		return func() { s.LBP(dst, above, middle, below) }, slices.Concat(
			probes(written, "dst", dst), probes(read, "above", above), probes(read, "row", middle), probes(read, "below", below))
	}},
	{"MinMax", func(s *kern.Set) (func(), []probe) {
		src := row[uint8]()
		return func() { s.MinMax(src) }, probes(read, "src", src)
	}},
}

func racyLevels() *kern.Levels {
	return &kern.Levels{Scale: row[float32](), Shift: row[float32](), Rest: row[float32](), Table: row[float32](), List: row[int32]()}
}

func racyLevelProbes(l *kern.Levels) []probe {
	return slices.Concat(probes(read, "scale", l.Scale), probes(read, "shift", l.Shift), probes(read, "rest", l.Rest), probes(read, "table", l.Table), probes(read, "list", l.List))
}

func racyRandom() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// racyPool has a word between pixels that are written, and one before the first
// tap.
func racyPool[T any]() (dst, src []T, p *kern.Pool) {
	p = &kern.Pool{Taps: []int{4, 1, 30, 9}, Values: 1, Step: 2, DstStep: 2, Pixels: racyPixels}
	return make([]T, 2*racyPixels-1), make([]T, 2*(racyPixels-1)+31), p
}

func racyPoolProbes[T any](dst, src []T) []probe {
	return slices.Concat(probes(written, "dst", dst), probes(alone, "between pixels", dst[1:2]),
		probes(read, "src", src[1:]), probes(alone, "before the first tap", src[:1]))
}

// racyPairs calls the kernels of each Pair.
func racyPairs() (calls []racyCall) {
	for p := range kern.NumPairs {
		calls = append(calls, racyCall{"Pairs.All", func(s *kern.Set) (func(), []probe) {
			dst, a, b := row[float32](), row[float32](), row[float32]()
			return func() { s.Pairs[p].All(dst, a, b) }, slices.Concat(probes(written, "dst", dst), probes(read, "a", a), probes(read, "b", b))
		}}, racyCall{"Pairs.Each", func(s *kern.Set) (func(), []probe) {
			dst, a, b := row[float32](), row[float32](), row[float32]()[:3]
			n := len(dst) / len(b)
			return func() { s.Pairs[p].Each(dst, a, b, n) }, slices.Concat(
				probes(written, "dst", dst[:n*len(b)]), probes(read, "a", a[:n*len(b)]), probes(read, "b", b))
		}}, racyCall{"Pairs.Rows", func(s *kern.Set) (func(), []probe) {
			b := row[float32]()[:7]
			dst, a := make([]float32, 3*len(b)), make([]float32, 3*len(b))
			return func() { s.Pairs[p].Rows(dst, a, b) }, slices.Concat(probes(written, "dst", dst), probes(read, "a", a), probes(read, "b", b))
		}})
	}
	return calls
}
