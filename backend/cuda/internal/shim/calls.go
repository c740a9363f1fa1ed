//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package shim

// #include "shim.h"
//
// struct launch {
// 	CUfunction function;
// 	unsigned grid[3], block[3], shared;
// 	int cooperative, dependent;
// 	void *parameters[32]; // into values
// 	unsigned long long values[256];
// };
//
// static CUresult launch(struct launch *l, CUstream stream)
// {
// 	unsigned *g = l->grid, *b = l->block;
// 	if (l->cooperative)
// 		return cuLaunchCooperativeKernel(l->function, g[0], g[1], g[2], b[0], b[1], b[2], l->shared, stream, l->parameters);
// 	if (l->dependent) {
// 		CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
// 			.value.programmaticStreamSerializationAllowed = 1};
// 		CUlaunchConfig config = {g[0], g[1], g[2], b[0], b[1], b[2], l->shared, stream, &early, 1};
// 		return cuLaunchKernelEx(&config, l->function, l->parameters, 0);
// 	}
// 	return cuLaunchKernel(l->function, g[0], g[1], g[2], b[0], b[1], b[2], l->shared, stream, l->parameters, 0);
// }
//
// struct made { CUresult code; void *handle; };
//
// static struct made host_alloc(size_t bytes)
// {
// 	struct made m = {0, 0};
// 	m.code = cuMemHostAlloc(&m.handle, bytes, 0);
// 	return m;
// }
//
// static struct made end_capture(CUstream stream)
// {
// 	struct made m = {0, 0};
// 	CUgraph graph = 0;
// 	m.code = cuStreamEndCapture(stream, &graph);
// 	m.handle = graph;
// 	return m;
// }
//
// // Drivers before CUDA 11.4 have only the older forms.
// static struct made instantiate(void *graph)
// {
// 	struct made m = {0, 0};
// 	CUgraphExec exec = 0;
// 	m.code = cuGraphInstantiateWithFlags(&exec, graph, 0);
// 	if (m.code == CUDA_ERROR_NOT_FOUND)
// 		m.code = cuGraphInstantiate_v2(&exec, graph, 0, 0, 0);
// 	if (m.code == CUDA_ERROR_NOT_FOUND)
// 		m.code = cuGraphInstantiate(&exec, graph, 0, 0, 0);
// 	m.handle = exec;
// 	return m;
// }
//
// static CUresult run_graph(void *exec, CUstream stream)
// {
// 	CUresult code = cuGraphLaunch(exec, stream);
// 	return code ? code : cuStreamSynchronize(stream);
// }
//
// static CUresult launch_graph(void *exec, CUstream stream) { return cuGraphLaunch(exec, stream); }
// static CUresult destroy_graph(void *graph) { return cuGraphDestroy(graph); }
// static CUresult destroy_exec(void *exec) { return cuGraphExecDestroy(exec); }
//
// static CUresult copy_in(CUdeviceptr to, void *from, size_t bytes, CUstream stream)
// {
// 	return cuMemcpyHtoDAsync(to, from, bytes, stream);
// }
//
// static CUresult copy_out(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
// {
// 	return cuMemcpyDtoHAsync(to, from, bytes, stream);
// }
//
// static struct made load(const void *image, char *log, size_t bytes)
// {
// 	struct made m = {0, 0};
// 	CUmodule module = 0;
// 	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
// 	void *values[] = {log, (void *)bytes};
// 	m.code = cuModuleLoadDataEx(&module, image, 2, options, values);
// 	m.handle = module;
// 	return m;
// }
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"gorgonia.org/cu"
)

func streamOf(s cu.Stream) C.CUstream { return *(*C.CUstream)(unsafe.Pointer(&s)) }

// Launch is a kernel with its parameters and sizes, in memory of C, so that
// launching it allocates nothing.
type Launch struct{ c *C.struct_launch }

// maxGeometry and maxPointers are the room for parameters.
const (
	maxPointers = 31
	maxGeometry = (256 - maxPointers) * 8
)

// NewLaunch prepares a kernel whose parameters are a struct of the given size and
// pointers to memory of the device.
func NewLaunch(f cu.Function, geometry unsafe.Pointer, bytes uintptr, pointers []cu.DevicePtr) (Launch, error) {
	if bytes > maxGeometry || len(pointers) > maxPointers {
		return Launch{}, fmt.Errorf("a kernel with %d bytes of sizes and %d pointers", bytes, len(pointers))
	}
	c := (*C.struct_launch)(C.calloc(1, C.sizeof_struct_launch))
	if c == nil {
		return Launch{}, &Error{Call: "calloc", Code: OutOfMemory}
	}
	c.function = *(*C.CUfunction)(unsafe.Pointer(&f))
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&c.values[0])), bytes), unsafe.Slice((*byte)(geometry), bytes))
	c.parameters[0] = unsafe.Pointer(&c.values[0])
	at := (bytes + 7) / 8
	for i, p := range pointers {
		c.values[at] = C.ulonglong(p)
		c.parameters[1+i] = unsafe.Pointer(&c.values[at])
		at++
	}
	return Launch{c}, nil
}

