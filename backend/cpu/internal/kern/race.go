//go:build race

package kern

import (
	mathbits "math/bits"
	"runtime"
	"slices"
	"unsafe"

	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/internal/num"
)

// The race detector does not see what assembly does. So before every call it is told what the
// kernel reads and writes, according to the doc comments of Set.

// Annotated returns a Set whose functions tell the race detector.
func Annotated(set *Set) *Set {
	s := *set
	annotateSums(&s, set)
	annotateElementwise(&s, set)
	annotatePools(&s, set)
	annotateSigns(&s, set)
	annotateImages(&s, set)
	if set.Matrix != nil {
		matrix := *set.Matrix
		s.Matrix = &matrix
		matrix.LinesOfBits = func(dst []uint8, src []uint64, at *LineRows) {
			annotateLines(dst, unsafe.Pointer(unsafe.SliceData(src)), at, at.Planes, 8)
			set.Matrix.LinesOfBits(dst, src, at)
		}
		matrix.LinesOfRuns = func(dst, src []uint8, at *RunRows) {
			writes(dst[:at.Rows*at.Pixels*LineBytes])
			reads(at.Runs)
			for r := range at.Rows {
				for p := range at.Pixels {
					for _, run := range at.Runs {
						from, to := mathbits.TrailingZeros64(run.Mask), mathbits.Len64(run.Mask)
						reads(src[r*at.Row+p*at.Step+run.Offset+from:][:to-from])
					}
				}
			}
			set.Matrix.LinesOfRuns(dst, src, at)
		}
		matrix.LinesOfBytes = func(dst, src []uint8, at *LineRows) {
			annotateLines(dst, unsafe.Pointer(unsafe.SliceData(src)), at, 1, mathbits.Len64(at.Mask))
			set.Matrix.LinesOfBytes(dst, src, at)
		}
	}
	if set.Wide != nil {
		wide := *set.Wide
		s.Wide = &wide
		if parities := wide.Parities; parities != nil {
			wide.Parities = func(dst []uint32) {
				writes(dst)
				parities(dst)
			}
		}
		if patches := wide.Patches; patches != nil {
			wide.Patches = func(dst []uint8, src unsafe.Pointer, at []uint32, rows, run, step int) {
				writes(dst[:len(at)*num.RoundUp(rows*run, 8)])
				reads(at)
				first, last := slices.Min(at), slices.Max(at)
				runtime.RaceReadRange(unsafe.Add(src, int(first)-4), int(last-first)+(rows-1)*step+run+4)
				patches(dst, src, at, rows, run, step)
			}
		}
		for _, f := range []*func(dst []uint8, src []uint32){&wide.Expand, &wide.ExpandBytes} {
			if expand := *f; expand != nil {
				*f = func(dst []uint8, src []uint32) {
					writes(dst[:8*len(src)])
					reads(src)
					expand(dst, src)
				}
			}
		}
	}
	return &s
}

func annotateSums(s, set *Set) {
	s.DotBits = func(dst []int32, stride int, src []uint64, at *Patches, w *DotBitsWeights, first, n int) {
		outputs := num.RoundUp(n, set.Block)
		writeRows(dst, at.Pixels, stride, outputs)
		readPatches(src, at)
		reads(w.Data[first*w.Words:][:outputs*w.Words])
		set.DotBits(dst, stride, src, at, w, first, n)
	}
	s.DotBytes = func(dst []int32, stride int, src []uint8, at *Patches, w *DotBytesWeights, first, n int) {
		writeRows(dst, at.Pixels, stride, num.RoundUp(n, set.Block))
		readPatches(src, at)
		reads(w.Data)
		reads(w.Fix)
		set.DotBytes(dst, stride, src, at, w, first, n)
	}
	s.DotWords = func(dst []int32, stride int, src []uint8, at *Patches, w *DotWordsWeights, first, n int) {
		writeRows(dst, at.Pixels, stride, num.RoundUp(n, set.Block))
		readPatches(src, at)
		reads(w.Data)
		reads(w.Fix)
		set.DotWords(dst, stride, src, at, w, first, n)
	}
	s.FMAPixels = func(dst []float32, stride int, src []float32, at *FloatPatches, w *FloatWeights, first, n int, end End) {
		readEnd(&end, n)
		writeRows(dst, at.Pixels, stride, n)
		readFloatPatches(src, at, at.RunLen)
		readFloatWeights(at, w, first, n)
		set.FMAPixels(dst, stride, src, at, w, first, n, end)
	}
	s.FMAEach = func(dst []float32, stride int, src []float32, at *FloatPatches, w *FloatWeights, end End) {
		readEnd(&end, w.Outputs)
		writeRows(dst, at.Pixels, stride, w.Outputs)
		readFloatPatches(src, at, w.Outputs)
		readFloatWeights(at, w, 0, w.Outputs)
		set.FMAEach(dst, stride, src, at, w, end)
	}
	if set.FMAGroups != nil {
		s.FMAGroups = func(dst []float32, stride int, src []float32, at *FloatPatches, w *FloatWeights, n, outs int, end End) {
			readEnd(&end, w.Outputs)
			writeRows(dst, at.Pixels, stride, w.Outputs)
			readFloatPatches(src, at, w.Outputs/outs*n)
			readFloatWeights(at, w, 0, w.Outputs)
			set.FMAGroups(dst, stride, src, at, w, n, outs, end)
		}
	}
	if set.FMAColumns == nil {
		return
	}
	s.FMAColumns = func(dst, src []float32, at *FloatColumns, w *ColumnWeights, end End) {
		readEnd(&end, w.Channels)
		for y := range at.Height() {
			writeRows(dst[y*at.DstRow:], at.Pixels, at.DstStep, w.Channels)
		}
		for y := range at.Rows {
			readRows(src[y*at.RowStep:], at.Width(), at.Step, w.Channels)
		}
		reads(w.Data)
		reads(w.Bias[:w.Channels])
		set.FMAColumns(dst, src, at, w, end)
	}
}

