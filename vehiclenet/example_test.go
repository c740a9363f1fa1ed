package vehiclenet_test

import (
	"context"
	"fmt"
	"log"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

// Compile once, run as often as needed.
func Example() {
	dev, err := backend.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	net, err := vehiclenet.Load(context.Background(), "vehiclenet")
	if err != nil {
		log.Fatal(err)
	}
	exe, err := backend.Compile(context.Background(), dev, net, backend.Options{MaxBatch: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer exe.Close()

	input, output := exe.Inputs()[0], exe.Outputs()[0]
	in := bcnn.NewTensor(input.DType, 1, input.Shape) // the pixels go to in.U8
	out := bcnn.NewTensor(output.DType, 1, output.Shape)
	err = exe.Run(context.Background(), []bcnn.Tensor{out}, []bcnn.Tensor{in}) // no allocation
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(net.Labels)
	fmt.Println(len(out.F32), "logits")
	// Output:
	// [bike car juggernaut minibus pickup truck]
	// 6 logits
}
