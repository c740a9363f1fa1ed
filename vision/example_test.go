package vision_test

import (
	"context"
	"fmt"
	"log"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all"
	"github.com/bitcnn/bitcnn/vehiclenet"
	"github.com/bitcnn/bitcnn/vision"
)

// A classifier with one of the embedded networks, on the CPU.
func ExampleClassifier() {
	dev, err := backend.Open("cpu") // or "auto", "cuda:0", "opencl:1"
	if err != nil {
		log.Fatal(err)
	}
	net, err := vehiclenet.Load(context.Background(), "digits")
	if err != nil {
		log.Fatal(err)
	}
	c, err := vision.NewClassifier(context.Background(), dev, net, backend.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	img, err := vision.Decode("../cmd/bcnn/samples/digit-7.png")
	if err != nil {
		log.Fatal(err)
	}
	r, err := c.Classify(context.Background(), img)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %.0f %%\n", r.Label, 100*r.Probability)
	// Output: 7, 92 %
}
