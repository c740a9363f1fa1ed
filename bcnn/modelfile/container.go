package modelfile

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	ieee "github.com/bitcnn/bitcnn/internal/f32"
	"github.com/bitcnn/bitcnn/internal/text"
)

const (
	format = "bcnn"
	newest = borderVersion

	maxHeader = 4 << 20
	maxDims   = 8
	// The data starts at a multiple of this.
	alignment = 64
)

// Data types, as safetensors calls them.
const (
	u64  = "U64"
	f64  = "F64"
	i32  = "I32"
	f32  = "F32"
	f16  = "F16"
	bf16 = "BF16"
	i8   = "I8"
	u8   = "U8"
)

func sizeOf(dtype string) int64 {
	switch dtype {
	case u64, f64:
		return 8
	case i32, f32:
		return 4
	case f16, bf16:
		return 2
	case i8, u8:
		return 1
	}
	return 0
}

// tensor is one array of a file. The slice that dtype names is set.
type tensor struct {
	name  string
	dtype string
	shape []int64
	u64   []uint64
	i32   []int32
	f32   []float32
	i8    []int8
	f64   []float64
	u16   []uint16 // of F16 and BF16, which are read as f32
	u8    []uint8
}

func (t *tensor) bytes() int64 {
	return 8*int64(len(t.u64)) + 4*int64(len(t.i32)) + 4*int64(len(t.f32)) + int64(len(t.i8)) + 8*int64(len(t.f64)) + 2*int64(len(t.u16)) + int64(len(t.u8))
}

// container is what a file holds.
type container struct {
	metadata
	tensors map[string]*tensor
}

// Members of the header's JSON.
const metadataKey = "__metadata__"

type metadata struct {
	Format  string `json:"format"`
	Version string `json:"version"`
	Network string `json:"network"`
	// Absorbed and Deviations are lists of texts as JSON; earlier readers do not know them.
	Absorbed   string `json:"absorbed,omitempty"`
	Deviations string `json:"deviations,omitempty"`
	SHA256     string `json:"sha256"`
}

// version returns the version as a number, 0 if it is none that there is.
func (m metadata) version() int {
	for v := 1; v <= newest; v++ {
		if m.Version == strconv.Itoa(v) {
			return v
		}
	}
	return 0
}

type tensorInfo struct {
	DType   string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// unsealed stands in the place of the checksum while it is computed.
var unsealed = strings.Repeat("0", 2*sha256.Size)

// sorted returns tensors as a file has them: those of 64-bit words come first, so that
// every tensor is aligned to its element size.
func sorted(tensors []*tensor) []*tensor {
	tensors = slices.Clone(tensors)
	slices.SortStableFunc(tensors, func(a, b *tensor) int {
		return cmp.Compare(sizeOf(b.dtype), sizeOf(a.dtype))
	})
	return tensors
}

// makeHeader returns the header of a file, without its length in front of it and with
// zeros for its checksum, and the bytes of the sorted tensors behind it.
func makeHeader(meta metadata, tensors []*tensor) (header bytes.Buffer, size int64, err error) {
	member := func(key string, value any) error {
		k, err := marshal(key)
		if err != nil {
			return err
		}
		v, err := marshal(value)
		if err != nil {
			return err
		}
		separator := byte(',')
		if header.Len() == 0 {
			separator = '{'
		}
		header.WriteByte(separator)
		header.Write(k)
		header.WriteByte(':')
		header.Write(v)
		return nil
	}
	meta.Format, meta.SHA256 = format, unsealed
	if err := member(metadataKey, meta); err != nil {
		return header, 0, err
	}
	for _, t := range tensors {
		info := tensorInfo{t.dtype, t.shape, []int64{size, size + t.bytes()}}
		if err := member(t.name, info); err != nil {
			return header, 0, err
		}
		size += t.bytes()
	}
	header.WriteByte('}')
	for (8+header.Len())%alignment != 0 {
		header.WriteByte(' ')
	}
	if header.Len() > maxHeader {
		return header, 0, fmt.Errorf("the header of the file takes %d bytes, at most %d are allowed", header.Len(), maxHeader)
	}
	// Readers find the checksum's place by its digits.
	if bytes.Count(header.Bytes(), []byte(unsealed)) != 1 {
		return header, 0, fmt.Errorf("a name or label has %d zeros in a row, which the file format reserves for its checksum", len(unsealed))
	}
	return header, size, nil
}

// writeContainer returns the bytes of a file of sorted tensors.
func writeContainer(meta metadata, tensors []*tensor) ([]byte, error) {
	header, size, err := makeHeader(meta, tensors)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, 8+int64(header.Len())+size)
	b = binary.LittleEndian.AppendUint64(b, uint64(header.Len()))
	b = append(b, header.Bytes()...)
	for _, t := range tensors {
		for _, v := range t.u64 {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		for _, v := range t.i32 {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
		for _, v := range t.f32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		for _, v := range t.i8 {
			b = append(b, byte(v))
		}
		for _, v := range t.f64 {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		for _, v := range t.u16 {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
		b = append(b, t.u8...)
	}
	sum := sha256.Sum256(b)
	copy(b[bytes.Index(b, []byte(unsealed)):], hex.EncodeToString(sum[:]))
	return b, nil
}

// marshal is json.Marshal without escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func (d *decoder) readContainer(r io.ReaderAt, size int64) (*container, error) {
	header, err := d.readHeader(r, size)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	if err := d.unmarshal(header, &members); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	meta, err := d.parseMetadata(members[metadataKey])
	if err != nil {
		return nil, err
	}
	delete(members, metadataKey)
	dataAt := 8 + int64(len(header))
	tensors, err := d.parseTensors(members, size-dataAt, meta.version())
	if err != nil {
		return nil, err
	}

	// The checksum covers the whole file with its own digits taken as zeros.
	at := bytes.Index(header, []byte(meta.SHA256))
	if at < 0 || bytes.Count(header, []byte(meta.SHA256)) != 1 {
		return nil, errors.New("header: the checksum's digits must occur exactly once")
	}
	hash := sha256.New()
	hash.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(header))))
	hash.Write(header[:at])
	hash.Write([]byte(unsealed))
	hash.Write(header[at+len(unsealed):])
	data := io.TeeReader(io.NewSectionReader(r, dataAt, size-dataAt), hash)
	c := &container{metadata: meta, tensors: make(map[string]*tensor, len(tensors))}
	for _, t := range tensors {
		if err := d.readTensor(t, data); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", text.Quote(t.name), err)
		}
		c.tensors[t.name] = t
	}
	if hex.EncodeToString(hash.Sum(nil)) != meta.SHA256 {
		return nil, errors.New("checksum mismatch: the file is damaged")
	}
	return c, nil
}

