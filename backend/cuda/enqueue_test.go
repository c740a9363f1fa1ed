//go:build cuda && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package cuda

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/backendtest"
	"github.com/bitcnn/bitcnn/backend/cuda/internal/shim"
	"github.com/bitcnn/bitcnn/backend/internal/compare"
	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/ref"
)

// user is a program that has the device's memory and streams itself, on a thread with the
// primary context.
type user struct {
	t   *testing.T
	bag bag
}

func newUser(t *testing.T, d *device) *user {
	runtime.LockOSThread()
	primary, err := d.number.RetainPrimaryCtx()
	require.NoError(t, err)
	require.NoError(t, cu.SetCurrentContext(primary))
	u := &user{t, bag{thread: d.thread}}
	t.Cleanup(func() {
		require.NoError(t, u.bag.release())
		require.NoError(t, cu.SetCurrentContext(cu.CUContext{}))
		require.NoError(t, d.number.ReleasePrimaryCtx())
		runtime.UnlockOSThread()
	})
	return u
}

func (u *user) stream() cu.Stream {
	s, err := u.bag.stream()
	require.NoError(u.t, err)
	return s
}

// A userTensor is a tensor on the device, at some bytes from where memory begins, with
// page-locked memory beside it.
type userTensor struct {
	bcnn.Tensor
	host    unsafe.Pointer
	address cu.DevicePtr
}

func (u *user) tensor(t bcnn.Tensor, offset int) *userTensor {
	bytes := t.N * int(t.Shape.Bytes(t.DType))
	p, err := u.bag.memory(bytes + offset)
	require.NoError(u.t, err)
	host, err := u.bag.pinned(bytes)
	require.NoError(u.t, err)
	clear(unsafe.Slice((*byte)(host), bytes))
	return &userTensor{t, host, p + cu.DevicePtr(offset)}
}

func (t *userTensor) bytes() int { return t.N * int(t.Shape.Bytes(t.DType)) }

func (t *userTensor) memory() []byte { return unsafe.Slice((*byte)(t.host), t.bytes()) }

// in enqueues that the tensor gets its values, and out that what is on the device is
// fetched.
func (u *user) in(t *userTensor, s cu.Stream) {
	copy(t.memory(), unsafe.Slice((*byte)(data(&t.Tensor)), t.bytes()))
	require.NoError(u.t, shim.CopyIn(t.address, t.host, t.bytes(), s))
}

func (u *user) out(t *userTensor, s cu.Stream) {
	require.NoError(u.t, shim.CopyOut(t.host, t.address, t.bytes(), s))
}

func handle(s cu.Stream) uintptr { return *(*uintptr)(unsafe.Pointer(&s)) }

func enqueue(exe *running, t *testing.T, s cu.Stream, out, in *userTensor) error {
	return exe.outside.Enqueue(t.Context(), handle(s), in.N, []uintptr{uintptr(out.address)}, []uintptr{uintptr(in.address)})
}

// run is a run on a stream, its input copied before and its output after it.
type userRun struct {
	in, out *userTensor
	want    bcnn.Tensor
}

func (u *user) run(exe *running, s cu.Stream, seed uint64, n, offset int) userRun {
	u.t.Helper()
	image := backendtest.RandomImages(seed, n, exe.plan.Inputs[0])
	want, err := ref.Run(u.t.Context(), exe.plan, image, nil)
	require.NoError(u.t, err)
	r := userRun{u.tensor(image, offset), u.tensor(bcnn.NewTensor(bcnn.Float32, n, want.Shape), 4*offset), want}
	u.in(r.in, s)
	require.NoError(u.t, enqueue(exe, u.t, s, r.out, r.in))
	u.out(r.out, s)
	return r
}

func (r userRun) check(t *testing.T) {
	t.Helper()
	copy(unsafe.Slice((*byte)(data(&r.out.Tensor)), r.out.bytes()), r.out.memory())
	require.NoError(t, compare.Tensors(r.want, r.out.Tensor))
}

