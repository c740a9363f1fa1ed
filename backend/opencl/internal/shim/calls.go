//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package shim

// #include "shim.h"
//
// static cl_int launch(cl_command_queue queue, cl_kernel kernel, const size_t *sizes)
// {
// 	return clEnqueueNDRangeKernel(queue, kernel, 3, sizes, sizes + 3, sizes + 6, 0, 0, 0);
// }
//
// struct timed { cl_int code; cl_event event; };
//
// static struct timed launch_timed(cl_command_queue queue, cl_kernel kernel, const size_t *sizes)
// {
// 	struct timed t = {0, 0};
// 	t.code = clEnqueueNDRangeKernel(queue, kernel, 3, sizes, sizes + 3, sizes + 6, 0, 0, &t.event);
// 	return t;
// }
//
// static cl_int write_buffer(cl_command_queue queue, cl_mem buffer, size_t bytes, const void *from, cl_bool wait)
// {
// 	return clEnqueueWriteBuffer(queue, buffer, wait, 0, bytes, from, 0, 0, 0);
// }
//
// static cl_int read_buffer(cl_command_queue queue, cl_mem buffer, size_t bytes, void *to, cl_bool wait)
// {
// 	return clEnqueueReadBuffer(queue, buffer, wait, 0, bytes, to, 0, 0, 0);
// }
//
// struct mapped { void *at; cl_int code; };
//
// static struct mapped map_buffer(cl_command_queue queue, cl_mem buffer, cl_map_flags flags, size_t bytes)
// {
// 	struct mapped m;
// 	m.at = clEnqueueMapBuffer(queue, buffer, CL_TRUE, flags, 0, bytes, 0, 0, 0, &m.code);
// 	return m;
// }
//
// static cl_ulong single_fp_config(cl_device_id device)
// {
// 	cl_ulong config = 0;
// 	clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, 0);
// 	return config;
// }
//
// static cl_ulong dot_products(cl_device_id device)
// {
// 	cl_ulong capabilities = 0;
// 	clGetDeviceInfo(device, CL_DEVICE_INTEGER_DOT_PRODUCT_CAPABILITIES_KHR, sizeof capabilities, &capabilities, 0);
// 	return capabilities;
// }
//
// struct place { cl_int code; cl_uint domain, bus, device; };
//
// // Khronos's struct has four numbers; AMD's a type, which is 1, and three bytes at its end.
// static struct place pci(cl_device_id device, int amd)
// {
// 	union { cl_uint numbers[6]; unsigned char bytes[24]; } u = {{0}};
// 	struct place p = {0, 0, 0, 0};
// 	p.code = clGetDeviceInfo(device, amd ? CL_DEVICE_TOPOLOGY_AMD : CL_DEVICE_PCI_BUS_INFO_KHR, amd ? 24 : 16, &u, 0);
// 	if (amd && u.numbers[0] != 1)
// 		p.code = CL_INVALID_VALUE;
// 	p.domain = amd ? 0 : u.numbers[0], p.bus = amd ? u.bytes[21] : u.numbers[1], p.device = amd ? u.bytes[22] : u.numbers[2];
// 	return p;
// }
//
// static cl_int event_time(cl_event event, cl_ulong *times)
// {
// 	cl_int code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof *times, &times[0], 0);
// 	return code ? code : clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof *times, &times[1], 0);
// }
import "C"

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/jgillich/go-opencl/cl"
)

// The objects of go-opencl hide their handles, which are the first field of
// each (a test makes sure of it).
func handle[T cl.CommandQueue | cl.Kernel | cl.MemObject | cl.Device | cl.Context | cl.Program](object *T) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(object))
}

// Queue, Kernel and Buffer are the handles of objects of go-opencl, which must
// be kept alive and unreleased as long as their handles are used.
type (
	Queue  struct{ h C.cl_command_queue }
	Kernel struct{ h C.cl_kernel }
	Buffer struct{ h C.cl_mem }
	Event  struct{ h C.cl_event }
)