func annotateElementwise(s, set *Set) {
	s.Threshold = func(dst []uint64, step int, sums []int32, stride int, t []int32, pixels int) {
		writeRows(dst, pixels, step, bits.Words(len(t)))
		readRows(sums, pixels, stride, len(t))
		reads(t)
		set.Threshold(dst, step, sums, stride, t, pixels)
	}
	if set.ThresholdPlanes != nil {
		s.ThresholdPlanes = func(dst []uint64, step, plane int, values []float32, stride int, t []float32, pixels int) {
			n := len(t) / 3
			writeRows(dst, pixels, step, bits.Words(n))
			writeRows(dst[plane:], pixels, step, bits.Words(n))
			readRows(values, pixels, stride, n)
			reads(t)
			set.ThresholdPlanes(dst, step, plane, values, stride, t, pixels)
		}
	}
	s.ThresholdFloat = func(dst []uint64, step int, sums []float32, stride int, t []float32, pixels int) {
		writeRows(dst, pixels, step, bits.Words(len(t)))
		readRows(sums, pixels, stride, len(t))
		reads(t)
		set.ThresholdFloat(dst, step, sums, stride, t, pixels)
	}
	s.AddTwice = func(dst, src []int32) {
		writes(dst[:len(src)])
		reads(src)
		set.AddTwice(dst, src)
	}
	s.Or = func(dst, src []uint64) {
		writes(dst[:len(src)])
		reads(src)
		set.Or(dst, src)
	}
	s.Scale = func(dst []float32, stride int, sums []int32, step, n, rows int, end End) {
		writeRows(dst, rows, stride, n)
		readRows(sums, rows, step, n)
		readEnd(&end, n)
		set.Scale(dst, stride, sums, step, n, rows, end)
	}
	if set.ScaleAdd != nil {
		s.ScaleAdd = func(dst []float32, stride int, sums []int32, step, n, rows int, end, then End, added []float32) {
			writeRows(dst, rows, stride, n)
			readRows(sums, rows, step, n)
			readRows(added, rows, stride, n)
			readEnd(&end, n)
			readEnd(&then, n)
			set.ScaleAdd(dst, stride, sums, step, n, rows, end, then, added)
		}
	}
	s.ScaleFloat = func(dst []float32, stride int, sums []float32, step, n, rows int, end End) {
		writeRows(dst, rows, stride, n)
		readRows(sums, rows, step, n)
		readEnd(&end, n)
		set.ScaleFloat(dst, stride, sums, step, n, rows, end)
	}
	s.ScaleBytes = func(dst []float32, src []uint8, end End) {
		writes(dst)
		reads(src[:len(dst)])
		readEnd(&end, 2*BytePeriod)
		set.ScaleBytes(dst, src, end)
	}
	s.Add = func(dst, a, b []float32, act Activation) {
		writes(dst)
		reads(a[:len(dst)])
		reads(b[:len(dst)])
		readEnd(&End{Activation: act}, len(dst))
		set.Add(dst, a, b, act)
	}
	s.LevelBytes = func(dst []uint8, src []float32, l *Levels) {
		writes(dst[:len(src)])
		readLevels(src, l)
		set.LevelBytes(dst, src, l)
	}
	s.LookUp = func(dst []float32, src []uint8, t *FloatTables) {
		writes(dst)
		reads(src[:len(dst)])
		reads(t.Values)
		reads(t.Bytes)
		set.LookUp(dst, src, t)
	}
	s.LevelFloats = func(dst, src []float32, l *Levels, low float32) {
		writes(dst[:len(src)])
		readLevels(src, l)
		set.LevelFloats(dst, src, l, low)
	}
	for p, set := range set.Pairs {
		s.Pairs[p] = PairKernels{
			All: func(dst, a, b []float32) {
				writes(dst)
				reads(a[:len(dst)])
				reads(b[:len(dst)])
				set.All(dst, a, b)
			},
			Each: func(dst, a, b []float32, n int) {
				writes(dst[:len(b)*n])
				reads(a[:len(b)*n])
				reads(b)
				set.Each(dst, a, b, n)
			},
			Rows: func(dst, a, b []float32) {
				writes(dst)
				reads(a[:len(dst)])
				reads(b)
				set.Rows(dst, a, b)
			},
		}
	}
	s.Largest = func(dst, src []float32, n int) {
		writes(dst)
		reads(src[:n*len(dst)])
		set.Largest(dst, src, n)
	}
	s.Function = func(dst, src []float32, f *Function) {
		writes(dst)
		reads(src[:len(dst)])
		set.Function(dst, src, f)
	}
	s.Blend = func(dst, src []float32, rows, cols []BlendTap, n, pixels int) {
		writes(dst[:n*pixels])
		reads(rows)
		reads(cols)
		for i, col := range cols {
			for _, row := range rows {
				if at, _ := row.Value(col); i == 0 || col != cols[i-1] {
					reads(src[at:][:n])
				}
			}
		}
		set.Blend(dst, src, rows, cols, n, pixels)
	}
	if set.BlendRows != nil {
		s.BlendRows = func(dst, src []float32, rows []BlendTap, cols *BlendColumns) {
			writes(dst)
			reads(rows)
			reads(cols.Table)
			reads(cols.Places)
			for _, row := range rows[:cols.Taps] {
				reads(src[row.At/4:][:cols.Width])
			}
			set.BlendRows(dst, src, rows, cols)
		}
	}
	s.Pick = func(dst, src []float32, picks *Picks, pixels int) {
		writes(dst[:pixels*len(picks.Index)])
		reads(src[:pixels*picks.Channels])
		set.Pick(dst, src, picks, pixels)
	}
	s.Choose = func(dst []float32, src []uint64, one, zero []float32) {
		writes(dst)
		reads(src[:bits.Words(len(dst))])
		reads(one[:min(len(one), len(dst))])
		reads(zero[:min(len(zero), len(dst))])
		set.Choose(dst, src, one, zero)
	}
}