func (d *decoder) readHeader(r io.ReaderAt, size int64) ([]byte, error) {
	if size < 8 {
		return nil, fmt.Errorf("not a .bcnn file: only %d bytes", size)
	}
	var prefix [8]byte
	if _, err := r.ReadAt(prefix[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > maxHeader {
		return nil, fmt.Errorf("not a .bcnn file: a header of %d bytes, at most %d are allowed", n, maxHeader)
	}
	if int64(n) > size-8 {
		return nil, fmt.Errorf("truncated or not a .bcnn file: a header of %d bytes in a file of %d", n, size)
	}
	if err := d.Charge(int64(n)); err != nil {
		return nil, err
	}
	header := make([]byte, n)
	if _, err := r.ReadAt(header, 8); err != nil && !(err == io.EOF && size == 8+int64(n)) {
		return nil, err
	}
	if len(header) == 0 || header[0] != '{' {
		return nil, errors.New("not a .bcnn file: the header is no JSON object")
	}
	if !utf8.Valid(header) { // package json would put other characters in its place
		return nil, errors.New("header: not UTF-8")
	}
	return header, nil
}

func (d *decoder) parseMetadata(raw json.RawMessage) (metadata, error) {
	var meta metadata
	var values map[string]string // other programs may have added entries
	if raw == nil {
		return meta, errors.New("a safetensors file but no .bcnn file: it has no metadata; weights alone are no network")
	}
	if err := d.unmarshal(raw, &values); err != nil {
		return meta, fmt.Errorf("metadata: %w", err)
	}
	meta = metadata{values["format"], values["version"], values["network"], values["absorbed"], values["deviations"], values["sha256"]}
	switch {
	case meta.Format != format:
		return meta, fmt.Errorf("a safetensors file but no .bcnn file: its format is %s, not %q", text.Quote(meta.Format), format)
	case meta.version() == 0:
		return meta, fmt.Errorf("version %s of the format is unknown, this program reads versions 1 to %d", text.Quote(meta.Version), newest)
	case len(meta.SHA256) != len(unsealed):
		return meta, fmt.Errorf("metadata: the checksum has %d digits, want %d", len(meta.SHA256), len(unsealed))
	}
	return meta, nil
}

// parseTensors returns the tensors in the order of their data, which must fill
// size bytes without holes. They are not allocated yet.
func (d *decoder) parseTensors(members map[string]json.RawMessage, size int64, version int) ([]*tensor, error) {
	type place struct {
		*tensor
		begin, end int64
	}
	places := make([]place, 0, len(members))
	// In a fixed order, so that one file always gives one error.
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var info tensorInfo
		if err := d.unmarshal(members[name], &info); err != nil {
			return nil, fmt.Errorf("tensor %s: %w", text.Quote(name), err)
		}
		if len(info.Offsets) != 2 {
			return nil, fmt.Errorf("tensor %s: %d offsets, want 2", text.Quote(name), len(info.Offsets))
		}
		p := place{&tensor{name: name, dtype: info.DType, shape: info.Shape}, info.Offsets[0], info.Offsets[1]}
		if p.begin < 0 || p.end < p.begin || p.end > size {
			return nil, fmt.Errorf("tensor %s: bytes %d to %d lie outside of %d bytes of data: truncated file or wrong offsets", text.Quote(name), p.begin, p.end, size)
		}
		want, err := p.tensor.checkedSize(size)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", text.Quote(name), err)
		}
		if newTypes[info.DType] && version < packedVersion {
			return nil, fmt.Errorf("tensor %s: data type %s needs version %d of the format, this file has version %d", text.Quote(name), info.DType, packedVersion, version)
		}
		if want > d.limits.TensorBytes {
			return nil, fmt.Errorf("tensor %s takes %d bytes, at most %d are allowed; Limits.TensorBytes allows more", text.Quote(name), want, d.limits.TensorBytes)
		}
		if want != p.end-p.begin {
			return nil, fmt.Errorf("tensor %s: %s %v takes %d bytes, the offsets give %d", text.Quote(name), info.DType, info.Shape, want, p.end-p.begin)
		}
		places = append(places, p)
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.begin, b.begin) })
	at := int64(0)
	tensors := make([]*tensor, len(places))
	for i, p := range places {
		if p.begin != at {
			return nil, fmt.Errorf("tensor %s begins at byte %d, want %d: tensors must follow each other without gaps", text.Quote(p.name), p.begin, at)
		}
		at = p.end
		tensors[i] = p.tensor
	}
	if at != size {
		return nil, fmt.Errorf("%d bytes of data belong to no tensor", size-at)
	}
	return tensors, nil
}

