package modelfile

import (
	"fmt"
	"math"
	"slices"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/text"
)

// versionOf returns the first version of the format that has a kind of layer.
func versionOf(kind string) int {
	switch kind {
	case bcnn.AvgPool{}.Kind(), bcnn.PReLU{}.Kind(), bcnn.Clip{}.Kind(), string(bcnn.Tanh), bcnn.Mul{}.Kind(), bcnn.Concat{}.Kind(), bcnn.Channels{}.Kind():
		return 2
	case bcnn.Quantize{}.Kind():
		return integersVersion
	case bcnn.Pixels{}.Kind(), bcnn.Resample{}.Kind(), bcnn.TopK{}.Kind(), bcnn.Min{}.Kind(), bcnn.Max{}.Kind():
		return spatialVersion
	case bcnn.Softmax{Log: true}.Kind():
		return functionsVersion
	case bcnn.MatMul{}.Kind(), bcnn.Transpose{}.Kind():
		return matMulVersion
	case string(bcnn.Inverse), string(bcnn.InverseRoot), string(bcnn.RootFactor), string(bcnn.RootPower),
		string(bcnn.Float16Shift), string(bcnn.Float16Range), string(bcnn.BFloat16Shift), bcnn.Mask{}.Kind():
		return rootsVersion
	}
	if slices.Contains(bcnn.FunctionNames(), bcnn.FunctionName(kind)) {
		return functionsVersion
	}
	return 1
}

// spatialVersion is the first version that picks and resamples pixels, and has minima and
// maxima.
const spatialVersion = 5

// rootsVersion is the first version that has quotients and roots of all numbers, roundings to 16
// bits, and masks.
const rootsVersion = 8

// matMulVersion is the first version that multiplies matrices of two layers.
const matMulVersion = 7

// integersVersion is the first version that has levels and integer weights.
const integersVersion = 4

// functionsVersion is the first version that has more functions than tanh, and the
// logarithm of softmax.
const functionsVersion = 5

func hasIntegers(op bcnn.Op) bool {
	switch op := op.(type) {
	case bcnn.Conv2D:
		return op.Weights.Int8 != nil
	case bcnn.Dense:
		return op.Weights.Int8 != nil
	}
	return false
}

// encode describes a layer.
func (w *layerWriter) encode(op bcnn.Op) error {
	switch op := op.(type) {
	case bcnn.Binarize:
		w.params = binarizeJSON{string(op.Scheme)}
		w.addI32(thresholds, op.Thresholds)
	case bcnn.Conv2D:
		w.params = conv2DJSON{encodeWindow(op.Window), op.Out, max(op.Groups, 1), op.PadValue}
		w.addWeights(op.Weights, op.Out, op.KH, op.KW)
		w.addF32(bias, op.Bias)
	case bcnn.Dense:
		w.params = denseJSON{op.Out}
		w.addWeights(op.Weights, op.Out)
		w.addF32(bias, op.Bias)
	case bcnn.BatchNorm:
		w.params = batchNormJSON{op.Epsilon}
		w.addF32(gamma, op.Gamma)
		w.addF32(beta, op.Beta)
		w.addF32(mean, op.Mean)
		w.addF32(variance, op.Var)
	case bcnn.Affine:
		w.addF32(scale, op.Scale)
		w.addF32(bias, op.Bias)
	case bcnn.Sign:
		p := signJSON{1}
		if op.Zero == bcnn.ZeroIsMinus {
			p.Zero = -1
		}
		w.params = p
	case bcnn.Quantize:
		w.params = quantizeJSON{op.Low, op.Levels}
		w.addF32(thresholds, op.Thresholds)
	case bcnn.MaxPool:
		w.params = encodeWindow(op.Window)
	case bcnn.AvgPool:
		w.params = avgPoolJSON{encodeWindow(op.Window), op.CountPadding}
	case bcnn.PReLU:
		w.addF32(slope, op.Slope)
	case bcnn.Clip:
		w.params = clipJSON{bound(op.Min), bound(op.Max)}
	case bcnn.Channels:
		w.addI32(index, op.Index)
	case bcnn.Pixels:
		w.params = pixelsJSON{[]int{max(op.BlockH, 1), max(op.BlockW, 1)}, op.Fill}
		w.addI32(rows, op.Rows)
		w.addI32(columns, op.Cols)
	case bcnn.Resample:
		w.params = resampleJSON{[]int{op.Rows.N, op.Cols.N}}
		w.addI32(rows, op.Rows.Index)
		w.addF32(rowWeights, op.Rows.Weight)
		w.addI32(columns, op.Cols.Index)
		w.addF32(columnWeights, op.Cols.Weight)
	case bcnn.TopK:
		w.params = topKJSON{op.K, op.Values}
	case bcnn.ReLU, bcnn.Function, bcnn.Add, bcnn.Mul, bcnn.Min, bcnn.Max, bcnn.Mask, bcnn.Concat, bcnn.Flatten, bcnn.MatMul, bcnn.Transpose, bcnn.Softmax:
	default:
		return fmt.Errorf("%T cannot be stored", op)
	}
	return nil
}

