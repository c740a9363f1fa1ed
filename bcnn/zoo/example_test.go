package zoo_test

import (
	"fmt"
	"log"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

// The topology of a published network, with random weights.
func ExampleNew() {
	net, err := zoo.New("binarynet", 1)
	if err != nil {
		log.Fatal(err)
	}
	shapes, err := net.Shapes()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(net.Inputs[0].Shape, net.Inputs[0].DType)
	for i, l := range net.Layers {
		if _, ok := l.Op.(bcnn.Conv2D); ok {
			fmt.Println(l.Name, shapes[i])
		}
	}
	// Output:
	// 32×32×3 uint8
	// conv1 32×32×128
	// conv2 32×32×128
	// conv3 16×16×256
	// conv4 16×16×256
	// conv5 8×8×512
	// conv6 8×8×512
}

// Single operators, to be measured.
func ExampleOperators() {
	for _, o := range zoo.Operators() {
		if o.Group == "dabnn" {
			fmt.Println(o.Name, o.In, o.Op.Kind())
		}
	}
	// Output:
	// dabnn_5x5_256 14×14×256 conv2d
	// dabnn_3x3_64 56×56×64 conv2d
	// dabnn_3x3_128 28×28×128 conv2d
	// dabnn_3x3_256 14×14×256 conv2d
	// dabnn_3x3_256_s2 14×14×256 conv2d
	// dabnn_3x3_512 7×7×512 conv2d
}
