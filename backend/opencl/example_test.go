package opencl_test

import (
	"fmt"
	"io/fs"
	"log"

	"github.com/bitcnn/bitcnn/backend/opencl"
)

// What a build with the tag opencl needs, where no headers of OpenCL are installed.
func ExampleHeaders() {
	names, err := fs.Glob(opencl.Headers(), "include/CL/*.h")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(names)
	// Output: [include/CL/cl.h include/CL/cl_ext.h]
}