func QueueOf(q *cl.CommandQueue) Queue { return Queue{C.cl_command_queue(handle(q))} }
func KernelOf(k *cl.Kernel) Kernel     { return Kernel{C.cl_kernel(handle(k))} }
func BufferOf(b *cl.MemObject) Buffer  { return Buffer{C.cl_mem(handle(b))} }

// Sizes of a launch: where its work-items begin, global and local sizes, of three dimensions each.
type Sizes [9]C.size_t

// MakeSizes returns the sizes of a launch of whole work-groups of local
// work-items, for n images and so many blocks.
func MakeSizes(items, local, n, blocks int) Sizes {
	groups := (items + local - 1) / local
	return Sizes{0, 0, 0, C.size_t(groups * local), C.size_t(n), C.size_t(blocks), C.size_t(local), 1, 1}
}

// SetImages changes which images a launch is for: n, from one on.
func (s *Sizes) SetImages(first, n int) { s[1], s[4] = C.size_t(first), C.size_t(n) }

// Local returns the size of a work-group.
func (s *Sizes) Local() int { return int(s[6]) }

// Launch enqueues a kernel. event may be nil; else it gets an event, to be
// released.
func (q Queue) Launch(k Kernel, sizes *Sizes, event *Event) error {
	const call = "clEnqueueNDRangeKernel"
	if event == nil {
		return check(call, C.launch(q.h, k.h, &sizes[0]))
	}
	timed := C.launch_timed(q.h, k.h, &sizes[0])
	event.h = timed.event
	return check(call, timed.code)
}

// Write enqueues a copy of bytes to the start of a buffer. Unless wait is set,
// from must not be memory of Go.
func (q Queue) Write(b Buffer, bytes int, from unsafe.Pointer, wait bool) error {
	return check("clEnqueueWriteBuffer", C.write_buffer(q.h, b.h, C.size_t(bytes), from, boolean(wait)))
}

// Read enqueues a copy of bytes from the start of a buffer. Unless wait is set,
// to must not be memory of Go.
func (q Queue) Read(b Buffer, bytes int, to unsafe.Pointer, wait bool) error {
	return check("clEnqueueReadBuffer", C.read_buffer(q.h, b.h, C.size_t(bytes), to, boolean(wait)))
}

// Map waits for all that is enqueued and maps the first bytes of a buffer into the host's
// memory: for reading, or, if overwrite is set, for writing all of them. No kernel may use
// the buffer until Unmap.
func (q Queue) Map(b Buffer, bytes int, overwrite bool) (unsafe.Pointer, error) {
	flags := C.cl_map_flags(C.CL_MAP_READ)
	if overwrite {
		flags = C.CL_MAP_WRITE_INVALIDATE_REGION
	}
	m := C.map_buffer(q.h, b.h, flags, C.size_t(bytes))
	return m.at, check("clEnqueueMapBuffer", m.code)
}

// Unmap enqueues the end of what Map began.
func (q Queue) Unmap(b Buffer, at unsafe.Pointer) error {
	return check("clEnqueueUnmapMemObject", C.clEnqueueUnmapMemObject(q.h, b.h, at, 0, nil, nil))
}

// Finish waits for all that is enqueued.
func (q Queue) Finish() error { return check("clFinish", C.clFinish(q.h)) }

// Nanoseconds is the time that the finished command of an event took. Times that are no times,
// as of drivers that leave them 0, are an error.
func (e *Event) Nanoseconds() (int64, error) {
	var times [2]C.cl_ulong
	if err := check("clGetEventProfilingInfo", C.event_time(e.h, &times[0])); err != nil {
		return 0, err
	}
	if times[1] == 0 || times[1] < times[0] {
		return 0, fmt.Errorf("clGetEventProfilingInfo: from %d to %d ns", times[0], times[1])
	}
	return int64(times[1]) - int64(times[0]), nil
}

