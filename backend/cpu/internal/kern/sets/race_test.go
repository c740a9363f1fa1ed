//go:build race

package sets

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// A probe is a byte that a call of a kernel writes, reads or leaves alone.
type probe struct {
	what string
	at   *uint8
	does access
}

type access string

const (
	written access = "written"
	read    access = "read"
	alone   access = "left alone"
)

// probes are the first and the last byte of a slice.
func probes[T any](does access, what string, s []T) []probe {
	first := (*uint8)(unsafe.Pointer(&s[0]))
	last := (*uint8)(unsafe.Add(unsafe.Pointer(first), len(s)*int(unsafe.Sizeof(s[0]))-1))
	return []probe{{what + ", first byte", first, does}, {what + ", last byte", last, does}}
}

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

// A racyCall makes a call of one kernel on memory of its own. It returns nil
// where the Set has no such kernel.
type racyCall struct {
	field string // of Set or Wide, or a method of WideFilter
	make  func(s *kern.Set) (call func(), probed []probe)
}

var racyCalls = slices.Concat([]racyCall{
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
	{"Mul", func(s *kern.Set) (func(), []probe) {
		dst, a, b := row[float32](), row[float32](), row[float32]()
		return func() { s.Mul(dst, a, b) }, slices.Concat(probes(written, "dst", dst), probes(read, "a", a), probes(read, "b", b))
	}},
	{"Min", func(s *kern.Set) (func(), []probe) {
		dst, a, b := row[float32](), row[float32](), row[float32]()
		return func() { s.Min(dst, a, b) }, slices.Concat(probes(written, "dst", dst), probes(read, "a", a), probes(read, "b", b))
	}},
	{"Max", func(s *kern.Set) (func(), []probe) {
		dst, a, b := row[float32](), row[float32](), row[float32]()
		return func() { s.Max(dst, a, b) }, slices.Concat(probes(written, "dst", dst), probes(read, "a", a), probes(read, "b", b))
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
	{"Expand", func(s *kern.Set) (func(), []probe) {
		if s.Wide == nil || s.Wide.Expand == nil {
			return nil, nil
		}
		dst, src := make([]uint8, 8*racyN), row[uint32]()
		return func() { s.Wide.Expand(dst, src) }, slices.Concat(probes(written, "dst", dst), probes(read, "src", src))
	}},
	{"Parities", func(s *kern.Set) (func(), []probe) {
		if s.Wide == nil || s.Wide.Parities == nil {
			return nil, nil
		}
		dst := row[uint32]()
		return func() { s.Wide.Parities(dst) }, probes(written, "dst", dst)
	}},
	{"Patches", func(s *kern.Set) (func(), []probe) {
		if s.Wide == nil || s.Wide.Patches == nil {
			return nil, nil
		}
		const rows, run, step, pixels = 3, 12, 20, 5
		at := make([]uint32, pixels)
		for p := range at {
			at[p] = uint32(8 * p)
		}
		dst, src := make([]uint8, pixels*40+60), make([]uint8, 4+8*(pixels-1)+2*step+run)
		return func() { s.Wide.Patches(dst, unsafe.Pointer(&src[4]), at, rows, run, step) },
			slices.Concat(probes(written, "dst", dst[:pixels*40]), probes(read, "src", src), probes(read, "at", at))
	}},
}, racyConvs("bits"), racyConvs("carries"), racyConvs("bytes"), racyConvs("8-bit weights"), racyConvs("16-bit weights"))

func racyLevels() *kern.Levels {
	return &kern.Levels{Scale: row[float32](), Shift: row[float32](), Table: row[float32](), List: row[int32]()}
}

func racyLevelProbes(l *kern.Levels) []probe {
	return slices.Concat(probes(read, "scale", l.Scale), probes(read, "shift", l.Shift), probes(read, "table", l.Table), probes(read, "list", l.List))
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

// racyConvs calls the wide kernels of bits, of bytes, or of those with weights of 8 or 16 bits. There are two classes of
// pixels.
func racyConvs(kind string) []racyCall {
	const outputs, pixels, rows, taps, step = 64, 8, 3, 96, 2
	conv := func(method string, size, alike int, call func(w *kern.WideFilter, j *kern.ConvJob)) racyCall {
		return racyCall{method + " of " + kind, func(s *kern.Set) (func(), []probe) {
			if s.Wide == nil {
				return nil, nil
			}
			var w *kern.WideFilter
			switch {
			case kind == "bits":
				w = s.Wide.PackBits(randomBits(racyRandom(), outputs*rows, taps), outputs, rows, taps)
			case kind == "carries":
				if s.Wide.PackCarries != nil {
					w = s.Wide.PackCarries(randomBits(racyRandom(), outputs*rows, taps), outputs, rows, taps, 1)
				}
				if w == nil {
					return nil, nil
				}
			case kind == "bytes":
				w = s.Wide.PackBytes(randomBits(racyRandom(), outputs*rows, taps), outputs, rows, taps)
			case s.Wide.PackInt8 == nil || method == "Conv" || method == "ConvPooled":
				return nil, nil
			case kind == "16-bit weights":
				w = s.Wide.PackInt16(slices.Repeat([]int16{32639}, outputs*rows*taps), outputs, rows, taps)
			default: // the largest, which have kernels of their own
				w = s.Wide.PackInt8(slices.Repeat([]int8{127}, outputs*rows*taps), outputs, rows, taps, 255)
			}
			if method == "ConvPooled" && !w.Pools() || method == "ConvFloats" && !w.EndsFloats() || method == "ConvLevels" && !w.EndsLevels() {
				return nil, nil
			}
			runs := rows
			if kind == "carries" {
				runs = 1
			}
			patch := runs * w.RunBytes
			src, at, class := make([]uint8, pixels*patch), make([]uint32, pixels), make([]uint32, pixels)
			for p := range pixels {
				at[p], class[p] = uint32(p*patch), uint32(p/alike*4*kern.BlockOutputs)
			}
			table := make([]int32, 2*kern.BlockOutputs)
			used := table[:class[pixels-1]/4+kern.BlockOutputs]
			dst := make([]uint8, (pixels-1)*step*size+size)
			between := dst[size : step*size]
			if method == "ConvPooled" {
				dst = dst[:(pixels/4-1)*step*size+size]
			}
			j := &kern.ConvJob{Dst: unsafe.Pointer(&dst[0]), DstStep: uintptr(step * size), Src: unsafe.Pointer(&src[0]),
				At: &at[0], Class: &class[0], Table: unsafe.Pointer(&table[0]), Pixels: pixels}
			all := slices.Concat(probes(written, "dst", dst), probes(alone, "between pixels", between),
				probes(read, "patches", src), probes(read, "at", at), probes(read, "class", class),
				probes(read, "table", used), probes(read, "first weights", w.Piece(0, 0, 0)),
				probes(read, "last weights", w.Piece(outputs-1, runs-1, w.Pieces()-1)))
			if len(used) < len(table) {
				all = append(all, probes(alone, "another class", table[kern.BlockOutputs:])...)
			}
			if method == "ConvFloats" || method == "ConvLevels" {
				end := kern.End{Scale: make([]float32, outputs), Shift: make([]float32, outputs), Activation: kern.Activation{Slope: make([]float32, outputs)}}
				added := make([]uint8, len(dst))
				all = slices.Concat(all, probes(read, "scale", end.Scale), probes(read, "shift", end.Shift), probes(read, "slope", end.Slope))
				if method == "ConvLevels" {
					l := &kern.Levels{Scale: make([]float32, outputs), Shift: make([]float32, outputs)}
					return func() { w.ConvLevels(j, 0, w.RunBytes, &end, l) },
						slices.Concat(all, probes(read, "scale of levels", l.Scale), probes(read, "shift of levels", l.Shift))
				}
				all = append(all, probes(read, "added", added)...)
				return func() { w.ConvFloats(j, 0, w.RunBytes, &end, unsafe.Pointer(&added[0])) }, all
			}
			return func() { call(w, j) }, all
		}}
	}
	return []racyCall{
		conv("ConvFloats", 4*outputs, 4, nil),
		conv("ConvLevels", outputs, 4, nil),
		conv("Conv", 8, 4, func(w *kern.WideFilter, j *kern.ConvJob) { w.Conv(j, 0, w.RunBytes) }),
		conv("ConvSums", 4*outputs, 4, func(w *kern.WideFilter, j *kern.ConvJob) { w.ConvSums(j, 0, w.RunBytes) }),
		conv("ConvPooled", 8, pixels, func(w *kern.WideFilter, j *kern.ConvJob) { w.ConvPooled(j, 0, w.RunBytes, true) }),
	}
}

// racyEnv makes TestRaces race.
const racyEnv = "BCNN_TEST_RACES"

// TestRaces has kernels race with another goroutine, in a process of its own,
// for all memory that they write or read, and expects a report each time, and
// none where they leave memory alone.
func TestRaces(t *testing.T) {
	if os.Getenv(racyEnv) != "" {
		race()
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestRaces$")
	cmd.Env = append(os.Environ(), racyEnv+"=1",
		// The race detector reports nothing twice: neither equal stacks, which can
		// be changed, nor equal addresses, so memory is never used again.
		"GORACE=suppress_equal_stacks=0", "GOGC=off")
	out, _ := cmd.CombinedOutput() // it fails, because of the races
	reports := strings.Split(string(out), racyHead)[1:]
	for _, s := range sets {
		for _, c := range racyCalls {
			_, all := c.make(s)
			for _, p := range all {
				require.NotEmpty(t, reports, "the process ended early:\n%s", out)
				name, report, _ := strings.Cut(reports[0], "\n")
				require.Equal(t, racyName(s, &c, &p), name)
				require.Equal(t, p.does != alone, strings.Contains(report, "DATA RACE"), "%s:\n%s", name, report)
				reports = reports[1:]
			}
		}
	}
	require.Empty(t, reports)
}

const racyHead = "probe of "

func racyName(s *kern.Set, c *racyCall, p *probe) string {
	return fmt.Sprintf("%s, %s: %s, %s", s.ISA, c.field, p.what, p.does)
}

func race() {
	for _, s := range sets {
		for _, c := range racyCalls {
			for i := 0; ; i++ {
				call, all := c.make(s)
				if i >= len(all) {
					break
				}
				p := all[i]
				fmt.Fprintln(os.Stderr, racyHead+racyName(s, &c, &p))
				value := *p.at
				unordered(func() {
					if p.does == written {
						value = *p.at
					} else {
						store(p.at, value)
					}
				}, call)
			}
		}
	}
}

//go:noinline
func store(p *uint8, v uint8) { *p = v }

// unordered runs one function after the other, in goroutines that nothing
// orders as far as the race detector can see. They end together, because it
// takes the accesses of a goroutine that has ended for those of one that has
// started since.
func unordered(first, second func()) {
	var turn turn
	done, end := make(chan bool), make(chan bool)
	go func() {
		first()
		turn.pass()
		done <- true
		<-end
	}()
	go func() {
		for !turn.passed() {
			runtime.Gosched()
		}
		second()
		done <- true
		<-end
	}()
	<-done
	<-done
	close(end)
}

// turn is what the race detector does not see.
type turn bool

//go:norace
//go:noinline
func (t *turn) pass() { *t = true }

//go:norace
//go:noinline
func (t *turn) passed() bool { return bool(*t) }

// TestRacesOfAll is that TestRaces calls all functions of Set and Wide that run
// after Compile.
func TestRacesOfAll(t *testing.T) {
	called := map[string]bool{"PackBits": true, "PackBytes": true, "PackInt8": true, "PackInt16": true, "PackCarries": true, "Peak": true, "PeakFMA": true, "Columns": true}
	for _, c := range racyCalls {
		called[c.field] = true
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[kern.Set](), reflect.TypeFor[kern.Wide]()} {
		for i := range typ.NumField() {
			if f := typ.Field(i); f.Type.Kind() == reflect.Func {
				require.True(t, called[f.Name], "no call of %s.%s", typ.Name(), f.Name)
			}
		}
	}
}