// checkedSize returns the bytes that the tensor's type and shape ask for, if
// they are at most limit.
func (t *tensor) checkedSize(limit int64) (int64, error) {
	size := sizeOf(t.dtype)
	if size == 0 {
		return 0, fmt.Errorf("data type %s, want %s, %s, %s, %s, %s, %s, %s or %s", text.Quote(t.dtype), u64, f64, i32, f32, f16, bf16, i8, u8)
	}
	if len(t.shape) > maxDims {
		return 0, fmt.Errorf("%d dimensions, at most %d are allowed", len(t.shape), maxDims)
	}
	for _, d := range t.shape {
		if d < 1 {
			return 0, fmt.Errorf("shape %v is empty", t.shape)
		}
		if d > limit/size {
			return 0, fmt.Errorf("shape %v does not fit into the file", t.shape)
		}
		size *= d
	}
	return size, nil
}

// chunk is how much of a tensor is read at once, in bytes.
const chunk = 1 << 18

// readTensor allocates the tensor and fills it.
func (d *decoder) readTensor(t *tensor, r io.Reader) error {
	elements := 1
	for _, n := range t.shape {
		elements *= int(n)
	}
	switch t.dtype {
	case u64:
		t.u64 = make([]uint64, elements)
		return readValues(d, r, t.u64, 8, binary.LittleEndian.Uint64)
	case i32:
		t.i32 = make([]int32, elements)
		return readValues(d, r, t.i32, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
	case f64:
		t.f64 = make([]float64, elements)
		return readValues(d, r, t.f64, 8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	case f16, bf16: // which are numbers like others from here on
		if bytes := 4 * int64(elements); bytes > d.limits.TensorBytes {
			return fmt.Errorf("it takes %d bytes, at most %d are allowed; Limits.TensorBytes allows more", bytes, d.limits.TensorBytes)
		}
		from := ieee.FromHalf
		if t.dtype == bf16 {
			from = fromBrain
		}
		t.dtype, t.f32 = f32, make([]float32, elements)
		return readValues(d, r, t.f32, 2, func(b []byte) float32 { return from(binary.LittleEndian.Uint16(b)) })
	case u8:
		t.u8 = make([]uint8, elements)
		return readValues(d, r, t.u8, 1, func(b []byte) uint8 { return b[0] })
	case i8:
		t.i8 = make([]int8, elements)
		return readValues(d, r, t.i8, 1, func(b []byte) int8 { return int8(b[0]) })
	default:
		t.f32 = make([]float32, elements)
		return readValues(d, r, t.f32, 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	}
}

// readValues fills values of the given size in bytes.
func readValues[T any](d *decoder, r io.Reader, values []T, size int, decode func([]byte) T) error {
	buf := make([]byte, min(chunk, size*len(values)))
	for len(values) > 0 {
		n := min(len(values), len(buf)/size)
		if err := d.Charge(int64(n * size)); err != nil {
			return err
		}
		if _, err := io.ReadFull(r, buf[:n*size]); err != nil {
			return err
		}
		for i := range n {
			values[i] = decode(buf[i*size:])
		}
		values = values[n:]
	}
	return nil
}
