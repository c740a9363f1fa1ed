package all_test

import (
	"fmt"

	"github.com/bitcnn/bitcnn/backend"
	_ "github.com/bitcnn/bitcnn/backend/all"
)

// Importing the package registers every backend. One that this build or machine lacks
// says why.
func Example() {
	for _, b := range backend.Backends() {
		devices, err := b.Devices()
		fmt.Println(b.Name(), len(devices) > 0 || err != nil)
	}
	// Output:
	// cpu true
	// cuda true
	// opencl true
}
