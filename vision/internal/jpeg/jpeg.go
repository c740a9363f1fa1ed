// Package jpeg decodes JPEG files at a half, a quarter or an eighth of their size, from the
// low frequencies of each block alone: most of the time that a photo takes is saved. It
// reads what cameras write, sequential and progressive Huffman coding of 8 bits (ITU-T T.81);
// image/jpeg, whose images have the whole size, reads a little more.
package jpeg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"github.com/bitcnn/bitcnn/internal/num"
)

// ErrUnsupported is about a file that is coded in another way. image/jpeg may know it.
var ErrUnsupported = errors.New("jpeg: a way of coding that is not known")

var errShort = errors.New("jpeg: the file ends too early")

const (
	startOfImage, endOfImage = 0xd8, 0xd9
	startOfFrame0            = 0xc0 // baseline
	startOfFrame1            = 0xc1 // extended sequential
	startOfFrame2            = 0xc2 // progressive
	startOfFrame15           = 0xcf
	huffmanTables            = 0xc4
	jpegExtension            = 0xc8
	arithmeticConditioning   = 0xcc
	startOfScan              = 0xda
	quantisationTables       = 0xdb
	restartInterval          = 0xdd
	restart0, restart7       = 0xd0, 0xd7
	app14                    = 0xee
)

const blockSize = 64

type decoder struct {
	data        []byte
	at          int
	scale       int
	side        int // of a decoded block
	last        int // the last coefficient that is needed, in zigzag order
	progressive bool

	width, height int
	mcusX, mcusY  int // of the whole image
	components    []component
	quantisation  [4][blockSize]int32
	huffman       [2][4]table // of DC and AC
	restart       int         // MCUs between restarts, 0 without any
	adobe         bool        // the segment is there
	colours       byte        // the transform that it names
	clean         []byte      // a scan without stuffing
}

type component struct {
	id, quantisation byte
	h, v             int
	blocksX, blocksY int // that are stored, with those that stand over
	pix              []byte
	stride           int
	coefficients     []int16 // progressive: of each block, in zigzag order
	dc               int32   // of the block before
}

// Decode decodes a file at 1/scale of its size, scale 2, 4 or 8; of sides that do not divide, the
// last pixels are of blocks that stand over. Every block of 8×8 becomes the inverse DCT of as
// many of its lowest frequencies as it has pixels, in whole numbers, so that the result is the
// same on every machine. It is an *image.Gray or an *image.YCbCr with the subsampling of the file.
func Decode(data []byte, scale int) (image.Image, error) {
	d := &decoder{data: data, scale: scale}
	switch scale {
	case 2:
		d.side, d.last = 4, 24
	case 4:
		d.side, d.last = 2, 4
	case 8:
		d.side, d.last = 1, 0
	default:
		return nil, fmt.Errorf("jpeg: a scale of 1/%d", scale)
	}
	return d.decode()
}

func (d *decoder) decode() (image.Image, error) {
	if len(d.data) < 2 || d.data[0] != 0xff || d.data[1] != startOfImage {
		return nil, ErrUnsupported
	}
	d.at = 2
	for {
		marker, err := d.marker()
		if err != nil {
			return nil, err
		}
		if marker == endOfImage {
			return d.image()
		}
		segment, err := d.segment()
		if err != nil {
			return nil, err
		}
		switch {
		case marker == huffmanTables:
			err = d.readHuffman(segment)
		case marker == quantisationTables:
			err = d.readQuantisation(segment)
		case marker == restartInterval:
			if len(segment) != 2 {
				return nil, errShort
			}
			d.restart = int(binary.BigEndian.Uint16(segment))
		case marker == startOfFrame0, marker == startOfFrame1, marker == startOfFrame2:
			d.progressive = marker == startOfFrame2
			err = d.readFrame(segment)
		case marker >= startOfFrame0 && marker <= startOfFrame15 && marker != jpegExtension, marker == arithmeticConditioning:
			err = ErrUnsupported
		case marker == app14 && len(segment) >= 12 && string(segment[:5]) == "Adobe":
			d.adobe, d.colours = true, segment[11]
		case marker == startOfScan:
			err = d.readScan(segment)
		}
		if err != nil {
			return nil, err
		}
	}
}

// marker goes to behind the next marker.
func (d *decoder) marker() (byte, error) {
	if d.at+2 > len(d.data) {
		return 0, errShort
	}
	if d.data[d.at] != 0xff {
		return 0, ErrUnsupported // something between segments
	}
	for d.at < len(d.data) && d.data[d.at] == 0xff { // fill bytes
		d.at++
	}
	if d.at == len(d.data) {
		return 0, errShort
	}
	m := d.data[d.at]
	d.at++
	if m == 0 || m == startOfImage || restart0 <= m && m <= restart7 {
		return 0, ErrUnsupported
	}
	return m, nil
}

