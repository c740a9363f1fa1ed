package gpu

import (
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/kernels"
)

// Geometry holds the sizes of a step. CUDA kernels take the embedded struct as their
// first parameter. OpenCL kernels name the sizes in capital letters: a program that is
// specialised for a step has them as constants, a general one reads them from a table.
type Geometry struct {
	kernels.Geometry
	SegmentWords int32 // 32-bit words of a segment of a row, in dense layers of OpenCL
}

// cudaOnly are the fields that OpenCL kernels do not have: it is when their program is
// built that they learn what they write, and a dimension of the launch counts images.
var cudaOnly = []string{"ToBits", "Images", "Planes", "PartPlanes", "PoolLog2", "RowPixels", "ImageRows", "PerRow", "PerImage"}

// namedFields are the fields that OpenCL kernels name, in the order of their table.
var namedFields = func() (all []reflect.StructField) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Geometry]()) {
		if !f.Anonymous && !slices.Contains(cudaOnly, f.Name) {
			all = append(all, f)
		}
	}
	return all
}()

// Names are the names of the sizes in OpenCL kernels, in the order of Values.
func Names() []string {
	names := make([]string, len(namedFields))
	for i, f := range namedFields {
		names[i] = capitals(f.Name)
	}
	return names
}

// capitals writes a field's name as a macro's: InWords is IN_WORDS.
func capitals(field string) string {
	var b strings.Builder
	for i, r := range field {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// Values are the sizes that OpenCL kernels name, in the order of Names.
func (g Geometry) Values() []int32 {
	v := reflect.ValueOf(g)
	values := make([]int32, len(namedFields))
	for i, f := range namedFields {
		values[i] = int32(v.FieldByIndex(f.Index).Int())
	}
	return values
}

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// words32 is the number of 32-bit words that store n channels of a pixel.
func words32(n int) int { return 2 * bits.Words(n) }

// geometry starts the geometry of a step with the shapes of its tensors.
func (s Step) geometry() Geometry {
	in, out := s.In.Shape, s.Out.Shape
	return Geometry{Geometry: kernels.Geometry{
		InH: int32(in.H), InW: int32(in.W), InC: int32(in.C), InWords: int32(words32(in.C)),
		OutH: int32(out.H), OutW: int32(out.W), OutC: int32(out.C), OutWords: int32(words32(out.C)),
		ToBits: flag(s.Out.DType == bcnn.Bits), InPlanes: 1, OutPlanes: 1,
	}}
}

// setPlanes makes the heights those of the images that planes belong to.
func (g *Geometry) setPlanes(in, out int) {
	g.InPlanes, g.OutPlanes = int32(max(in, 1)), int32(max(out, 1))
	g.InH /= g.InPlanes
	g.OutH /= g.OutPlanes
}

func (g *Geometry) setWindow(w bcnn.Window) {
	g.Kh, g.Kw = int32(w.KH), int32(w.KW)
	g.StrideH, g.StrideW = int32(w.StrideH), int32(w.StrideW)
	g.DilationH, g.DilationW = int32(w.DilationH), int32(w.DilationW)
	g.PadT, g.PadL = int32(w.Pad.Top), int32(w.Pad.Left)
}
