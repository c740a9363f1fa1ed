// go-opencl includes the extensions of OpenCL but uses none.
