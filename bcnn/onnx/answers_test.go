package onnx

import (
	"context"
	"testing"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/internal/answers"
)

// What ONNX Runtime computes of random graphs:
//
//	scripts/fuzz-import --record bcnn/onnx/testdata/answers.zip --seed 201
func TestAnswers(t *testing.T) {
	answers.Test(t, "testdata/answers.zip", func(ctx context.Context, model []byte) (*bcnn.Network, error) {
		net, _, err := Decode(ctx, model, Options{})
		return net, err
	})
}
