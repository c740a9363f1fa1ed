package modelfile

import (
	"fmt"
	"math"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/text"
)

// codecs are those of all operations, by kind: the first version of the format that has it, and its
// fields in the order of the file.
var codecs = byKind(
	layer(1, func(f fields, op *bcnn.Binarize) {
		f.scalars(&binarizeJSON{(*string)(&op.Scheme)})
		f.ints(thresholds, &op.Thresholds)
	}),
	layer(1, func(f fields, op *bcnn.Conv2D) {
		converted(f, func() conv2DJSON {
			return conv2DJSON{encodeWindow(op.Window), op.Out, max(op.Groups, 1), op.PadValue}
		}, func(p conv2DJSON) error {
			if err := p.decode(&op.Window); err != nil {
				return err
			}
			if op.Out, op.Groups, op.PadValue = p.Out, p.Groups, p.PadValue; p.Groups < 1 {
				return fmt.Errorf("%d groups, want at least 1", p.Groups)
			}
			return nil
		})
		f.weights(&op.Weights, op.Out, op.KH, op.KW)
		f.floats(bias, &op.Bias)
	}),
	layer(1, func(f fields, op *bcnn.Dense) {
		f.scalars(&denseJSON{&op.Out})
		f.weights(&op.Weights, op.Out)
		f.floats(bias, &op.Bias)
	}),
	layer(1, func(f fields, op *bcnn.BatchNorm) {
		f.scalars(&batchNormJSON{&op.Epsilon})
		f.floats(gamma, &op.Gamma)
		f.floats(beta, &op.Beta)
		f.floats(mean, &op.Mean)
		f.floats(variance, &op.Var)
	}),
	layer(1, func(f fields, op *bcnn.Affine) {
		f.floats(scale, &op.Scale)
		f.floats(bias, &op.Bias)
	}),
	layer(1, func(f fields, op *bcnn.Sign) {
		ofZero := map[bcnn.ZeroRule]int{bcnn.ZeroIsPlus: 1, bcnn.ZeroIsMinus: -1}
		converted(f, func() signJSON { return signJSON{ofZero[op.Zero]} }, func(p signJSON) error {
			for rule, sign := range ofZero {
				if sign == p.Zero {
					op.Zero = rule
					return nil
				}
			}
			return fmt.Errorf("sign of zero is %d, want +1 or −1", p.Zero)
		})
	}),
	layer(integersVersion, func(f fields, op *bcnn.Quantize) {
		levelThresholds(f, op)
	}),
	layer(2, func(f fields, op *bcnn.PReLU) {
		f.floats(slope, &op.Slope)
	}),
	layer(2, func(f fields, op *bcnn.Clip) {
		converted(f, func() clipJSON { return clipJSON{bound(op.Min), bound(op.Max)} }, func(p clipJSON) error {
			op.Min, op.Max = float32(math.Inf(-1)), float32(math.Inf(1))
			if p.Min != nil {
				op.Min = *p.Min
			}
			if p.Max != nil {
				op.Max = *p.Max
			}
			return nil
		})
	}),
	layer(1, func(f fields, op *bcnn.MaxPool) {
		converted(f, func() windowJSON { return encodeWindow(op.Window) }, func(p windowJSON) error { return p.decode(&op.Window) })
	}),
	layer(2, func(f fields, op *bcnn.AvgPool) {
		converted(f, func() avgPoolJSON { return avgPoolJSON{encodeWindow(op.Window), op.CountPadding} }, func(p avgPoolJSON) error {
			op.CountPadding = p.CountPadding
			return p.decode(&op.Window)
		})
	}),
	layer(2, func(f fields, op *bcnn.Channels) {
		f.ints(index, &op.Index)
	}),
	layer(spatialVersion, func(f fields, op *bcnn.Pixels) {
		converted(f, func() pixelsJSON { return pixelsJSON{[]int{max(op.BlockH, 1), max(op.BlockW, 1)}, op.Fill} }, func(p pixelsJSON) error {
			if len(p.Block) != 2 || p.Block[0] < 1 || p.Block[1] < 1 {
				return fmt.Errorf("a block of %v, want a height and a width", p.Block)
			}
			op.Fill, op.BlockH, op.BlockW = p.Fill, p.Block[0], p.Block[1]
			return nil
		})
		f.ints(rows, &op.Rows)
		f.ints(columns, &op.Cols)
	}),
	layer(spatialVersion, func(f fields, op *bcnn.Resample) {
		converted(f, func() resampleJSON { return resampleJSON{[]int{op.Rows.N, op.Cols.N}} }, func(p resampleJSON) error {
			if len(p.Taps) != 2 {
				return fmt.Errorf("taps %v, want two numbers: of a row and of a column", p.Taps)
			}
			op.Rows.N, op.Cols.N = p.Taps[0], p.Taps[1]
			return nil
		})
		f.ints(rows, &op.Rows.Index)
		f.floats(rowWeights, &op.Rows.Weight)
		f.ints(columns, &op.Cols.Index)
		f.floats(columnWeights, &op.Cols.Weight)
	}),
	layer(spatialVersion, func(f fields, op *bcnn.TopK) {
		f.scalars(&topKJSON{&op.K, &op.Values})
	}),
	bare(1, bcnn.ReLU{}, bcnn.Add{}, bcnn.Flatten{}, bcnn.Softmax{}),
	bare(2, bcnn.Mul{}, bcnn.Concat{}),
	bare(spatialVersion, bcnn.Min{}, bcnn.Max{}),
	bare(functionsVersion, bcnn.Softmax{Log: true}),
	bare(matMulVersion, bcnn.MatMul{}, bcnn.Transpose{}),
	bare(rootsVersion, bcnn.Mask{}),
	functions(2, bcnn.Tanh),
	functions(functionsVersion, bcnn.Sigmoid, bcnn.Exp, bcnn.Softplus, bcnn.ELU, bcnn.Erf, bcnn.SiLU, bcnn.GELU, bcnn.GELUTanh,
		bcnn.Mish, bcnn.HardSwish, bcnn.Reciprocal, bcnn.RSqrt, bcnn.RootScale),
	functions(rootsVersion, bcnn.Inverse, bcnn.InverseRoot, bcnn.RootFactor, bcnn.RootPower, bcnn.Float16Shift, bcnn.Float16Range,
		bcnn.BFloat16Shift),
)

