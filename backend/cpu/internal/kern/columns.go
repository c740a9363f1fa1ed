package kern

import "unsafe"

// FloatColumns says where the pixels of a depthwise convolution lie whose windows of
// Taps × Taps move by a tap: columns of pixels, that of pixel (y, x) at index
// y·DstRow + x·DstStep, and the rows of the input that their windows reach, the value
// (y, x) at index y·RowStep + x·Step, where 0 is the first column that is inside of the
// image.
type FloatColumns struct {
	Taps            int
	Pixels          int // columns of the output
	Rows            int // of the input
	Step, RowStep   int
	DstStep, DstRow int
	// What of the windows of the first and the last row and column is outside of the
	// image, Taps/2 rows and columns at most: the sums leave those taps out.
	Above, Below, Left, Right int

	job ColumnsJob // here, because what function values get is on the heap
}

// Height is the number of rows of the output.
func (c *FloatColumns) Height() int { return c.Rows + c.Above + c.Below - (c.Taps - 1) }

// Width is the number of columns of the input.
func (c *FloatColumns) Width() int { return c.Pixels - c.Left - c.Right + c.Taps - 1 }

// ColumnWeights are the weights and biases of the channels of a depthwise convolution,
// laid out for the FMAColumns of a Set: [vector][tap][channel]. Vectors are whole, so
// the last one has some of the channels of the one before it where channels are left.
type ColumnWeights struct {
	Channels, Taps int
	Bias           []float32
	Data           []float32
	lanes          int
}

// ColumnWeightsLen is the number of weights, with those that are there twice.
func ColumnWeightsLen(set *Set, channels, taps int) int {
	return FloatWeightsLen(set, channels, taps)
}

// NewColumnWeights returns weights of 0 for a Set, of as many channels as its vectors
// have at least.
func NewColumnWeights(set *Set, channels, taps int, bias []float32) *ColumnWeights {
	return &ColumnWeights{Channels: channels, Taps: taps, Bias: bias, Data: alignedFloats(ColumnWeightsLen(set, channels, taps)), lanes: set.FloatLanes}
}

// last is the first channel of the last vector.
func (w *ColumnWeights) last() int { return w.Channels - w.lanes }

// Put sets the weights of the taps of a channel.
func (w *ColumnWeights) Put(channel int, taps []float32) {
	for v := channel / w.lanes; v*w.lanes*w.Taps < len(w.Data); v++ {
		lane := channel - min(v*w.lanes, w.last())
		if lane < 0 {
			return
		}
		if lane >= w.lanes {
			continue
		}
		for i, tap := range taps {
			w.Data[(v*w.Taps+i)*w.lanes+lane] = tap
		}
	}
}

// ColumnsJob is one call of an assembly kernel behind FMAColumns: some columns of
// pixels, and all channels. The kernels know the places of the fields.
type ColumnsJob struct {
	FMAJob
	dstRow, srcRow    uintptr // bytes
	last              uintptr // bytes to the first of the channels that are computed last
	rows, skip, steps int     // of the input; rows before the first that is an output; all that are computed
	left, right       int
}

// ColumnKernels are the kernels behind FMAColumns for some windows: Kernels[i] does
// i + 1 columns, a vector of channels at a time, and Wide[i] so many of WideChannels.
type ColumnKernels struct {
	Kernels, Wide []func(job *uint8)
	WideChannels  int
}

// Far reports whether pixels so many values apart fall into few sets of lines of the
// first-level cache. Stores to one of them wait for each other there, so each pixel should
// have several lines at a time.
func Far(stride int) bool { return stride%512 == 0 }

// Run calls kernels for all columns.
func (k *ColumnKernels) Run(dst, src []float32, at *FloatColumns, w *ColumnWeights, end *End) {
	kernels, channels := k.Kernels, w.lanes
	if k.Wide != nil && Far(at.DstStep) && w.Channels%k.WideChannels == 0 {
		kernels, channels = k.Wide, k.WideChannels
	}
	j := &at.job
	*j = ColumnsJob{
		FMAJob: FMAJob{
			dst: uintptr(unsafe.Pointer(unsafe.SliceData(dst))), dstStep: uintptr(4 * at.DstStep),
			src: uintptr(unsafe.Pointer(unsafe.SliceData(src))) - uintptr(4*at.Left*at.Step), step: uintptr(4 * at.Step),
			weights: unsafe.Pointer(&w.Data[0]), bias: unsafe.Pointer(&w.Bias[0]),
			target: unsafe.SliceData(dst), source: unsafe.SliceData(src),
		},
		dstRow: uintptr(4 * at.DstRow), srcRow: uintptr(4 * at.RowStep), last: uintptr(4 * (w.Channels - channels)),
		rows: at.Rows, skip: at.Taps - 1 - at.Above, steps: at.Rows + at.Below,
	}
	j.finish(end)
	tile, large, small := tiles(at.Pixels, len(kernels))
	for x, i := 0, 0; i < large+small; i++ {
		n := tile
		if i >= large {
			n--
		}
		j.left, j.right = at.Left-x, at.Right-(at.Pixels-x-n)
		kernels[n-1]((*uint8)(unsafe.Pointer(j)))
		x += n
		j.dst += uintptr(n) * j.dstStep
		j.src += uintptr(n) * j.step
	}
}
