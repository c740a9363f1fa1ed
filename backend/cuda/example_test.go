package cuda_test

import (
	"fmt"
	"io/fs"
	"log"

	"github.com/bitcnn/bitcnn/backend/cuda"
)

// What a build with the tag cuda needs, where no headers of CUDA are installed.
func ExampleHeaders() {
	names, err := fs.Glob(cuda.Headers(), "include/*.h")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(names)
	// Output: [include/cuda.h]
}
