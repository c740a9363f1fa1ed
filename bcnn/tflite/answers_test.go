package tflite

import (
	"context"
	"testing"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/answers"
)

// What the interpreter of Larq Compute Engine computes of random graphs:
//
//	scripts/fuzz-import lce --record bcnn/tflite/testdata/answers.zip --seed 201
func TestAnswers(t *testing.T) {
	answers.Test(t, "testdata/answers.zip", func(ctx context.Context, model []byte) (*bcnn.Network, error) {
		net, _, err := Decode(ctx, model, Options{})
		return net, err
	})
}

// What TensorFlow Lite's interpreter, without XNNPACK, computes of networks of Keras, of each kind
// of operator: shapes of a batch of any size, dilation by blocks, comparisons, reductions,
// normalisations, UINT8 around INT8, sparse weights. train/tflite_kinds.py makes such archives.
func TestKinds(t *testing.T) {
	answers.TestWithin(t, "testdata/kinds.zip", 3e-6, func(ctx context.Context, model []byte) (*bcnn.Network, error) {
		net, _, err := Decode(ctx, model, Options{})
		return net, err
	})
}
