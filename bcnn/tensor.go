package bcnn

import (
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn/bits"
)

// DType is the element type of a tensor.
type DType uint8

const (
	Uint8   DType = iota + 1 // image bytes; in plans, numbers of levels too
	Bits                     // ±1 values packed along the channels, see package bits
	Float32                  // IEEE binary32
)

func (d DType) String() string {
	switch d {
	case Uint8:
		return "uint8"
	case Bits:
		return "bits"
	case Float32:
		return "float32"
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// Shape is the shape of one image of a batch: height, width, channels.
// A vector of n values is {1, 1, n}.
type Shape struct {
	H, W, C int
}

func (s Shape) String() string { return fmt.Sprintf("%d×%d×%d", s.H, s.W, s.C) }

// Values returns the number of values, H·W·C.
func (s Shape) Values() int { return s.H * s.W * s.C }

// Pixels returns H·W.
func (s Shape) Pixels() int { return s.H * s.W }

// Elements returns the length of the slice that stores one image of the shape:
// uint64 words for Bits, single values otherwise.
func (s Shape) Elements(d DType) int {
	if d == Bits {
		return s.H * s.W * bits.Words(s.C)
	}
	return s.Values()
}

// Bytes returns the memory that one image of the shape takes.
func (s Shape) Bytes(d DType) int64 {
	size := int64(1)
	switch d {
	case Bits:
		size = 8
	case Float32:
		size = 4
	}
	return int64(s.Elements(d)) * size
}

// Tensor is a batch of N images in the layout NHWC: value c of pixel (y, x) of image n is
// number ((n·H + y)·W + x)·C + c. Exactly the slice that DType names is set; its length is
// N·Shape.Elements(DType). TensorOf takes values in another layout.
type Tensor struct {
	DType DType
	N     int
	Shape Shape
	U8    []uint8
	Words []uint64 // Bits
	F32   []float32
}

// NewTensor allocates a tensor of n images, all zero.
func NewTensor(d DType, n int, s Shape) Tensor {
	t := Tensor{DType: d, N: n, Shape: s}
	switch size := n * s.Elements(d); d {
	case Uint8:
		t.U8 = make([]uint8, size)
	case Bits:
		t.Words = make([]uint64, size)
	case Float32:
		t.F32 = make([]float32, size)
	}
	return t
}

// Images returns n images of the batch, from image from on. They share its memory.
func (t Tensor) Images(from, n int) Tensor {
	size := t.Shape.Elements(t.DType)
	t.N = n
	switch t.DType {
	case Uint8:
		t.U8 = t.U8[from*size : (from+n)*size]
	case Bits:
		t.Words = t.Words[from*size : (from+n)*size]
	case Float32:
		t.F32 = t.F32[from*size : (from+n)*size]
	}
	return t
}

// Check reports whether the tensor has the given type and shape, N ≥ 1, and a
// slice of the right length.
func (t Tensor) Check(d DType, s Shape) error {
	if t.DType != d || t.Shape != s {
		hint := ""
		if t.Shape != s && t.Shape == (Shape{s.C, s.H, s.W}) {
			hint = "; that is the order of NCHW: a Shape is height, width and channels, and TensorOf takes values in this layout"
		}
		return fmt.Errorf("tensor is %v %v, want %v %v%s", t.DType, t.Shape, d, s, hint)
	}
	if t.N < 1 {
		return fmt.Errorf("batch size %d, want at least 1", t.N)
	}
	have := 0
	switch d {
	case Uint8:
		have = len(t.U8)
	case Bits:
		have = len(t.Words)
	case Float32:
		have = len(t.F32)
	}
	if want := t.N * s.Elements(d); have != want {
		return fmt.Errorf("tensor of %d×%v %v has %d elements, want %d", t.N, s, d, have, want)
	}
	return nil
}

// String tells type and size, and the first values.
func (t Tensor) String() string {
	head := fmt.Sprintf("%v %d×%v", t.DType, t.N, t.Shape)
	switch {
	case len(t.U8) > 0:
		return head + few(t.U8, "%d")
	case len(t.Words) > 0:
		return head + few(t.Words, "%#x")
	case len(t.F32) > 0:
		return head + few(t.F32, "%g")
	}
	return head
}

func few[E any](values []E, format string) string {
	var b strings.Builder
	for i, v := range values[:min(len(values), 8)] {
		b.WriteString([]string{": ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, format, v)
	}
	if len(values) > 8 {
		b.WriteString(", …")
	}
	return b.String()
}
