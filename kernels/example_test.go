package kernels_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/bitcnn/bitcnn/kernels"
)

// Devices of compute capability 8.6 take the tensor cores' kernels that were compiled
// for 8.0, the newest that are not for newer devices.
func ExampleReadPTX() {
	ptx, err := kernels.ReadPTX("conv_mma", 86)
	if err != nil {
		log.Fatal(err)
	}
	for line := range bytes.Lines(ptx) {
		if bytes.HasPrefix(line, []byte(".target")) {
			fmt.Printf("%s", line)
		}
	}
	// Output: .target sm_80
}
