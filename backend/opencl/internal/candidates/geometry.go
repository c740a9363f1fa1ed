package candidates

import (
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
)

// Form holds what a general program must know when it is built, too.
type Form struct {
	Lanes    int  // output channels of a work-item
	Bits     bool // the output is bits
	Mixed    bool // the lanes of a work-item belong to different groups
	Bytes    bool // the input is bytes
	Int8     bool // of integer weights that are not ±1
	Pooled   bool // a work-item of variant vectors has the pixels of a pooling window
	Uniform  bool // a work-group has one block of output channels
	Dot      DotProduct
	Source   int // of affine: 1 bytes, 2 bits, 3 floats
	GemmTile int
}

// DotProduct is a function of OpenCL C for the dot product of four bytes.
type DotProduct int

const (
	NoDot  DotProduct = iota // it is written out
	ArmDot                   // of cl_arm_integer_dot_product_int8
	KHRDot                   // of cl_khr_integer_dot_product
)

func (f Form) options() string {
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	language := "1.2"
	if f.Dot == KHRDot { // compilers offer it to programs of newer versions alone
		language = "3.0"
	}
	return fmt.Sprintf("-cl-std=CL%s -DLANES=%d -DTO_BITS=%d -DMIXED=%d -DBYTES=%d -DINT8=%d -DPOOLED=%d -DUNIFORM=%d -DDOT_PRODUCT=%d -DSOURCE=%d -DGEMM_TILE=%d",
		language, max(f.Lanes, 1), flag(f.Bits), flag(f.Mixed), flag(f.Bytes), flag(f.Int8), flag(f.Pooled), flag(f.Uniform), f.Dot, f.Source, max(f.GemmTile, 1))
}

// Options define the names of the form and of the geometry for the compiler: the
// geometry as numbers in a specialised program, as places in the table g, which is the
// kernel's last argument, in a general one.
func (s Spec) Options(specialised bool) string {
	var b strings.Builder
	b.WriteString(s.Form.options())
	values := s.G.Values()
	for i, name := range gpu.Names() {
		if specialised {
			fmt.Fprintf(&b, " -D%s=%d", name, values[i])
		} else {
			fmt.Fprintf(&b, " -D%s=g[%d]", name, i)
		}
	}
	return b.String()
}
