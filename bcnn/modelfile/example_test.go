package modelfile_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/modelfile"
)

// A network is written to a file and read again.
func Example() {
	net := &bcnn.Network{
		Name:   "light",
		Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: 4, W: 4, C: 1}, DType: bcnn.Uint8}},
		Labels: []string{"light", "dark"},
	}
	net.Append("grey", bcnn.Binarize{Scheme: bcnn.SchemeGrey, Thresholds: []int32{128}})
	// All weights of the first output are +1, those of the second −1.
	net.Append("count", bcnn.Dense{Out: 2, Weights: bcnn.Weights{Bits: []uint64{0xffff, 0}}})

	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "light"+modelfile.Extension)
	if err := modelfile.Save(file, net); err != nil {
		log.Fatal(err)
	}
	same, err := modelfile.Load(context.Background(), file, modelfile.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(same.Name, same.Inputs[0].Shape, same.Inputs[0].DType, same.Labels, len(same.Layers), "layers")
	// Output: light 4×4×1 uint8 [light dark] 2 layers
}

// Files of strangers may be read: what is wrong with one is an error.
func ExampleRead() {
	_, err := modelfile.Read(context.Background(), []byte("no model at all"), modelfile.Options{})
	fmt.Println(err)
	// Output: not a .bcnn file: a header of 7810759558478983022 bytes, at most 4194304 are allowed
}
