//go:build opencl && cgo && ((linux && (amd64 || arm64)) || (windows && amd64))

package opencl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"unsafe"

	"github.com/jgillich/go-opencl/cl"

	"github.com/bitcnn/bitcnn/backend/opencl/internal/shim"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/kernels"
)

// probe compares float32 arithmetic of the device with the numeric contract, and says what it
// lacks, or nothing. What a driver says of itself does not tell whether its compiler makes a·b + c
// one operation although told not to.
func (d *device) probe() (string, error) {
	source, err := kernels.CL.ReadFile("cl/probe.cl")
	if err != nil {
		return "", err
	}
	return d.probeSource(string(source))
}

// probeSource is probe with another program, which a test spoils.
func (d *device) probeSource(source string) (string, error) {
	in := probes()
	out, err := d.runProbe(source, in)
	if err != nil {
		return "", fmt.Errorf("probe of its arithmetic: %w", err)
	}
	var apart, whole, kept = true, true, true
	for i := 0; i < len(in)/3; i++ {
		a, b, c := in[3*i], in[3*i+1], in[3*i+2]
		product := float32(a * b)
		p := c
		for range 7 {
			p = float32(p*a) + b
		}
		same := func(k int, want float32) bool { return math.Float32bits(out[4*i+k]) == math.Float32bits(want) }
		// Numbers so small tell of subnormal ones alone.
		if subnormal(a) || subnormal(product) || subnormal(product+c) {
			kept = kept && same(2, f32.FMA(a, b, c)) && same(3, product)
			continue
		}
		apart = apart && same(0, product+c) && same(1, p)
		whole = whole && same(2, f32.FMA(a, b, c))
		kept = kept && same(3, product)
	}
	var lacks []string
	for _, l := range []struct {
		has  bool
		name string
	}{{apart, "products that are rounded before they are added to"}, {whole, "fma"}, {kept, "denormals"}} {
		if !l.has {
			lacks = append(lacks, l.name)
		}
	}
	return lacking(lacks), nil
}

// subnormal reports whether a number is one, and not zero.
func subnormal(v float32) bool { return v != 0 && max(v, -v) < 0x1p-126 }

// lacking says what float32 arithmetic lacks, or nothing.
func lacking(what []string) string {
	if len(what) == 0 {
		return ""
	}
	return "its float32 arithmetic lacks " + strings.Join(what, ", ")
}

// probes are numbers a, b and c of which a·b + c is another one if it is rounded once, some that
// are subnormal or make subnormal ones, and sums that are zero, of either sign.
func probes() []float32 {
	negative := float32(math.Copysign(0, -1))
	list := []float32{
		0x1p-140, 1, 1, 0x1p-130, -1.5, 1, 0x1p-100, 0x1.8p-40, 1, -0x1p-75, 0x1.4p-70, 1, 1 + 0x1p-12, 1 + 0x1p-12, -1 - 0x1p-11,
		0x1p-126, 1, -0x1.8p-126, 0x1.000002p-126, 1, -0x1p-126, 0x1p-100, 0x1p-40, 0x1p-126, // subnormal sums
		-3, 0, 0, 3, 0, 0, -3, 0, negative, 3, negative, negative, 0, 0, negative, 2, 3, -6, -2, 3, 6, // signs of zeros
		1, negative, 0, 1, 0, negative, negative, negative, negative,
	}
	r := rand.New(rand.NewPCG(1, 2))
	for len(list) < 3*64 {
		a, b := 1+r.Float32(), 1+r.Float32()
		c := -float32(a * b) // what is left is the rounding of the product
		if f32.FMA(a, b, c) != 0 {
			list = append(list, a, b, c)
		}
	}
	return list
}

// runProbe runs the kernel on three numbers each, and returns four of each.
func (d *device) runProbe(source string, in []float32) ([]float32, error) {
	own := bag{context: d.context}
	defer own.release()
	p, err := d.build(source, d.form())
	if err != nil {
		return nil, err
	}
	defer p.Release()
	k, err := own.kernel(p, "probe")
	if err != nil {
		return nil, err
	}
	from, err := upload(&own, in)
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(in)/3*4)
	to, err := own.buffer(cl.MemReadWrite, 4*len(out))
	if err != nil {
		return nil, err
	}
	if err := setArgs(k, []any{from, to}); err != nil {
		return nil, err
	}
	object, err := own.queue(d, false)
	if err != nil {
		return nil, err
	}
	queue, sizes := shim.QueueOf(object), shim.MakeSizes(len(in)/3, 1, 1, 1)
	if err := queue.Launch(shim.KernelOf(k), &sizes, nil); err != nil {
		return nil, err
	}
	return out, queue.Read(shim.BufferOf(to), 4*len(out), unsafe.Pointer(unsafe.SliceData(out)), true)
}
