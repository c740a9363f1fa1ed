package cpu_test

import (
	"fmt"
	"log"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/cpu"
)

// A program that needs no other device imports this backend alone.
func Example() {
	dev, err := backend.Open("auto")
	if err != nil {
		log.Fatal(err)
	}
	isas := dev.Info().ISAs // the best first
	fmt.Println(dev.Info().ID, dev.Info().Kind, isas[len(isas)-1])
	// Output: cpu CPU generic
}
