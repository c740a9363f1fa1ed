// Package jpeg decodes JPEG files, at their size or at a half, a quarter or an eighth of it, from
// the low frequencies of each block alone: most of the time that a large photo takes is saved. It
// reads sequential and progressive Huffman coding of 8 bits (ITU-T T.81) of one, three or four
// components in any subsampling. At full size the pixels are those of Go's image/jpeg, where that
// reads a file rightly.
package jpeg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"

	"github.com/bitcnn/bitcnn/internal/num"
)

const (
	startOfImage, endOfImage = 0xd8, 0xd9
	startOfFrame0            = 0xc0 // baseline
	startOfFrame1            = 0xc1 // extended sequential
	startOfFrame2            = 0xc2 // progressive
	startOfFrame3            = 0xc3 // lossless
	startOfFrame7            = 0xc7 // 5 to 7 are differential
	startOfFrame15           = 0xcf
	huffmanTables            = 0xc4
	jpegExtension            = 0xc8
	arithmeticConditioning   = 0xcc
	startOfScan              = 0xda
	quantisationTables       = 0xdb
	restartInterval          = 0xdd
	restart0, restart7       = 0xd0, 0xd7
	temporary                = 0x01
	app0, app1, app14        = 0xe0, 0xe1, 0xee
)

const blockSize = 64

// MaxHead is how many bytes may stand in front of the first scan: profiles, thumbnails and notes.
const MaxHead = 16 << 20

// ErrHead is about a file that has no scan in its first MaxHead bytes.
var ErrHead = errors.New("jpeg: no scan")

// Decoder decodes one file.
type Decoder struct {
	source      source
	scale       int
	side        int // of a decoded block
	last        int // the last coefficient that is needed, in zigzag order
	progressive bool

	width, height int
	maxH, maxV    int // of the sampling factors
	mcusX, mcusY  int // of the whole image
	components    []component
	quantisation  [4][blockSize]int32
	huffman       [2][4]table // of DC and AC
	restart       int         // MCUs between restarts, 0 without any
	jfif, adobe   bool        // the segments are there
	colours       byte        // the transform that Adobe's names
	exif          []byte
	clean         []byte // a piece of a scan without stuffing
	visited       int64  // blocks, in all scans
}

type component struct {
	id, quantisation byte
	h, v             int
	blocksX, blocksY int // that are stored, with those that stand over
	pix              []byte
	stride           int
	coefficients     []int16 // progressive: of each block, in zigzag order
	dc               int32   // of the block before
	scanned          bool
}

// Open reads a file up to its first scan. stop is asked before each 8 KiB of the file, between
// the scans, and between rows of blocks; its errors end the work. What is right and not read is
// an Unsupported.
func Open(r io.Reader, stop func() error) (*Decoder, error) {
	d := &Decoder{source: source{r: r, stop: stop, buf: make([]byte, pieceBytes)}}
	b, err := d.source.need(2)
	if err != nil {
		return nil, err
	}
	if b[0] != 0xff || b[1] != startOfImage {
		return nil, errors.New("jpeg: no start of image")
	}
	d.source.at = 2
	scan, err := d.segments()
	if err != nil {
		return nil, err
	}
	if !scan || d.components == nil {
		return nil, errors.New("jpeg: no frame, or no scan")
	}
	return d, nil
}

// segments reads segments up to behind the marker of a scan, or the end of the image.
func (d *Decoder) segments() (scan bool, err error) {
	for {
		marker, err := d.source.marker()
		if err != nil {
			return false, err
		}
		switch marker {
		case startOfImage:
			return false, errTwo
		case startOfScan, endOfImage:
			return marker == startOfScan, nil
		}
		segment, err := d.source.segment(marker)
		if err != nil {
			return false, err
		}
		if err := d.read(marker, segment); err != nil {
			return false, err
		}
		if d.visited == 0 && d.source.position() > MaxHead {
			return false, ErrHead
		}
	}
}

func (d *Decoder) read(marker byte, b []byte) error {
	switch {
	case marker == huffmanTables:
		return d.readHuffman(b)
	case marker == quantisationTables:
		return d.readQuantisation(b)
	case marker == restartInterval:
		if len(b) != 2 {
			return fmt.Errorf("jpeg: a restart interval of %d bytes", len(b))
		}
		d.restart = int(binary.BigEndian.Uint16(b))
	case marker == startOfFrame0, marker == startOfFrame1, marker == startOfFrame2:
		d.progressive = marker == startOfFrame2
		return d.readFrame(b)
	case marker == startOfFrame3:
		return Unsupported("lossless coding")
	case marker > startOfFrame3 && marker <= startOfFrame7:
		return Unsupported("differential coding")
	case marker > jpegExtension && marker <= startOfFrame15:
		return Unsupported("arithmetic coding")
	case marker == app0 && len(b) >= 5:
		d.jfif = string(b[:5]) == "JFIF\x00"
	case marker == app1 && d.exif == nil && len(b) > 6 && string(b[:6]) == "Exif\x00\x00":
		d.exif = append([]byte{}, b[6:]...)
	case marker == app14 && len(b) >= 12 && string(b[:5]) == "Adobe":
		d.adobe, d.colours = true, b[11]
	}
	return nil
}

