package bitcnn_test

import (
	"context"
	"embed"
	"fmt"
	"image"
	"image/png"
	"log"
	"os"
	"sync"
	"time"

	"github.com/bitcnn/bitcnn"
)

//go:embed models/digits.bcnn
var modelFiles embed.FS

// Load once, open once, run as often as needed.
func Example() {
	ctx := context.Background()
	model, err := bitcnn.Load(ctx, "models/digits.bcnn", bitcnn.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	s, err := bitcnn.Open(ctx, model, bitcnn.Options{Device: "cpu"}) // or "auto", "cuda:0", "opencl:1"
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	in := s.Inputs()[0]
	fmt.Println(in.Name, in.DType, in.Shape, in.Layout)
	batch := bitcnn.NewTensor(in.DType, 1, in.Shape) // the pixels go to batch.U8
	copy(batch.U8, sevenPixels())
	outputs, err := s.Predict(ctx, batch)
	if err != nil {
		log.Fatal(err)
	}
	for i, v := range outputs[0].F32 {
		if v > 1 {
			fmt.Println(s.Labels()[i], v)
		}
	}
	// Output:
	// input uint8 28×28×1 NHWC
	// 7 4.6866384
}

// What another program has, such as PyTorch, may have the order of the model's file, NCHW for
// instance. TensorOf and Floats put it into the order of tensors, and back.
func ExampleTensorOf() {
	ctx := context.Background()
	model, err := bitcnn.Bundled("digits")
	if err != nil {
		log.Fatal(err)
	}
	s, err := bitcnn.Open(ctx, model, bitcnn.Options{Device: "cpu"})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	in, out := s.Inputs()[0], s.Outputs()[0]
	x, err := bitcnn.TensorOf(1, in.Shape, in.FileLayout, make([]uint8, 28*28))
	if err != nil {
		log.Fatal(err)
	}
	outputs, err := s.Predict(ctx, x)
	if err != nil {
		log.Fatal(err)
	}
	values, err := outputs[0].Floats(out.FileLayout)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(x, in.FileDims, len(values))
	// Output: uint8 1×28×28×1: 0, 0, 0, 0, 0, 0, 0, 0, … [28 28 1] 10
}

// Run computes into the caller's memory and allocates none. Any goroutine may call it.
func ExampleSession_Run() {
	ctx := context.Background()
	model, err := bitcnn.Bundled("digits")
	if err != nil {
		log.Fatal(err)
	}
	s, err := bitcnn.Open(ctx, model, bitcnn.Options{Device: "cpu"})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { // each with tensors of its own
			in := []bitcnn.Tensor{bitcnn.NewTensor(s.Inputs()[0].DType, 1, s.Inputs()[0].Shape)}
			out := []bitcnn.Tensor{bitcnn.NewTensor(s.Outputs()[0].DType, 1, s.Outputs()[0].Shape)}
			for range 100 {
				if err := s.Run(ctx, out, in); err != nil {
					log.Fatal(err)
				}
			}
		})
	}
	wg.Wait()
	fmt.Println("done")
	// Output: done
}

// Callers who bring one image each share batches of up to 32; nobody waits for others
// longer than 200 µs.
func ExampleOptions_batches() {
	ctx := context.Background()
	model, err := bitcnn.Bundled("digits")
	if err != nil {
		log.Fatal(err)
	}
	s, err := bitcnn.Open(ctx, model, bitcnn.Options{Device: "cpu", MaxBatch: 32, BatchDelay: 200 * time.Microsecond})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	out, err := s.Predict(ctx, bitcnn.NewTensor(s.Inputs()[0].DType, 1, s.Inputs()[0].Shape))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(out[0].F32), "outputs")
	// Output: 10 outputs
}

// A model that is part of the program.
func ExampleLoadFS() {
	model, err := bitcnn.LoadFS(context.Background(), modelFiles, "models/digits.bcnn", bitcnn.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(model.Name, model.Inputs[0].Shape)
	// Output: digits 28×28×1
}

// A model from a stranger, of no more than a megabyte.
func ExampleRead() {
	f, err := os.Open("models/digits.bcnn") // or the body of a request
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	limits := bitcnn.Limits{FileBytes: 1 << 20}
	model, err := bitcnn.Read(context.Background(), f, bitcnn.LoadOptions{Limits: limits})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(model.Name)
	// Output: digits
}

// A file of another kind is answered with what it is.
func ExampleLoad() {
	_, err := bitcnn.Load(context.Background(), "internal/samples/digit-7.png", bitcnn.LoadOptions{})
	fmt.Println(err)
	// Output: internal/samples/digit-7.png: a PNG image, not a .bcnn, ONNX, TensorFlow Lite, BMXNet, Darknet or OpenVINO file; a model is expected here
}

// sevenPixels returns the bytes of a picture of the digit 7.
func sevenPixels() []byte {
	f, err := os.Open("internal/samples/digit-7.png")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		log.Fatal(err)
	}
	return img.(*image.Gray).Pix
}
