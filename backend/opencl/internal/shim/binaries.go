//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package shim

// #include "shim.h"
//
// struct made_program { cl_int code; cl_program program; };
//
// // The program of a binary, built.
// static struct made_program from_binary(cl_context context, cl_device_id device, const void *binary, size_t bytes, const char *options)
// {
// 	struct made_program m = {0, 0};
// 	const unsigned char *data = binary;
// 	cl_int status = CL_SUCCESS;
// 	m.program = clCreateProgramWithBinary(context, 1, &device, &bytes, &data, &status, &m.code);
// 	if (!m.code)
// 		m.code = status;
// 	if (!m.code)
// 		m.code = clBuildProgram(m.program, 1, &device, options, 0, 0);
// 	if (m.code && m.program) {
// 		clReleaseProgram(m.program);
// 		m.program = 0;
// 	}
// 	return m;
// }
//
// static cl_int binary_size(cl_program program, size_t *bytes)
// {
// 	return clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, 0);
// }
//
// static cl_int get_binary(cl_program program, void *to)
// {
// 	unsigned char *list[1] = {to};
// 	return clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof list, list, 0);
// }
import "C"

import (
	"unsafe"

	"github.com/jgillich/go-opencl/cl"
)

// Binary returns the binary of a program that is built for one device; empty if the driver has none.
func Binary(p *cl.Program) ([]byte, error) {
	program := C.cl_program(handle(p))
	var bytes C.size_t
	if err := check("clGetProgramInfo", C.binary_size(program, &bytes)); err != nil || bytes == 0 {
		return nil, err
	}
	memory := C.malloc(bytes)
	if memory == nil {
		return nil, &Error{Call: "malloc", Code: NoHostMemory}
	}
	defer C.free(memory)
	if err := check("clGetProgramInfo", C.get_binary(program, memory)); err != nil {
		return nil, err
	}
	return C.GoBytes(memory, C.int(bytes)), nil
}

// FromBinary makes the program of what Binary has returned, and builds it.
func FromBinary(context *cl.Context, d *cl.Device, binary []byte, options string) (*cl.Program, error) {
	text := C.CString(options)
	defer C.free(unsafe.Pointer(text))
	m := C.from_binary(C.cl_context(handle(context)), C.cl_device_id(handle(d)), unsafe.Pointer(unsafe.SliceData(binary)), C.size_t(len(binary)), text)
	if err := check("clCreateProgramWithBinary", m.code); err != nil {
		return nil, err
	}
	p := &cl.Program{} // which only kernels are made of
	*(*C.cl_program)(unsafe.Pointer(p)) = m.program
	return p, nil
}