func (d *Decoder) readQuantisation(b []byte) error {
	for len(b) > 0 {
		precision, id := b[0]>>4, b[0]&15
		bytes := blockSize << precision
		if precision > 1 || id > 3 || len(b) < 1+bytes {
			return errors.New("jpeg: invalid quantisation table")
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

func (d *Decoder) readFrame(b []byte) error {
	if len(b) < 6 || len(b) != 6+3*int(b[5]) || d.components != nil {
		return errors.New("jpeg: invalid frame, or a second one")
	}
	d.height, d.width = int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:]))
	switch {
	case b[0] != 8:
		return Unsupported(fmt.Sprintf("%d bits per colour", b[0]))
	case d.height == 0:
		return Unsupported("a height of 0, or one given after the image")
	case d.width == 0:
		return errors.New("jpeg: a width of 0")
	case b[5] != 1 && b[5] != 3 && b[5] != 4:
		return Unsupported(fmt.Sprintf("%d components", b[5]))
	}
	components := make([]component, b[5])
	for i := range components {
		f := b[6+3*i:]
		c := component{id: f[0], h: int(f[1] >> 4), v: int(f[1] & 15), quantisation: f[2]}
		if c.quantisation > 3 || c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 {
			return fmt.Errorf("jpeg: component %d is sampled %d×%d and has quantisation table %d", i, c.h, c.v, c.quantisation)
		}
		for _, before := range components[:i] {
			if before.id == c.id {
				return fmt.Errorf("jpeg: two components are called %d", c.id)
			}
		}
		if len(components) == 1 {
			c.h, c.v = 1, 1 // one block is a unit of a single component, T.81, A.2.2
		}
		d.maxH, d.maxV = max(d.maxH, c.h), max(d.maxV, c.v)
		components[i] = c
	}
	d.mcusX, d.mcusY = num.CeilDiv(d.width, 8*d.maxH), num.CeilDiv(d.height, 8*d.maxV)
	for i := range components {
		c := &components[i]
		c.blocksX, c.blocksY = d.mcusX*c.h, d.mcusY*c.v
	}
	d.components = components
	return nil
}

// Size is that of the image as it is stored.
func (d *Decoder) Size() image.Point { return image.Pt(d.width, d.height) }

// Exif is the TIFF file of the first Exif segment in front of the scans, nil without one.
func (d *Decoder) Exif() []byte { return d.exif }

// blocks is how many blocks the image has in all components.
func (d *Decoder) blocks() int64 {
	n := int64(0)
	for _, c := range d.components {
		n += int64(c.blocksX) * int64(c.blocksY)
	}
	return n
}

// Bytes returns no less than what Open and Decode allocate in all.
func (d *Decoder) Bytes(scale int) int64 {
	const most = 256 << 10 // tables, pieces, notes
	side := int64(8 / d.scaleOf(scale))
	size := most + d.blocks()*side*side
	if d.progressive {
		each := int64(blockSize)
		if side == 1 {
			each = 1
		}
		size += 2 * each * d.blocks()
	}
	pixels := int64(num.CeilDiv(d.width, 8/int(side))) * int64(num.CeilDiv(d.height, 8/int(side)))
	switch {
	case len(d.components) == 4 || d.isRGB():
		size += 4 * pixels // the components are put together
	case len(d.components) == 3:
		if _, ok := d.subsampling(); !ok {
			size += 3 * pixels
		}
	}
	return size
}

// scaleOf returns the scale that Decode decodes at when it is asked for one.
func (d *Decoder) scaleOf(scale int) int {
	if len(d.components) == 4 || d.isRGB() {
		return 1
	}
	return scale
}

// Decode decodes the file at 1/scale of its size, scale 1, 2, 4 or 8; of sides that do not divide,
// the last pixels are of blocks that stand over. Every block of 8×8 becomes the inverse DCT of as
// many of its lowest frequencies as it has pixels, in whole numbers, so that the result is the
// same on every machine. It is an *image.Gray or an *image.YCbCr with the subsampling of the file,
// or without any where image.YCbCr does not know it. What has four components is an *image.CMYK,
// and what has R, G and B an *image.RGBA, both at full size whatever the scale.
func (d *Decoder) Decode(scale int) (image.Image, error) {
	switch scale {
	case 1, 2, 4, 8:
		d.scale = d.scaleOf(scale)
		d.side, d.last = 8/d.scale, [...]int{8: 0, 4: 4, 2: 24, 1: 63}[d.scale]
	default:
		return nil, fmt.Errorf("jpeg: a scale of 1/%d", scale)
	}
	if err := d.allocate(); err != nil {
		return nil, err
	}
	for scan := true; scan; {
		if err := d.source.stop(); err != nil {
			return nil, err
		}
		segment, err := d.source.segment(startOfScan)
		if err != nil {
			return nil, err
		}
		if err := d.readScan(segment); err != nil {
			return nil, err
		}
		if scan, err = d.segments(); err != nil {
			return nil, err
		}
	}
	if d.progressive {
		if err := d.transformAll(); err != nil {
			return nil, err
		}
	}
	return d.image()
}

// allocate takes the memory of the pixels and of the coefficients.
func (d *Decoder) allocate() error {
	d.clean = make([]byte, 0, cleanBytes)
	for i := range d.components {
		if err := d.source.stop(); err != nil { // to clear it takes time
			return err
		}
		c := &d.components[i]
		c.stride = c.blocksX * d.side
		c.pix = make([]byte, c.stride*c.blocksY*d.side)
		if d.progressive {
			c.coefficients = make([]int16, c.blocksX*c.blocksY*d.stored())
		}
	}
	return nil
}

// stored is how many coefficients of a block are kept: the mean alone if no other is needed.
func (d *Decoder) stored() int {
	if d.last == 0 {
		return 1
	}
	return blockSize
}
