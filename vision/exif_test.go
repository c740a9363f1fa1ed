package vision

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"

	"testing"

	"github.com/stretchr/testify/require"
)

// withOrientation puts an Exif segment behind the start of a JPEG.
func withOrientation(data []byte, order binary.AppendByteOrder, value uint16) []byte {
	exif := append([]byte("Exif\x00\x00"), exifOf(order, value, false)...)
	out := append([]byte{}, data[:2]...)
	out = append(out, 0xff, 0xe1)
	out = binary.BigEndian.AppendUint16(out, uint16(len(exif)+2))
	return append(append(out, exif...), data[2:]...)
}

// exifOf is a TIFF file of two entries, the second of which is the orientation, of type SHORT
// or LONG.
func exifOf(order binary.AppendByteOrder, value uint16, long bool) []byte {
	exif := []byte("II")
	if order == binary.BigEndian {
		exif = []byte("MM")
	}
	exif = order.AppendUint16(exif, 42)
	exif = order.AppendUint32(exif, 8)
	exif = order.AppendUint16(exif, 2)
	for _, tag := range [][2]uint16{{0x0100, 5}, {0x0112, value}} {
		exif = order.AppendUint16(exif, tag[0])
		if long {
			exif = order.AppendUint16(exif, 4)
			exif = order.AppendUint32(exif, 1)
			exif = order.AppendUint32(exif, uint32(tag[1]))
			continue
		}
		exif = order.AppendUint16(exif, 3)
		exif = order.AppendUint32(exif, 1)
		exif = order.AppendUint16(exif, tag[1])
		exif = order.AppendUint16(exif, 0)
	}
	return exif
}

// Some programs write the orientation as a LONG.
func TestOrientationOfAnyType(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, long := range []bool{false, true} {
			for value := range uint16(12) {
				want := orientation(value)
				if value < 1 || value > 8 {
					want = asStored
				}
				require.Equal(t, want, tiffOrientation(exifOf(order, value, long)), "%v, %d, LONG %v", order, value, long)
			}
		}
	}
	require.Equal(t, asStored, tiffOrientation(exifOf(binary.LittleEndian, 0x106, true)))
}

func TestDecodeTurnsPhotosUpright(t *testing.T) {
	// The photo as it should be seen: three grey levels in 24×16 pixels, told
	// apart by their corner.
	level := func(x, y, w, h int) uint8 {
		switch {
		case x < w/2 && y < h/2:
			return 250
		case x >= w/2 && y < h/2:
			return 120
		}
		return 10
	}
	const w, h = 32, 16
	// stored[o] maps a pixel of the file to the pixel that is seen, by the Exif
	// standard's description of row 0 and column 0.
	seen := map[uint16]func(x, y int) (int, int){
		1: func(x, y int) (int, int) { return x, y },
		2: func(x, y int) (int, int) { return w - 1 - x, y },
		3: func(x, y int) (int, int) { return w - 1 - x, h - 1 - y },
		4: func(x, y int) (int, int) { return x, h - 1 - y },
		5: func(x, y int) (int, int) { return y, x },
		6: func(x, y int) (int, int) { return w - 1 - y, x },
		7: func(x, y int) (int, int) { return w - 1 - y, h - 1 - x },
		8: func(x, y int) (int, int) { return y, h - 1 - x },
	}
	for o := uint16(1); o <= 8; o++ {
		size := image.Rect(0, 0, w, h)
		if o >= 5 {
			size = image.Rect(0, 0, h, w)
		}
		stored := image.NewGray(size)
		for y := range size.Dy() {
			for x := range size.Dx() {
				sx, sy := seen[o](x, y)
				stored.SetGray(x, y, color.Gray{level(sx, sy, w, h)})
			}
		}
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			img, err := DecodeFile(t.Context(), write(t, "a.jpg", withOrientation(encodeJPEG(t, stored), order, o)))
			require.NoError(t, err)
			require.Equal(t, image.Pt(w, h), img.Bounds().Size(), "orientation %d", o)
			for _, p := range []image.Point{{4, 4}, {w - 5, 4}, {4, h - 5}, {w - 5, h - 5}} {
				require.InDelta(t, level(p.X, p.Y, w, h), at(img, p.X, p.Y)[0], 5, "orientation %d, %v", o, p)
			}
		}
	}
}

func FuzzExif(f *testing.F) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		f.Add(exifOf(order, 6, false))
		f.Add(exifOf(order, 6, true))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := tiffOrientation(data)
		require.True(t, o >= 1 && o <= 8)
	})
}

// flatJPEG writes grey JPEGs of any size, in the ways of coding that image/jpeg
// reads and does not write.
type flatJPEG struct {
	w, h        int
	sampling    []byte // horizontal and vertical factor of each component
	progressive bool
	adobe       int // colour transform of an Adobe segment, if not 0: 1 + its value
}

func (f flatJPEG) encode() []byte {
	segment := func(b []byte, marker byte, data ...byte) []byte {
		b = append(b, 0xff, marker)
		b = binary.BigEndian.AppendUint16(b, uint16(len(data)+2))
		return append(b, data...)
	}
	b := []byte{0xff, 0xd8}
	if f.adobe > 0 {
		b = segment(b, 0xee, append([]byte("Adobe\x00\x64\x00\x00\x00\x00"), byte(f.adobe-1))...)
	}
	b = segment(b, 0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)
	frame := binary.BigEndian.AppendUint16([]byte{8}, uint16(f.h))
	frame = append(binary.BigEndian.AppendUint16(frame, uint16(f.w)), byte(len(f.sampling)))
	scan := []byte{byte(len(f.sampling))}
	maxH, maxV, each := 1, 1, 0
	for i, s := range f.sampling {
		frame = append(frame, byte(i+1), s, 0)
		scan = append(scan, byte(i+1), 0)
		h, v := int(s>>4), int(s&15)
		maxH, maxV, each = max(maxH, h), max(maxV, v), each+h*v
	}
	if len(f.sampling) == 1 {
		maxH, maxV, each = 1, 1, 1
	}
	// Codes of one bit: no difference to the block before, and end of block.
	code := append([]byte{1}, make([]byte, 16)...)
	bits, last := 2, byte(63)
	if f.progressive {
		b = segment(b, 0xc2, frame...)
		bits, last = 1, 0 // a scan of the means alone
	} else {
		b = segment(b, 0xc0, frame...)
		b = segment(b, 0xc4, append([]byte{0x10}, code...)...)
	}
	b = segment(b, 0xc4, append([]byte{0x00}, code...)...)
	b = segment(b, 0xda, append(scan, 0, last, 0)...)
	blocks := (f.w + 8*maxH - 1) / (8 * maxH) * ((f.h + 8*maxV - 1) / (8 * maxV)) * each
	b = append(b, make([]byte, (blocks*bits+7)/8)...)
	return append(b, 0xff, 0xd9)
}
