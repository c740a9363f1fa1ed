package openvino

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/num"
	"github.com/bitcnn/bitcnn/internal/text"
)

// constant is a tensor whose values are known. Its values are in one of floats, ints and bits.
type constant struct {
	typ    string // of the elements, as IR 10 calls it
	dims   []int
	floats []float32
	ints   []int64
	bits   []byte // of u1: element i is bit i%8 of byte i/8, 1 for +1 and 0 for −1
	// open says that ints may hold batchSize, the size of a batch that the file leaves open.
	open bool
}

const batchSize = math.MinInt64

func (c *constant) len() int { return num.Product(c.dims...) }

// elementBits are the sizes of types of elements.
var elementBits = map[string]int{
	"f32": 32, "f16": 16, "u1": 1, "boolean": 8,
	"i64": 64, "i32": 32, "i16": 16, "i8": 8, "u64": 64, "u32": 32, "u16": 16, "u8": 8,
}

// isInteger reports whether a type is one of integers.
func isInteger(typ string) bool {
	return typ != "f32" && typ != "f16" && typ != "u1" && elementBits[typ] > 0
}

// constantLayer reads a Const.
func constantLayer(im *importer, n *node) operand {
	typ := n.text("element_type", "")
	if elementBits[typ] == 0 {
		n.fail("element_type", "f32, f16, u1, boolean, or integers of 8 to 64 bits")
	}
	if _, ok := n.list["shape"]; !ok {
		n.fail("shape", "dimensions")
	}
	dims := n.numbers("shape", 0, maxValues)
	return operand{c: im.decode(n, typ, dims, n.text("offset", ""), n.text("size", ""))}
}

// section returns a part of the .bin.
func (im *importer) section(offset, size string) []byte {
	from, err := strconv.ParseUint(offset, 10, 63)
	length, err2 := strconv.ParseUint(size, 10, 63)
	if err != nil || err2 != nil {
		try.Failf("its values are at offset %s, of size %s, want numbers", text.Quote(short(offset)), text.Quote(short(size)))
	}
	if all := uint64(len(im.bin)); from > all || length > all-from {
		try.Failf("its values are the %d bytes from byte %d of the .bin, which has %d bytes", length, from, all)
	}
	return im.bin[from : from+length]
}

// decode reads a tensor of the .bin.
func (im *importer) decode(n *node, typ string, dims []int, offset, size string) *constant {
	data := im.section(offset, size)
	count, wide := num.Product(dims...), elementBits[typ]
	if count > maxValues || int64(count)*4 > im.limits.TensorBytes {
		try.Failf("a constant of shape %v has too many values; Limits.TensorBytes allows more, up to %d values", dims, maxValues)
	}
	if want := (int64(count)*int64(wide) + 7) / 8; int64(len(data)) != want {
		try.Failf("a constant of %s of shape %v takes %d bytes, but its size is %d", typ, dims, want, len(data))
	}
	c := &constant{typ: typ, dims: dims}
	switch {
	case typ == "u1":
		try.Check(im.budget.Charge(int64(len(data))))
		c.bits = data
	case isInteger(typ):
		c.ints = im.decodeInts(typ, data, count)
	default:
		c.floats = im.decodeFloats(typ, data, count)
	}
	return c
}

func (im *importer) decodeFloats(typ string, data []byte, count int) []float32 {
	list := im.newFloats(count)
	try.Check(im.budget.Loop(count, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if typ == "f16" {
				list[i] = f32.FromHalf(binary.LittleEndian.Uint16(data[2*i:]))
			} else {
				list[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
			}
		}
	}))
	return list
}

func (im *importer) decodeInts(typ string, data []byte, count int) []int64 {
	try.Check(im.budget.Charge(8 * int64(count)))
	list := make([]int64, count)
	wide := elementBits[typ] / 8
	signed := typ[0] == 'i'
	try.Check(im.budget.Loop(count, func(lo, hi int) {
		var word [8]byte
		for i := lo; i < hi; i++ {
			copy(word[:], data[i*wide:][:wide])
			v := int64(binary.LittleEndian.Uint64(word[:]))
			if unused := 64 - 8*wide; signed {
				v = v << unused >> unused
			}
			list[i] = v
		}
	}))
	if typ == "u64" && slices.ContainsFunc(list, func(v int64) bool { return v < 0 }) {
		try.Failf("a constant of u64 has a value above 2⁶³, which is not supported")
	}
	return list
}

func (im *importer) newFloats(n int) []float32 {
	try.Check(im.budget.Charge(4 * int64(n)))
	return make([]float32, n)
}

// integers returns a short list, such as a shape or axes. unknown is whether it may have the
// batch size that the file leaves open.
func (c *constant) integers(unknown bool) []int64 {
	if c.ints == nil || len(c.dims) > 1 || c.len() > maxDims {
		try.Failf("a tensor of %s of shape %v is no list of at most %d integers", c.typ, c.dims, maxDims)
	}
	if !unknown && c.open && slices.Contains(c.ints, batchSize) {
		try.Failf("it depends on the size of the batch, which the file leaves open")
	}
	return c.ints
}

// checkReal refuses a constant that is not f32.
func (c *constant) checkReal() {
	if c.typ != "f32" {
		try.Failf("a constant of %s is not supported here, want f32; a Convert makes one of it", c.typ)
	}
}
