package bcnn

// What the checks of a network and lowering may cost; its size is what its description holds, in
// bytes.
const (
	// WorkPerByte is what may be spent for each byte of the size, in bytes that
	// are allocated and iterations alike. Most is for thresholds that are searched
	// behind maxMixed functions, of which one has a value of 4 bytes per channel.
	WorkPerByte = 192
	LayerBytes  = 64 // of a layer without parameters
)

// size is what a layer holds, in bytes.
func (l Layer) size() int64 {
	sum, _ := ParameterBytes(l.Op)
	return LayerBytes + int64(len(l.Name)) + 8*int64(len(l.Inputs)) + l.Source.size() + sum
}

// sides is the share of a tensor in the size of a network.
func (s Shape) sides() int64 { return int64(s.H) + int64(s.W) + int64(s.C) }

// ParameterBytes returns the bytes of an operation's parameters together, and those
// of the largest tensor of them.
func ParameterBytes(op Op) (sum, largest int64) {
	add := func(bytes int) {
		sum += int64(bytes)
		largest = max(largest, int64(bytes))
	}
	weights := func(w Weights, bias []float32) {
		add(8 * len(w.Bits))
		add(len(w.Int8))
		add(4 * len(w.F32))
		add(4 * len(bias))
	}
	switch op := op.(type) {
	case Binarize:
		add(4 * len(op.Thresholds))
	case Conv2D:
		weights(op.Weights, op.Bias)
	case Dense:
		weights(op.Weights, op.Bias)
	case BatchNorm:
		for _, v := range [][]float32{op.Gamma, op.Beta, op.Mean, op.Var} {
			add(4 * len(v))
		}
	case Affine:
		add(4 * len(op.Scale))
		add(4 * len(op.Bias))
	case Quantize:
		add(4 * len(op.Thresholds))
	case PReLU:
		add(4 * len(op.Slope))
	case Pixels:
		add(4 * len(op.Rows))
		add(4 * len(op.Cols))
	case Resample:
		for _, t := range []Taps{op.Rows, op.Cols} {
			add(4 * len(t.Index))
			add(4 * len(t.Weight))
		}
	case Channels:
		add(4 * len(op.Index))
	}
	return sum, largest
}