func annotatePools(s, set *Set) {
	s.OrPool = func(dst, src []uint64, p *Pool) {
		annotatePool(dst, src, p)
		set.OrPool(dst, src, p)
	}
	s.MaxPool = func(dst, src []float32, p *Pool) {
		annotatePool(dst, src, p)
		set.MaxPool(dst, src, p)
	}
	s.LookUpBytes = func(dst, src []uint8, t *ByteTable) {
		writes(dst)
		reads(src[:len(dst)])
		set.LookUpBytes(dst, src, t)
	}
	s.MaxPoolBytes = func(dst, src []uint8, p *Pool) {
		annotatePool(dst, src, p)
		set.MaxPoolBytes(dst, src, p)
	}
	s.Mean = func(dst, src []float32, at *FloatPatches, n int, taps, y float32) {
		writes(dst[:at.Pixels*n])
		readFloatPatches(src, at, n)
		set.Mean(dst, src, at, n, taps, y)
	}
}

func annotateSigns(s, set *Set) {
	s.MeanSigns = func(dst []float32, src []uint64, n int, p *Pool, divisor, y float32) {
		writes(dst[:p.Pixels*n])
		for _, t := range p.Taps {
			readRows(src[t:], p.Pixels, p.Step, p.Values)
		}
		set.MeanSigns(dst, src, n, p, divisor, y)
	}
}