// Versions of the format that are the first to have some kinds of layers.
const (
	integersVersion  = 4 // levels and integer weights
	spatialVersion   = 5 // pixels that are picked and resampled, minima and maxima
	functionsVersion = 5 // more functions than tanh, and the logarithm of softmax
	matMulVersion    = 7 // products of the matrices of two layers
	rootsVersion     = 8 // quotients and roots of all numbers, roundings to 16 bits, and masks
)

// bound returns a bound of a clip; an infinite one is not written.
func bound(v float32) *float32 {
	if math.IsInf(float64(v), 0) {
		return nil
	}
	return &v
}

// encode describes a layer.
func (w *layerWriter) encode(op bcnn.Op) error {
	c, ok := codecs[op.Kind()]
	if !ok {
		return fmt.Errorf("%T cannot be stored", op)
	}
	*w.version = max(*w.version, c.first)
	c.write(w, op)
	return nil
}

// decode makes the layer.
func (r *layerReader) decode() (bcnn.Op, error) {
	c, ok := codecs[r.layer.Kind]
	if !ok {
		return nil, fmt.Errorf("unknown kind of layer %s", text.Quote(r.layer.Kind))
	}
	if r.version < c.first {
		return nil, fmt.Errorf("layers of kind %s need version %d of the format, this file has version %d", r.layer.Kind, c.first, r.version)
	}
	return c.read(r)
}