// Geometry is the copy of the first parameter that the next launch takes.
func (l Launch) Geometry() unsafe.Pointer { return unsafe.Pointer(&l.c.values[0]) }

// SetSizes sets the sizes of the grid and of a block, and the dynamic shared
// memory of a block in bytes.
func (l Launch) SetSizes(grid, block [3]int, shared int, cooperative bool) {
	for i := range grid {
		l.c.grid[i], l.c.block[i] = C.uint(grid[i]), C.uint(block[i])
	}
	l.c.shared, l.c.cooperative = C.uint(shared), 0
	if cooperative {
		l.c.cooperative = 1
	}
}

// SetDependent says whether the device may begin the kernel before the one ahead of it on
// the stream has ended, for which it must wait itself (griddepcontrol.wait).
func (l Launch) SetDependent(dependent bool) {
	l.c.dependent = 0
	if dependent {
		l.c.dependent = 1
	}
}

// Enqueue launches the kernel on the stream.
func (l Launch) Enqueue(s cu.Stream) error {
	return check("cuLaunchKernel", C.launch(l.c, streamOf(s)))
}

// Free frees the memory of a launch.
func (l Launch) Free() { C.free(unsafe.Pointer(l.c)) }

// HostAlloc makes page-locked memory, to be freed with cu.MemFreeHost.
func HostAlloc(bytes int) (unsafe.Pointer, error) {
	m := C.host_alloc(C.size_t(bytes))
	return m.handle, check("cuMemHostAlloc", m.code)
}

// Malloc makes plain memory of the host, for Free; nil if there is none.
func Malloc(bytes int) unsafe.Pointer { return C.calloc(1, C.size_t(bytes)) }

// Free frees what Malloc has made.
func Free(p unsafe.Pointer) { C.free(p) }

// Graph is an instantiated graph.
type Graph struct{ exec unsafe.Pointer }

// BeginCapture makes the stream record what is enqueued instead of doing it.
func BeginCapture(s cu.Stream) error {
	return check("cuStreamBeginCapture", C.cuStreamBeginCapture(streamOf(s), C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
}

// EndCapture makes a graph of what was recorded. It must be called after every
// BeginCapture that succeeded.
func EndCapture(s cu.Stream) (Graph, error) {
	captured := C.end_capture(streamOf(s))
	if err := check("cuStreamEndCapture", captured.code); err != nil {
		return Graph{}, err
	}
	made := C.instantiate(captured.handle)
	err := check("cuGraphInstantiate", made.code)
	if destroyed := check("cuGraphDestroy", C.destroy_graph(captured.handle)); err == nil && destroyed != nil {
		C.destroy_exec(made.handle)
		err = destroyed
	}
	if err != nil {
		return Graph{}, err
	}
	return Graph{made.handle}, nil
}

// Run launches the graph on the stream and waits for the stream.
func (g Graph) Run(s cu.Stream) error {
	return check("cuGraphLaunch", C.run_graph(g.exec, streamOf(s)))
}

// Launch launches the graph on the stream.
func (g Graph) Launch(s cu.Stream) error {
	return check("cuGraphLaunch", C.launch_graph(g.exec, streamOf(s)))
}

func (g Graph) Destroy() error { return check("cuGraphExecDestroy", C.destroy_exec(g.exec)) }

// CopyIn and CopyOut enqueue a copy of page-locked memory.
func CopyIn(to cu.DevicePtr, from unsafe.Pointer, bytes int, s cu.Stream) error {
	return check("cuMemcpyHtoDAsync", C.copy_in(C.CUdeviceptr(to), from, C.size_t(bytes), streamOf(s)))
}

func CopyOut(to unsafe.Pointer, from cu.DevicePtr, bytes int, s cu.Stream) error {
	return check("cuMemcpyDtoHAsync", C.copy_out(to, C.CUdeviceptr(from), C.size_t(bytes), streamOf(s)))
}

// LoadModule compiles PTX for the current device. The error has the driver's log.
func LoadModule(ptx []byte) (cu.Module, error) {
	const logBytes = 4096
	image := C.CString(string(ptx))
	log := (*C.char)(C.calloc(1, logBytes))
	defer C.free(unsafe.Pointer(image))
	defer C.free(unsafe.Pointer(log))
	m := C.load(unsafe.Pointer(image), log, logBytes-1)
	if err := check("cuModuleLoadDataEx", m.code); err != nil {
		if text := strings.TrimSpace(C.GoString(log)); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return cu.Module{}, err
	}
	return *(*cu.Module)(unsafe.Pointer(&m.handle)), nil
}

// AllowShared sets the limit of dynamic shared memory of a kernel.
func AllowShared(f cu.Function, bytes int) error {
	return check("cuFuncSetAttribute", C.cuFuncSetAttribute(*(*C.CUfunction)(unsafe.Pointer(&f)),
		C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
}

// Attributes of a device that cu has no name for.
const (
	SharedMemoryOptIn = cu.DeviceAttribute(C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
	CooperativeLaunch = cu.DeviceAttribute(C.CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)
)
