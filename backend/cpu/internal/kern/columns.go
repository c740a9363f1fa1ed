package kern

import "unsafe"

// FloatColumns says where the pixels of a depthwise convolution lie whose windows of Taps × Taps
// move by one pixel. Pixel (y, x) of the output is at index y·DstRow + x·DstStep, and pixel (y, x)
// of the input at y·RowStep + x·Step, where column 0 is the first one inside the image.
type FloatColumns struct {
	Taps            int
	Pixels          int // columns of the output
	Rows            int // of the input
	Step, RowStep   int
	DstStep, DstRow int
	// How many rows and columns of the first and last windows are outside the image, at most Taps/2
	// each. The sums leave those taps out.
	Above, Below, Left, Right int

	job ColumnsJob // here, since arguments of function values are on the heap
}

// Height returns the number of rows of the output.
func (c *FloatColumns) Height() int { return c.Rows + c.Above + c.Below - (c.Taps - 1) }

// Width returns the number of columns of the input.
func (c *FloatColumns) Width() int { return c.Pixels - c.Left - c.Right + c.Taps - 1 }

// ColumnWeights are the weights and biases of a depthwise convolution, laid out for the FMAColumns
// of a Set: [vector][tap][channel]. All vectors are full: the last one repeats channels of the one
// before if the channels do not fill it.
type ColumnWeights struct {
	Channels, Taps int
	Bias           []float32
	Data           []float32
	lanes          int
}

// ColumnWeightsLen returns the number of weights, including repeated ones.
func ColumnWeightsLen(set *Set, channels, taps int) int {
	return FloatWeightsLen(set, channels, taps)
}

// NewColumnWeights returns weights of 0 for a Set. There must be at least as many channels as a
// vector has lanes.
func NewColumnWeights(set *Set, channels, taps int, bias []float32) *ColumnWeights {
	return &ColumnWeights{Channels: channels, Taps: taps, Bias: bias, Data: alignedFloats(ColumnWeightsLen(set, channels, taps)), lanes: set.FloatLanes}
}

// last returns the first channel of the last vector.
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

// ColumnsJob is one call of an assembly kernel behind FMAColumns: some columns of pixels, and all
// channels. The kernels rely on the offsets of the fields.
type ColumnsJob struct {
	FMAJob
	dstRow, srcRow    uintptr // bytes
	last              uintptr // bytes to the first channel of the last vector
	rows, skip, steps int     // of the input; before the first output; computed in all
	left, right       int
}

// ColumnKernels are the kernels behind FMAColumns for one size of windows. Kernels[i] computes i +
// 1 columns, a vector of channels at a time, and Wide[i] as many, WideChannels at a time.
type ColumnKernels struct {
	Kernels, Wide []func(job *uint8)
	WideChannels  int
}

// Far reports whether pixels that are stride values apart fall into few sets of the first-level
// cache. Stores to the same set wait for each other, so several lines of a pixel should be written
// at a time.
func Far(stride int) bool { return stride%512 == 0 }

// Run computes all columns.
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
