//go:build cgo && (linux || (windows && amd64))

package main

/*
#include "bitcnn.h"
*/
import "C"

import (
	"slices"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/bcnn"
)

//export bitcnnGoConvModel
func bitcnnGoConvModel(conv *C.bitcnn_conv, model *C.bitcnn_model, message **C.char) C.int {
	return do(message, func() error {
		return added(model, func() (*bitcnn.Model, error) { return convModel(conv) })
	})
}

func convModel(c *C.bitcnn_conv) (*bitcnn.Model, error) {
	zero := bcnn.ZeroIsPlus
	switch c.sign_of_zero {
	case 1:
	case -1:
		zero = bcnn.ZeroIsMinus
	default:
		return nil, invalid("the sign of zero is %d, want 1 or -1", int(c.sign_of_zero))
	}
	weights, err := array((*uint64)(c.weights), c.weight_count, "weights")
	if err != nil {
		return nil, err
	}
	m := &bitcnn.Model{
		Name:   "conv",
		Inputs: []bcnn.Input{{Shape: bitcnn.Shape{H: int(c.height), W: int(c.width), C: int(c.channels)}, DType: bitcnn.Float32}},
	}
	m.Append("sign", bcnn.Sign{Zero: zero})
	m.Append("conv", bcnn.Conv2D{
		Window: bcnn.Window{
			KH: int(c.kernel_height), KW: int(c.kernel_width),
			StrideH: int(c.stride_height), StrideW: int(c.stride_width),
			DilationH: int(c.dilation_height), DilationW: int(c.dilation_width),
			Pad: bcnn.Padding{Top: int(c.pad_top), Left: int(c.pad_left), Bottom: int(c.pad_bottom), Right: int(c.pad_right)},
		},
		Out: int(c.outputs), Groups: int(c.groups), PadValue: int(c.pad_value),
		Weights: bcnn.Weights{Bits: slices.Clone(weights)},
	})
	return m, m.Check()
}
