package vision

import (
	"bytes"
	"encoding/binary"

	"github.com/bitcnn/bitcnn/internal/num"
)

// jpegHeader is what the segments in front of the pixels of a JPEG file say.
type jpegHeader struct {
	orientation orientation
	progressive bool
	blocks      int64 // of 8×8 values, of all components; 0 if unknown
}

// readJPEGHeader reads the beginning of a JPEG file that image/jpeg has accepted,
// with the same leniency about what stands between the segments.
func readJPEGHeader(b []byte) jpegHeader {
	const (
		startOfFrame0, startOfFrame2 = 0xc0, 0xc2 // baseline, progressive
		restart0, restart7           = 0xd0, 0xd7
		endOfImage, startOfScan      = 0xd9, 0xda
		app1                         = 0xe1
	)
	h := jpegHeader{orientation: asStored}
	for at := 2; at+1 < len(b); {
		if b[at] != 0xff || b[at+1] == 0 || b[at+1] == 0xff {
			at++
			continue
		}
		marker := b[at+1]
		at += 2
		if restart0 <= marker && marker <= restart7 {
			continue
		}
		if marker == endOfImage || marker == startOfScan || at+2 > len(b) {
			break
		}
		size := int(binary.BigEndian.Uint16(b[at:]))
		if size < 2 || at+size > len(b) {
			break
		}
		segment := b[at+2 : at+size]
		at += size
		switch {
		case marker == app1 && h.orientation == asStored:
			if tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); ok {
				h.orientation = tiffOrientation(tiff)
			}
		case startOfFrame0 <= marker && marker <= startOfFrame2:
			h.progressive = marker == startOfFrame2
			h.blocks = frameBlocks(segment)
		}
	}
	return h
}

// frameBlocks returns the number of blocks that are stored for the components of
// a frame, those that stand over at its borders included.
func frameBlocks(frame []byte) int64 {
	if len(frame) < 6 || len(frame) < 6+3*int(frame[5]) {
		return 0
	}
	height, width := int(binary.BigEndian.Uint16(frame[1:])), int(binary.BigEndian.Uint16(frame[3:]))
	components := int(frame[5])
	if components == 1 {
		return int64(num.CeilDiv(width, 8)) * int64(num.CeilDiv(height, 8))
	}
	h, v, each := 1, 1, 0
	for i := range components {
		sampling := frame[6+3*i+1]
		ch, cv := int(sampling>>4), int(sampling&15)
		h, v, each = max(h, ch), max(v, cv), each+ch*cv
	}
	return int64(num.CeilDiv(width, 8*h)) * int64(num.CeilDiv(height, 8*v)) * int64(each)
}

// tiffOrientation returns the Exif orientation (tag 0x0112) of a directory, as
// stored if there is none. Anything odd counts as none: a photo must not fail for
// its camera's notes.
func tiffOrientation(b []byte) orientation {
	if len(b) < 8 {
		return asStored
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return asStored
	}
	const entry = 12
	n := int64(order.Uint16(b[at:]))
	for at += 2; n > 0 && at+entry <= int64(len(b)); n, at = n-1, at+entry {
		if order.Uint16(b[at:]) == 0x0112 {
			if o := order.Uint16(b[at+8:]); o >= 1 && o <= 8 {
				return orientation(o)
			}
			return asStored
		}
	}
	return asStored
}