// TestEnqueue runs on streams of the caller's, between copies on the same streams.
func TestEnqueue(t *testing.T) {
	for _, variant := range []string{gpu.Direct, gpu.Patches, gpu.TensorCore, gpu.Fused} {
		for _, mapped := range []bool{true, false} {
			t.Run(map[bool]string{true: variant + " mapped", false: variant}[mapped], func(t *testing.T) {
				d := testDevice(t)
				d.unified = d.unified && mapped
				exe, _, _ := compileSmall(t, d, backend.Options{Kernels: variant, MaxBatch: 3})
				u := newUser(t, d)
				a, b := u.stream(), u.stream()
				var runs []userRun
				for i := range 6 {
					runs = append(runs, u.run(exe, []cu.Stream{a, b, {}}[i%3], uint64(i), 1+i%3, i%2))
				}
				if d.info.Kind == backend.Emulated {
					for _, r := range runs { // nobody has waited
						require.Equal(t, make([]byte, r.out.bytes()), r.out.memory())
					}
				}
				// The emulated device does a little of a stream that is asked, so all go on
				// in turns.
				for busy := true; busy; {
					busy = false
					for _, s := range []cu.Stream{b, a, {}} {
						if err := s.Query(); err != nil {
							require.ErrorIs(t, err, cu.NotReady)
							busy = true
						}
					}
				}
				for _, r := range runs {
					r.check(t)
				}
				// What others run comes after it, also where it has begun.
				last := []userRun{u.run(exe, a, 7, 3, 0), u.run(exe, b, 8, 2, 0)}
				for range 3 { // the copy of the test, the event, the copy of the input
					_ = a.Query()
				}
				requireRun(t, exe, 9, 2)
				for _, s := range []cu.Stream{a, b} {
					require.NoError(t, s.Synchronize())
				}
				last[0].check(t)
				last[1].check(t)
				closed := u.run(exe, b, 10, 3, 0)
				require.NoError(t, exe.Close()) // waits
				require.NoError(t, b.Synchronize())
				closed.check(t)
				require.ErrorIs(t, enqueue(exe, t, b, closed.out, closed.in), backend.ErrClosed)
			})
		}
	}
}

// TestEnqueueWithoutGraphs: drivers that record no cooperative launches get them one by one.
func TestEnqueueWithoutGraphs(t *testing.T) {
	d := emulated(t)
	defer os.Unsetenv(envFault)
	os.Setenv(envFault, "capture:1")
	exe, _, _ := compileSmall(t, d, backend.Options{Kernels: gpu.Fused, MaxBatch: 3})
	require.True(t, exe.direct)
	u := newUser(t, d)
	s := u.stream()
	first, second := u.run(exe, s, 1, 3, 0), u.run(exe, s, 2, 1, 0)
	require.NoError(t, s.Synchronize())
	first.check(t)
	second.check(t)
}