func annotatePool[T any](dst, src []T, p *Pool) {
	if len(p.Taps) > 0 {
		writeRows(dst, p.Pixels, p.DstStep, p.Values)
	}
	for _, t := range p.Taps {
		if p.Pixels > 0 {
			readRows(src[t:], p.Pixels, p.Step, p.Values)
		}
	}
}

func annotateImages(s, set *Set) {
	s.Narrow = func(dst []uint32, src []uint64) {
		writes(dst)
		reads(src[:len(dst)])
		set.Narrow(dst, src)
	}
	s.Join = func(dst, src []uint32, taps, step, shift int) {
		writes(dst)
		readRows(src, taps, step, len(dst))
		set.Join(dst, src, taps, step, shift)
	}
	s.ThresholdBytes = func(dst []uint64, src, t []uint8) {
		writes(dst[:bits.Words(len(src))])
		reads(src)
		reads(t[:min(len(t), num.RoundUp(len(src), bits.WordBits))])
		set.ThresholdBytes(dst, src, t)
	}
	s.Floats = func(dst []float32, src []uint8) {
		writes(dst)
		reads(src[:len(dst)])
		set.Floats(dst, src)
	}
	s.Spread = func(dst, src []uint64, n int, flip uint64) {
		writes(dst)
		reads(src)
		set.Spread(dst, src, n, flip)
	}
	s.Luma = func(dst, rgb []uint8) {
		writes(dst)
		reads(rgb[:3*len(dst)])
		set.Luma(dst, rgb)
	}
	s.LBP = func(dst []uint64, above, row, below []uint8) {
		writes(dst)
		reads(above[:len(dst)])
		reads(row[:len(dst)+2])
		reads(below[:len(dst)])
		set.LBP(dst, above, row, below)
	}
	s.MinMax = func(src []uint8) (lowest, highest uint8) {
		reads(src)
		return set.MinMax(src)
	}
}

// annotateConv is for a call of a wide kernel that writes size bytes for every group of pixels. It
// marks the whole input from the first patch to the end of the last one, which the caller owns.
func annotateConv(j *ConvJob, w *WideFilter, b *filterBlock, size, group int) {
	at, class := unsafe.Slice(j.At, j.Pixels), unsafe.Slice(j.Class, j.Pixels)
	if len(at) == 0 {
		return
	}
	reads(at)
	reads(class)
	first, last := at[0], at[0]
	for p, a := range at {
		first, last = min(first, a), max(last, a)
		if p == 0 || class[p] != class[p-1] {
			runtime.RaceReadRange(unsafe.Add(j.Table, class[p]), 4*b.Outputs)
		}
		if p%group == 0 {
			runtime.RaceWriteRange(unsafe.Add(j.Dst, uintptr(p/group)*j.DstStep), size)
		}
	}
	patch := j.rows*j.run + (j.rows-1)*j.skip
	runtime.RaceReadRange(unsafe.Add(j.Src, first), int(uintptr(last-first)+patch))
	reads(w.data[b.offset:][:b.size])
}

// annotateEnd marks what ConvFloats reads in addition.
func annotateEnd(j *ConvJob, b *filterBlock, end *End, added unsafe.Pointer) {
	for _, row := range [][]float32{end.Scale, end.Shift, end.Slope} {
		if row != nil {
			reads(row[:b.Outputs])
		}
	}
	for p := range j.Pixels {
		if added != nil {
			runtime.RaceReadRange(unsafe.Add(added, p*j.DstStep), 4*b.Outputs)
		}
	}
}

// annotateLevels marks what ConvLevels reads in addition.
func annotateLevels(b *filterBlock, l *Levels) {
	reads(l.Scale[:b.Outputs])
	reads(l.Shift[:b.Outputs])
	if l.Rest != nil {
		reads(l.Rest[:b.Outputs])
	}
}

// annotateLines marks what LinesOfBits and LinesOfBytes read, size bytes of each pixel and plane, and
// that they write lines.
func annotateLines(dst []uint8, src unsafe.Pointer, at *LineRows, planes, size int) {
	writes(dst[:at.Rows*(at.Before+at.Inside+at.After)*LineBytes])
	for r := range at.Rows {
		for p := range at.Inside {
			for j := range planes {
				runtime.RaceReadRange(unsafe.Add(src, r*at.Row+p*at.Step+j*at.Plane), size)
			}
		}
	}
}