// segment returns the bytes of a segment behind its length.
func (d *decoder) segment() ([]byte, error) {
	if d.at+2 > len(d.data) {
		return nil, errShort
	}
	size := int(binary.BigEndian.Uint16(d.data[d.at:]))
	if size < 2 || d.at+size > len(d.data) {
		return nil, errShort
	}
	s := d.data[d.at+2 : d.at+size]
	d.at += size
	return s, nil
}

func (d *decoder) readQuantisation(b []byte) error {
	for len(b) > 0 {
		precision, id := b[0]>>4, b[0]&15
		bytes := blockSize << precision
		if precision > 1 || id > 3 || len(b) < 1+bytes {
			return ErrUnsupported
		}
		b = b[1:]
		for i := range blockSize {
			if precision == 0 {
				d.quantisation[id][i] = int32(b[i])
			} else {
				d.quantisation[id][i] = int32(binary.BigEndian.Uint16(b[2*i:]))
			}
		}
		b = b[bytes:]
	}
	return nil
}

func (d *decoder) readFrame(b []byte) error {
	if len(b) < 6 || len(b) != 6+3*int(b[5]) || d.components != nil {
		return ErrUnsupported
	}
	d.height, d.width = int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:]))
	if b[0] != 8 || d.width == 0 || d.height == 0 || b[5] != 1 && b[5] != 3 {
		return ErrUnsupported
	}
	d.components = make([]component, b[5])
	for i := range d.components {
		f := b[6+3*i:]
		c := &d.components[i]
		*c = component{id: f[0], h: int(f[1] >> 4), v: int(f[1] & 15), quantisation: f[2]}
		if c.quantisation > 3 {
			return ErrUnsupported
		}
		for _, before := range d.components[:i] {
			if before.id == c.id {
				return ErrUnsupported
			}
		}
	}
	first := &d.components[0]
	if len(d.components) == 1 {
		first.h, first.v = 1, 1 // one block is a unit of a single component, T.81, A.2.2
	} else if _, ok := d.subsampling(); !ok {
		return ErrUnsupported
	}
	d.mcusX, d.mcusY = num.CeilDiv(d.width, 8*first.h), num.CeilDiv(d.height, 8*first.v)
	for i := range d.components {
		c := &d.components[i]
		c.blocksX, c.blocksY = d.mcusX*c.h, d.mcusY*c.v
		c.stride = c.blocksX * d.side
		c.pix = make([]byte, c.stride*c.blocksY*d.side)
		if d.progressive {
			c.coefficients = make([]int16, c.blocksX*c.blocksY*d.stored())
		}
	}
	return nil
}

// stored is how many coefficients of a block are kept: the mean alone if no other is needed.
func (d *decoder) stored() int {
	if d.last == 0 {
		return 1
	}
	return blockSize
}

// subsampling returns how the chroma is subsampled.
func (d *decoder) subsampling() (image.YCbCrSubsampleRatio, bool) {
	y, cb, cr := d.components[0], d.components[1], d.components[2]
	if cb.h != 1 || cb.v != 1 || cr.h != 1 || cr.v != 1 {
		return 0, false
	}
	switch [2]int{y.h, y.v} {
	case [2]int{1, 1}:
		return image.YCbCrSubsampleRatio444, true
	case [2]int{1, 2}:
		return image.YCbCrSubsampleRatio440, true
	case [2]int{2, 1}:
		return image.YCbCrSubsampleRatio422, true
	case [2]int{2, 2}:
		return image.YCbCrSubsampleRatio420, true
	case [2]int{4, 1}:
		return image.YCbCrSubsampleRatio411, true
	case [2]int{4, 2}:
		return image.YCbCrSubsampleRatio410, true
	}
	return 0, false
}

// image puts the components together.
func (d *decoder) image() (image.Image, error) {
	if d.components == nil || d.clean == nil {
		return nil, errShort
	}
	if d.progressive {
		d.transformAll()
	}
	size := image.Rect(0, 0, num.CeilDiv(d.width, d.scale), num.CeilDiv(d.height, d.scale))
	y := d.components[0]
	if len(d.components) == 1 {
		return &image.Gray{Pix: y.pix, Stride: y.stride, Rect: size}, nil
	}
	if d.isRGB() {
		return nil, ErrUnsupported
	}
	cb, cr := d.components[1], d.components[2]
	ratio, _ := d.subsampling()
	return &image.YCbCr{Y: y.pix, Cb: cb.pix, Cr: cr.pix, YStride: y.stride, CStride: cb.stride, SubsampleRatio: ratio, Rect: size}, nil
}

// isRGB reports whether the components are no luma and chroma, as image/jpeg does.
func (d *decoder) isRGB() bool {
	if d.adobe {
		return d.colours == 0
	}
	c := d.components
	return c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B'
}
