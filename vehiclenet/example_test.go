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

	in := bcnn.NewTensor(bcnn.Uint8, 1, net.Input.Shape) // the pixels go to in.U8
	out := bcnn.NewTensor(bcnn.Float32, 1, bcnn.Shape{H: 1, W: 1, C: len(net.Labels)})
	if err := exe.Run(context.Background(), out, in); err != nil { // no allocation
		log.Fatal(err)
	}
	fmt.Println(net.Labels)
	fmt.Println(len(out.F32), "logits")
	// Output:
	// [bike car juggernaut minibus pickup truck]
	// 6 logits
}