// Release frees an event; it does nothing if there is none.
func (e *Event) Release() {
	if e.h != nil {
		C.clReleaseEvent(e.h)
		e.h = nil
	}
}

// SetArg sets an argument of a kernel to the buffer.
func (k Kernel) SetArg(index int, b Buffer) error {
	return check("clSetKernelArg", C.clSetKernelArg(k.h, C.cl_uint(index), C.size_t(unsafe.Sizeof(b.h)), unsafe.Pointer(&b.h)))
}

// Bits of CL_DEVICE_SINGLE_FP_CONFIG.
const (
	FPDenormals = C.CL_FP_DENORM
	FPInfNaN    = C.CL_FP_INF_NAN
	FPNearest   = C.CL_FP_ROUND_TO_NEAREST
	FPFMA       = C.CL_FP_FMA
)

// SingleFPConfig says what float32 arithmetic the device is capable of; 0 if it
// does not say.
func SingleFPConfig(d *cl.Device) uint64 {
	return uint64(C.single_fp_config(C.cl_device_id(handle(d))))
}

// Extensions lists the extensions of a device; none if it does not say. go-opencl reads no
// more than 1,024 bytes of the list.
func Extensions(d *cl.Device) []string {
	var n C.size_t
	id := C.cl_device_id(handle(d))
	if C.clGetDeviceInfo(id, C.CL_DEVICE_EXTENSIONS, 0, nil, &n) != C.CL_SUCCESS || n == 0 {
		return nil
	}
	list := make([]byte, n)
	if C.clGetDeviceInfo(id, C.CL_DEVICE_EXTENSIONS, n, unsafe.Pointer(&list[0]), nil) != C.CL_SUCCESS {
		return nil
	}
	return strings.Fields(strings.TrimRight(string(list), "\x00"))
}

// Place tells where a device with these extensions is on its bus, and so one device from another,
// whatever their drivers; empty if it is not known.
func Place(d *cl.Device, extensions []string) string {
	for amd, extension := range []string{"cl_khr_pci_bus_info", "cl_amd_device_attribute_query"} {
		if !slices.Contains(extensions, extension) {
			continue
		}
		if p := C.pci(C.cl_device_id(handle(d)), C.int(amd)); p.code == C.CL_SUCCESS {
			return fmt.Sprintf("%d:%d:%d", p.domain, p.bus, p.device)
		}
	}
	return ""
}

// HasPackedDot reports whether a device that has cl_khr_integer_dot_product multiplies four
// bytes of a word each.
func HasPackedDot(d *cl.Device) bool {
	return C.dot_products(C.cl_device_id(handle(d)))&C.CL_DEVICE_INTEGER_DOT_PRODUCT_INPUT_4x8BIT_PACKED_KHR != 0
}

func boolean(b bool) C.cl_bool {
	if b {
		return C.CL_TRUE
	}
	return C.CL_FALSE
}

// Codes of errors that are of one kernel alone.
const (
	OutOfResources   = C.CL_OUT_OF_RESOURCES
	InvalidGroupSize = C.CL_INVALID_WORK_GROUP_SIZE
	InvalidItemSize  = C.CL_INVALID_WORK_ITEM_SIZE
	NoMemory         = C.CL_MEM_OBJECT_ALLOCATION_FAILURE
	NoHostMemory     = C.CL_OUT_OF_HOST_MEMORY
	NoMapping        = C.CL_MAP_FAILURE
)

// Error is an error code of OpenCL.
type Error struct {
	Call string
	Code int
}

func (e *Error) Error() string {
	if name := codes[e.Code]; name != "" {
		return e.Call + ": " + name
	}
	return fmt.Sprintf("%s: error %d", e.Call, e.Code)
}

func check(call string, code C.cl_int) error {
	if code == C.CL_SUCCESS {
		return nil
	}
	return &Error{Call: call, Code: int(code)}
}
