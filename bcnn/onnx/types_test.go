package onnx

import (
	"math/rand/v2"
	"testing"

	"github.com/bitcnn/bitcnn/bcnn/onnx/internal/pb"
)

// TestHalves computes in float32 what a file has in FLOAT16, on numbers that both hold.
func TestHalves(t *testing.T) {
	r := rand.New(rand.NewPCG(91, 92))
	half := func(t testTensor) testTensor { t.typ = pb.Float16; return t }
	odd := testNode{op: "Cast", name: "odd", in: []string{"x"}, out: []string{"w as FLOAT"}, attrs: map[string]any{"to": int(pb.Float16)}}
	weights := half(randomTensor(r, "w", []int{4, 3, 2, 2}, -1, 0.5, 0.25))
	large := half(randomTensor(r, "large", []int{4, 3, 2, 2}, -300, 300))
	for name, nodes := range map[string][]testNode{
		"any names": {odd, {op: "Conv", name: "conv", in: []string{"w as FLOAT", "w"}, out: []string{"a"}}, op("Conv", "h w", "b"), op("Add", "a b", "c"), op("Cast", "c", "y", "to", int(pb.Float))},
		// A constant that is cast to the type of a value is of the type in the file.
		"CastLike": {op("Conv", "h w", "a"), op("CastLike", "two a", "b"), op("Mul", "b half", "c"), op("Add", "a c", "d"), op("Cast", "d", "y", "to", int(pb.Float))},
		// The squares of ±300 are no numbers of FLOAT16.
		// An input that is left out stands before one that is there.
		"Clip":               {op("Conv", "h w", "a"), op("Clip", "a _ half", "b"), op("Conv", "b sums", "c"), op("Cast", "c", "y", "to", int(pb.Float))},
		"RMSNormalization":   {op("RMSNormalization", "large half", "n", "epsilon", 0.0, "axis", 1), op("Conv", "h n", "a"), op("Cast", "a", "y", "to", int(pb.Float))},
		"BatchNormalization": {op("BatchNormalization", "large ones zeros zeros squares", "n", "epsilon", 0.0), op("Conv", "h n", "a"), op("Cast", "a", "y", "to", int(pb.Float))},
	} {
		t.Run(name, func(t *testing.T) {
			m := testModel{input: image(3, 5, 4), output: "y", inits: []testTensor{weights, number("two", 2), half(number("half", 0.5)), large, half(randomTensor(r, "sums", []int{2, 4, 1, 1}, -1, 0.5)),
				half(floats("ones", []int{3}, 1, 1, 1)), half(floats("zeros", []int{3}, 0, 0, 0)), floats("squares", []int{3}, 90000, 90000, 90000)}}
			m.nodes = append([]testNode{op("Cast", "x", "h", "to", int(pb.Float16))}, nodes...)
			compare(t, r, m, Options{}, false)
		})
	}
}