// TestEnqueueRefuses what is not the device's, and the engine stays usable.
func TestEnqueueRefuses(t *testing.T) {
	d := testDevice(t)
	exe, _, _ := compileSmall(t, d, backend.Options{MaxBatch: 2})
	u := newUser(t, d)
	s, recorded := u.stream(), u.stream()
	own, err := d.number.MakeContext(cu.SchedAuto)
	require.NoError(t, err)
	foreign, err := cu.MakeStream(cu.NonBlocking)
	require.NoError(t, err)
	primary, err := d.number.RetainPrimaryCtx()
	require.NoError(t, err)
	defer d.number.ReleasePrimaryCtx()
	require.NoError(t, cu.SetCurrentContext(primary))
	defer func() { require.NoError(t, own.Destroy()) }()
	good := u.run(exe, s, 1, 2, 0)
	in, out := uintptr(good.in.address), uintptr(good.out.address)
	short, err := u.bag.memory(good.in.bytes() - 8)
	require.NoError(t, err)
	var local [8]byte
	require.NoError(t, shim.BeginCapture(recorded))
	for name, c := range map[string]struct {
		stream  uintptr
		images  int
		out, in []uintptr
		text    string
	}{
		"no image":        {handle(s), 0, []uintptr{out}, []uintptr{in}, "a batch of 0 images"},
		"too many images": {handle(s), 3, []uintptr{out}, []uintptr{in}, "a batch of 3 images, want 1 to 2"},
		"no input":        {handle(s), 1, []uintptr{out}, nil, "0 in and 1 out"},
		"nothing there":   {handle(s), 1, []uintptr{out}, []uintptr{0}, "input 0: 0x0 is not in memory of a device"},
		"of the program":  {handle(s), 1, []uintptr{uintptr(unsafe.Pointer(&local))}, []uintptr{in}, "output 0: .* is not in memory of a device"},
		"page-locked":     {handle(s), 1, []uintptr{out}, []uintptr{uintptr(good.in.host)}, "input 0: .* is not in memory of a device"},
		"too short":       {handle(s), 2, []uintptr{out}, []uintptr{uintptr(short)}, "input 0: .* is not in memory of a device"},
		"of a thread":     {2, 1, []uintptr{out}, []uintptr{in}, "the default stream of a thread"},
		"no stream":       {7, 1, []uintptr{out}, []uintptr{in}, "0x7 is not a stream"},
		"foreign":         {handle(foreign), 1, []uintptr{out}, []uintptr{in}, "belongs to another context"},
		"recorded":        {handle(recorded), 1, []uintptr{out}, []uintptr{in}, "is being recorded in a graph"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "too short" && d.info.Kind != backend.Emulated {
				c.in[0], c.text = 0, "input 0" // others give more memory than was asked for
			}
			err := exe.outside.Enqueue(t.Context(), c.stream, c.images, c.out, c.in)
			require.Error(t, err)
			require.Regexp(t, c.text, err.Error())
		})
	}
	graph, err := shim.EndCapture(recorded)
	require.NoError(t, err)
	require.NoError(t, graph.Destroy())
	require.NoError(t, s.Synchronize())
	good.check(t)
	again := u.run(exe, s, 2, 1, 0)
	require.NoError(t, s.Synchronize())
	again.check(t)
}

// loseEnqueued enqueues a run of which a launch fails.
func loseEnqueued() error {
	devices, err := enumerate()
	if err != nil {
		return err
	}
	d := devices[0]
	exe, err := compileTiny(d)
	if err != nil {
		return err
	}
	primary, err := d.number.RetainPrimaryCtx()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := cu.SetCurrentContext(primary); err != nil {
		return err
	}
	own := bag{thread: d.thread}
	in, err := own.memory(exe.bytes(exe.inputs[0].tensor, 1))
	if err != nil {
		return err
	}
	out, err := own.memory(exe.bytes(exe.outputs[0].tensor, 1))
	if err != nil {
		return err
	}
	os.Setenv(envFault, "launch:1")
	fmt.Println("enqueue:", exe.outside.Enqueue(context.Background(), 0, 1, []uintptr{uintptr(out)}, []uintptr{uintptr(in)}))
	fmt.Println("close:", exe.Close())
	if err := own.release(); err != nil {
		return err
	}
	if n := gpu.Live.Load(); n != 0 {
		return fmt.Errorf("%d objects are left", n)
	}
	return nil
}

// TestEnqueueOnALostDevice: who waits first learns of it, here Close, which frees all the same.
func TestEnqueueOnALostDevice(t *testing.T) {
	emulated(t)
	output, err := child(t, "enqueue")
	require.NoError(t, err, output)
	require.Regexp(t, "enqueue: <nil>\nclose: cuda:0: close: cuEventSynchronize: CUDA_ERROR_LAUNCH_FAILED\n", output)
}