// annotateMatrix marks what a MatrixJob reads, with what is added, and that it writes size bytes for a
// pixel and panel.
func annotateMatrix(j *MatrixJob, f *MatrixFilter, p *MatrixPart, size int, added unsafe.Pointer) {
	reads(p.Taps)
	reads(p.Blocks)
	stride := f.Steps * f.size
	reads(f.data[p.Panel*stride:][:p.Panels*stride])
	reads(f.values)
	writes(p.Memory)
	for i := range p.Blocks {
		b := &p.Blocks[i]
		for t, line := range b.Lines[:b.Tiles] {
			rows := p.Rows
			if t == int(b.Tiles)-1 {
				rows = p.Last
			}
			for _, tap := range p.Taps {
				for r := range rows {
					runtime.RaceReadRange(unsafe.Add(j.Src, int(line+tap)+r*p.Line), LineBytes)
				}
			}
		}
		pixels := unsafe.Slice(j.Pixels, b.First+b.Pixels)[b.First:]
		reads(pixels)
		for k, pixel := range pixels {
			runtime.RaceReadRange(unsafe.Add(j.Table, pixel.Table), 64*p.Panels)
			at := (uintptr(b.First)+uintptr(k))*j.DstStep - j.Before
			runtime.RaceWriteRange(unsafe.Add(j.Dst, at), size*p.Panels)
			if added != nil {
				runtime.RaceReadRange(unsafe.Add(added, at), size*p.Panels)
			}
		}
	}
	for _, row := range []unsafe.Pointer{j.scale, j.shift, j.slope, j.level, j.move, j.rest, j.scale2, j.shift2,
		j.fakeLevel, j.fakeRest, j.fakeMove, j.fakeScale, j.fakeShift} {
		if row != nil && size > 2 {
			runtime.RaceReadRange(row, 64*p.Panels)
		}
	}
}

// annotatePlanes is annotateConv for planes.
func annotatePlanes(j *ConvJob, w *WideFilter, b *filterBlock, in, out int) {
	if out == 0 {
		annotateConv(j, w, b, 4*b.Outputs, in)
		return
	}
	annotateConv(j, w, b, 8, in)
	for p, class := range unsafe.Slice(j.Class, j.Pixels) {
		for k := range 1<<out - 1 {
			runtime.RaceReadRange(unsafe.Add(j.Table, uintptr(class)+uintptr(k)*j.Next), 4*b.Outputs)
		}
		for k := range out {
			runtime.RaceWriteRange(unsafe.Add(j.Dst, uintptr(p/in)*j.DstStep+uintptr(k)*j.DstPlane), 8)
		}
	}
}

// readPatches marks everything from the first patch to the end of the last one.
func readPatches[T any](src []T, at *Patches) {
	if at.Pixels > 0 {
		reads(src[:(at.Pixels-1)*at.Step+(at.Rows-1)*at.RowStep+at.RowLen])
	}
}

func readEnd(end *End, n int) {
	if end.Scale != nil {
		reads(end.Scale[:n])
		reads(end.Shift[:n])
	}
	if end.Slope != nil {
		reads(end.Slope[:n])
	}
}

func readLevels(src []float32, l *Levels) {
	n := min(len(src), len(l.Scale))
	reads(src)
	reads(l.Scale[:n])
	reads(l.Shift[:n])
	if l.Rest != nil {
		reads(l.Rest[:n])
	}
	if l.Table != nil {
		reads(l.List[:n])
		reads(l.Table)
	}
}

func readFloatPatches(src []float32, at *FloatPatches, values int) {
	reads(at.Runs)
	for _, r := range at.Runs {
		readRows(src[r.Src:], at.Pixels, at.Step, values)
	}
}

func readFloatWeights(at *FloatPatches, w *FloatWeights, first, n int) {
	reads(w.Bias[first:][:n])
	for o := first; o < first+n; o += w.block {
		weights, width, _ := w.Block(o)
		for _, r := range at.Runs {
			reads(weights[r.Tap*width:][:at.RunLen*width])
		}
	}
}

// readRows marks n rows of values, step apart.
func readRows[T any](s []T, n, step, values int) {
	for i := range n {
		reads(s[i*step:][:values])
	}
}

func writeRows[T any](s []T, n, step, values int) {
	for i := range n {
		writes(s[i*step:][:values])
	}
}

func reads[T any](s []T) {
	if len(s) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(&s[0]), len(s)*int(unsafe.Sizeof(s[0])))
	}
}

func writes[T any](s []T) {
	if len(s) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(&s[0]), len(s)*int(unsafe.Sizeof(s[0])))
	}
}