// plain are the layers without parameters, by kind.
var plain = map[string]bcnn.Op{}

func init() {
	for _, op := range []bcnn.Op{
		bcnn.ReLU{}, bcnn.Add{}, bcnn.Mul{}, bcnn.Min{}, bcnn.Max{}, bcnn.Mask{}, bcnn.Concat{}, bcnn.Flatten{}, bcnn.MatMul{}, bcnn.Transpose{}, bcnn.Softmax{}, bcnn.Softmax{Log: true},
	} {
		plain[op.Kind()] = op
	}
	for _, name := range bcnn.FunctionNames() {
		plain[string(name)] = bcnn.Function{Name: name}
	}
}

// decode makes the layer.
func (r *layerReader) decode() (bcnn.Op, error) {
	if first := versionOf(r.layer.Kind); r.version < first {
		return nil, fmt.Errorf("layers of kind %s need version %d of the format, this file has version %d", r.layer.Kind, first, r.version)
	}
	if op, ok := plain[r.layer.Kind]; ok {
		return op, nil
	}
	switch r.layer.Kind {
	case bcnn.Binarize{}.Kind():
		return r.binarize()
	case bcnn.Conv2D{}.Kind():
		return r.conv2D()
	case bcnn.Dense{}.Kind():
		return r.dense()
	case bcnn.BatchNorm{}.Kind():
		return r.batchNorm()
	case bcnn.Affine{}.Kind():
		v, err := r.floats(scale, bias)
		return bcnn.Affine{Scale: v[0], Bias: v[1]}, err
	case bcnn.Sign{}.Kind():
		return r.sign()
	case bcnn.Quantize{}.Kind():
		return r.quantize()
	case bcnn.MaxPool{}.Kind():
		return r.maxPool()
	case bcnn.AvgPool{}.Kind():
		return r.avgPool()
	case bcnn.PReLU{}.Kind():
		v, err := r.floats(slope)
		return bcnn.PReLU{Slope: v[0]}, err
	case bcnn.Clip{}.Kind():
		return r.clip()
	case bcnn.Channels{}.Kind():
		t, err := r.vector(index, i32)
		return bcnn.Channels{Index: t.i32}, err
	case bcnn.Pixels{}.Kind():
		return r.pixels()
	case bcnn.Resample{}.Kind():
		return r.resample()
	case bcnn.TopK{}.Kind():
		var p topKJSON
		err := r.params(&p)
		return bcnn.TopK{K: p.K, Values: p.Values}, err
	}
	return nil, fmt.Errorf("unknown kind of layer %s", text.Quote(r.layer.Kind))
}

func (r *layerReader) quantize() (bcnn.Op, error) {
	var p quantizeJSON
	if err := r.params(&p); err != nil {
		return nil, err
	}
	v, err := r.floats(thresholds)
	return bcnn.Quantize{Low: p.Low, Levels: p.Levels, Thresholds: v[0]}, err
}

func (r *layerReader) maxPool() (bcnn.Op, error) {
	var p windowJSON
	if err := r.params(&p); err != nil {
		return nil, err
	}
	w, err := p.decode()
	return bcnn.MaxPool{Window: w}, err
}

func (r *layerReader) binarize() (bcnn.Op, error) {
	var p binarizeJSON
	if err := r.params(&p); err != nil {
		return nil, err
	}
	t, err := r.vector(thresholds, i32)
	if err != nil {
		return nil, err
	}
	return bcnn.Binarize{Scheme: bcnn.Scheme(p.Scheme), Thresholds: t.i32}, nil
}

