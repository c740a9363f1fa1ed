//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
	"github.com/bitcnn/bitcnn/kernels"
)

// bag holds objects of go-opencl from their creation until they are released,
// so that no finalizer takes them from under a kernel.
type bag struct {
	context *cl.Context
	gpu.Objects
}

func (b *bag) add(object interface{ Release() }) {
	b.Add(func() error {
		object.Release()
		return nil
	})
}

func (b *bag) release() { _ = b.Release() } // go-opencl tells of no errors

// hostBuffer is buffer in memory that the host can have, too, if the driver has such.
func (b *bag) hostBuffer(flags cl.MemFlag, bytes int) (*cl.MemObject, error) {
	m, err := b.buffer(flags|cl.MemAllocHostPtr, bytes)
	if refused(err) {
		return b.buffer(flags, bytes)
	}
	return m, err
}

// buffer makes an uninitialised buffer; of at least one byte, since kernels get
// buffers for what they do not read, too.
func (b *bag) buffer(flags cl.MemFlag, bytes int) (*cl.MemObject, error) {
	m, err := b.context.CreateEmptyBuffer(flags, max(bytes, 4))
	if err != nil {
		return nil, fmt.Errorf("buffer of %d bytes: %w", bytes, err)
	}
	b.add(m)
	return m, nil
}

// upload makes a buffer with the given contents.
func upload[T int32 | uint32 | float32](b *bag, data []T) (*cl.MemObject, error) {
	if len(data) == 0 {
		return b.buffer(cl.MemReadOnly, 0)
	}
	bytes := len(data) * int(unsafe.Sizeof(data[0]))
	m, err := b.context.CreateBufferUnsafe(cl.MemReadOnly|cl.MemCopyHostPtr, bytes, unsafe.Pointer(&data[0]))
	if err != nil {
		return nil, fmt.Errorf("buffer of %d bytes: %w", bytes, err)
	}
	b.add(m)
	return m, nil
}

// kernel makes a kernel of its own, since arguments belong to it.
func (b *bag) kernel(p *program, name string) (*cl.Kernel, error) {
	k, err := p.CreateKernel(name)
	if err != nil {
		return nil, refusal{fmt.Errorf("kernel %s: %w", name, err)}
	}
	b.add(k)
	return k, nil
}

func (b *bag) queue(d *device, profiling bool) (*cl.CommandQueue, error) {
	var q *cl.CommandQueue
	var err error
	if profiling = profiling && !d.untimed.Load(); profiling {
		if q, err = b.context.CreateCommandQueue(d.id, cl.CommandQueueProfilingEnable); err != nil {
			d.withoutTimes(fmt.Errorf("queue: %w", err))
		}
	}
	if !profiling || err != nil {
		q, err = b.context.CreateCommandQueue(d.id, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	b.add(q)
	return q, nil
}

// pinned makes memory that the device can copy from and to by itself, mapped for
// as long as the bag lives.
func (b *bag) pinned(q *cl.CommandQueue, bytes int) (unsafe.Pointer, error) {
	m, err := b.hostBuffer(cl.MemReadWrite, bytes)
	if err != nil {
		return nil, err
	}
	mapped, event, err := q.EnqueueMapBuffer(m, true, cl.MapFlagRead|cl.MapFlagWrite, 0, max(bytes, 4), nil)
	if event != nil {
		event.Release()
	}
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", bytes, err)
	}
	b.add(&mapping{q, m, mapped})
	return mapped.Ptr(), nil
}

// mapping unmaps mapped memory when it is released.
type mapping struct {
	queue  *cl.CommandQueue
	buffer *cl.MemObject
	mapped *cl.MappedMemObject
}

func (m *mapping) Release() {
	// An error leaves the memory mapped until its buffer goes, which is next.
	if event, err := m.queue.EnqueueUnmapMemObject(m.buffer, m.mapped, nil); err == nil {
		event.Release()
	}
	_ = m.queue.Finish()
}

// program is a built program, kept for further use by the device.
type program struct {
	*cl.Program
	users int
}

// maxPrograms bounds how many programs that nobody uses are kept.
const maxPrograms = 128

// program returns the program of a source file with the given options, building
// it if need be. It is to be given back. Nothing stops the driver's compiler once it
// has begun, so ctx is looked at before.
func (d *device) program(ctx context.Context, file, options string) (*program, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := file + " " + options
	if p := d.programs[key]; p != nil {
		p.users++
		return p, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	source, err := sourceOf(file)
	if err != nil {
		return nil, err
	}
	p, err := d.build(source, options)
	if err != nil {
		return nil, fmt.Errorf("build %s.cl: %w", file, err)
	}
	for k, old := range d.programs {
		if len(d.programs) < maxPrograms {
			break
		}
		if old.users == 0 {
			old.Release()
			delete(d.programs, k)
		}
	}
	d.programs[key] = p
	p.users++
	return p, nil
}

var errBuild = errors.New("the driver's compiler says")

// build makes a program, from the user's cache or of its source.
func (d *device) build(source, options string) (*program, error) {
	kept := d.binaries
	if kept == nil {
		return d.compile(source, options)
	}
	of := []string{d.driver, source, options}
	if binary := kept.Get(of...); binary != nil {
		p, err := shim.FromBinary(d.context, d.id, binary, options)
		if err == nil {
			return &program{Program: p}, nil
		}
		kept.Remove(of...)
		d.refuse("a program that it has compiled, and compiles again", err)
	}
	p, err := d.compile(source, options)
	if err != nil {
		return nil, err
	}
	if binary, err := shim.Binary(p.Program); err == nil {
		kept.Put(binary, of...)
	}
	return p, nil
}

// compile compiles a program. The error holds the compiler's log.
func (d *device) compile(source, options string) (*program, error) {
	p, err := d.context.CreateProgramWithSource([]string{source})
	if err != nil {
		return nil, refusal{err}
	}
	if err := p.BuildProgram([]*cl.Device{d.id}, options); err != nil {
		p.Release()
		var log cl.BuildError
		if errors.As(err, &log) {
			err = fmt.Errorf("%w:\n%s", errBuild, strings.TrimRight(string(log), "\x00\n"))
		} else { // that of reading the log
			err = fmt.Errorf("%w nothing: %w", errBuild, err)
		}
		return nil, fmt.Errorf("%w (options %s)", err, options)
	}
	return &program{Program: p}, nil
}

func (d *device) giveBack(p *program) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.users--
}

func sourceOf(file string) (string, error) {
	common, err := kernels.CL.ReadFile("cl/common.cl")
	if err != nil {
		return "", err
	}
	source, err := kernels.CL.ReadFile("cl/" + file + ".cl")
	if err != nil {
		return "", err
	}
	return string(common) + "\n" + string(source), nil
}

// setArgs sets the arguments of a kernel: buffers, and local memory as
// cl.LocalBuffer.
func setArgs(k *cl.Kernel, args []any) error {
	count, err := k.NumArgs()
	if err != nil {
		return err
	}
	if count != len(args) {
		return fmt.Errorf("%d arguments for %d parameters", len(args), count)
	}
	for i, a := range args {
		if m, ok := a.(*cl.MemObject); ok {
			err = shim.KernelOf(k).SetArg(i, shim.BufferOf(m))
		} else {
			err = k.SetArg(i, a)
		}
		if err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
	}
	return nil
}
