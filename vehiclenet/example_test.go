package vehiclenet_test

import (
	"context"
	"fmt"
	"log"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/vehiclenet"
)

// Open once, run as often as needed.
func Example() {
	ctx := context.Background()
	net, err := vehiclenet.Load(ctx, "vehiclenet")
	if err != nil {
		log.Fatal(err)
	}
	s, err := bitcnn.Open(ctx, net, bitcnn.Options{Device: "cpu"})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	in := bitcnn.NewTensor(bitcnn.Uint8, 1, s.Inputs()[0].Shape) // the pixels go to in.U8
	out, err := s.Predict(ctx, in)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Labels())
	fmt.Println(len(out[0].F32), "logits")
	// Output:
	// [bike car juggernaut minibus pickup truck]
	// 6 logits
}