func (r *layerReader) conv2D() (bcnn.Op, error) {
	var p conv2DJSON
	if err := r.params(&p); err != nil {
		return nil, err
	}
	w, err := p.decode()
	if err != nil {
		return nil, err
	}
	if p.Groups < 1 {
		return nil, fmt.Errorf("%d groups, want at least 1", p.Groups)
	}
	op := bcnn.Conv2D{Window: w, Out: p.Out, Groups: p.Groups, PadValue: p.PadValue}
	if op.Weights, err = r.weights(p.Out, w.KH, w.KW); err != nil {
		return nil, err
	}
	v, err := r.floats(bias)
	if err != nil {
		return nil, err
	}
	op.Bias = v[0]
	return op, nil
}

func (r *layerReader) dense() (bcnn.Op, error) {
	var p denseJSON
	err := r.params(&p)
	if err != nil {
		return nil, err
	}
	op := bcnn.Dense{Out: p.Out}
	if op.Weights, err = r.weights(p.Out); err != nil {
		return nil, err
	}
	v, err := r.floats(bias)
	if err != nil {
		return nil, err
	}
	op.Bias = v[0]
	return op, nil
}

func (r *layerReader) batchNorm() (bcnn.Op, error) {
	var p batchNormJSON
	if err := r.params(&p); err != nil {
		return nil, err
	}
	v, err := r.floats(gamma, beta, mean, variance)
	if err != nil {
		return nil, err
	}
	return bcnn.BatchNorm{Gamma: v[0], Beta: v[1], Mean: v[2], Var: v[3], Epsilon: p.Epsilon}, nil
}

func (r *layerReader) sign() (bcnn.Op, error) {
	var p signJSON
	if err := r.params(&p); err != nil {
		return nil, err
	}
	switch p.Zero {
	case 1:
		return bcnn.Sign{Zero: bcnn.ZeroIsPlus}, nil
	case -1:
		return bcnn.Sign{Zero: bcnn.ZeroIsMinus}, nil
	}
	return nil, fmt.Errorf("sign of zero is %d, want +1 or −1", p.Zero)
}

func (r *layerReader) avgPool() (bcnn.Op, error) {
	var p avgPoolJSON
	if err := r.params(&p); err != nil {
		return nil, err
	}
	w, err := p.decode()
	return bcnn.AvgPool{Window: w, CountPadding: p.CountPadding}, err
}

func (r *layerReader) pixels() (bcnn.Op, error) {
	var p pixelsJSON
	if err := r.params(&p); err != nil {
		return nil, err
	}
	if len(p.Block) != 2 || p.Block[0] < 1 || p.Block[1] < 1 {
		return nil, fmt.Errorf("a block of %v, want a height and a width", p.Block)
	}
	y, err := r.vector(rows, i32)
	if err != nil {
		return nil, err
	}
	x, err := r.vector(columns, i32)
	if err != nil {
		return nil, err
	}
	return bcnn.Pixels{Rows: y.i32, Cols: x.i32, Fill: p.Fill, BlockH: p.Block[0], BlockW: p.Block[1]}, nil
}

func (r *layerReader) resample() (bcnn.Op, error) {
	var p resampleJSON
	if err := r.params(&p); err != nil {
		return nil, err
	}
	if len(p.Taps) != 2 {
		return nil, fmt.Errorf("taps %v, want two numbers: of a row and of a column", p.Taps)
	}
	y, err := r.vector(rows, i32)
	if err != nil {
		return nil, err
	}
	x, err := r.vector(columns, i32)
	if err != nil {
		return nil, err
	}
	w, err := r.floats(rowWeights, columnWeights)
	if err != nil {
		return nil, err
	}
	return bcnn.Resample{
		Rows: bcnn.Taps{N: p.Taps[0], Index: y.i32, Weight: w[0]},
		Cols: bcnn.Taps{N: p.Taps[1], Index: x.i32, Weight: w[1]},
	}, nil
}

func (r *layerReader) clip() (bcnn.Op, error) {
	var p clipJSON
	if err := r.params(&p); err != nil {
		return nil, err
	}
	op := bcnn.Clip{Min: float32(math.Inf(-1)), Max: float32(math.Inf(1))}
	if p.Min != nil {
		op.Min = *p.Min
	}
	if p.Max != nil {
		op.Max = *p.Max
	}
	return op, nil
}

// bound returns a bound of a clip; an infinite one is not written.
func bound(v float32) *float32 {
	if math.IsInf(float64(v), 0) {
		return nil
	}
	return &v
}
