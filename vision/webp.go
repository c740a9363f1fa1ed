package vision

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"time"

	"golang.org/x/image/webp"
)

// maxWebP is the length of a WebP file that is read: it is held in memory, as the decoder takes
// the size of buffers from it.
const maxWebP = 64 << 20

// maxWebPPixels is less than MaxPixels, as the decoder does not stop when the context ends: so
// many pixels of a photo take it a second or two, and five at the most.
const maxWebPPixels = 1 << 25

// What decoding takes between two looks at the context, at the most: a lossy frame, whose bytes
// golang.org/x/image/vp8 reads before all else, or lossless pixels and transforms for which vp8l
// needs no bytes. They are 1.4 times what random tokens of few bits take a core of an Intel Xeon
// (Emerald Rapids) in the shortest of many runs: BenchmarkDecodeWebP.
const (
	webPPixel     = 32 * time.Nanosecond
	webPLossyByte = 120 * time.Nanosecond // in addition, of a frame
	webPLossyMost = 120 * time.Nanosecond // and no more than this of a pixel
)

// webPHeader is what a WebP file says in front of its pixels,
// https://developers.google.com/speed/webp/docs/riff_container.
type webPHeader struct {
	file         int64 // bytes
	w, h         int
	lossy, alpha bool
	frame        int64 // bytes of lossy pixels
	coded        int64 // bytes without loss: of the pixels, or of the alpha
}

func isWebP(b []byte) bool {
	return len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP"
}

// readWebPHeader reads a file as far as its pixels, and returns what it has read.
func readWebPHeader(r io.Reader) (h webPHeader, head []byte, err error) {
	readTo := func(n int64) error { // in parts, as a length promises more than comes
		for from := int64(len(head)); from < n; from = int64(len(head)) {
			head = append(head, make([]byte, min(n-from, max(from, 1<<10)))...)
			if _, err := io.ReadFull(r, head[from:]); err == io.EOF {
				return io.ErrUnexpectedEOF
			} else if err != nil {
				return err
			}
		}
		return nil
	}
	if err := readTo(30); err != nil {
		return h, nil, err
	}
	h.file = int64(binary.LittleEndian.Uint32(head[4:])) + 8
	if h.file > maxWebP {
		return h, nil, fmt.Errorf("webp: a file of %d bytes, at most %d are accepted", h.file, maxWebP)
	}
	const (
		animated = 1 << 1
		alpha    = 1 << 4
		side14   = 1<<14 - 1
	)
	switch data := head[20:]; string(head[12:16]) {
	case "VP8 ":
		if data[0]&1 != 0 || string(data[3:6]) != "\x9d\x01\x2a" {
			return h, nil, errors.New("webp: no key frame")
		}
		h.lossy, h.frame = true, h.file
		h.w, h.h = int(binary.LittleEndian.Uint16(data[6:]))&side14, int(binary.LittleEndian.Uint16(data[8:]))&side14
		return h, head, nil
	case "VP8L":
		bits := int(binary.LittleEndian.Uint32(data[1:]))
		h.w, h.h, h.coded = bits&side14+1, bits>>14&side14+1, h.file
		return h, head, nil
	case "VP8X":
		if data[0]&animated != 0 {
			return h, nil, unsupported("animations of WebP")
		}
		h.alpha = data[0]&alpha != 0
		side := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 + 1 }
		h.w, h.h = side(data[4:]), side(data[7:])
	default:
		return h, nil, fmt.Errorf("webp: a first chunk %q", head[12:16])
	}
	for at := int64(30); ; { // profiles and the alpha may stand in front of the pixels
		if err := readTo(at + 8); err != nil {
			return h, nil, err
		}
		name, size := string(head[at:at+4]), int64(binary.LittleEndian.Uint32(head[at+4:]))
		switch name {
		case "VP8 ":
			h.lossy, h.frame = true, size
			return h, head, nil
		case "VP8L":
			h.coded = size
			return h, head, nil
		case "ALPH":
			h.coded = size
		}
		if at += 8 + size + size&1; at > h.file {
			return h, nil, io.ErrUnexpectedEOF
		}
		if at > maxHead {
			return h, nil, errHead
		}
		if err := readTo(at); err != nil {
			return h, nil, err
		}
	}
}

// bytes returns no less than what decoding allocates in all, but for what has been read of the
// file.
func (h webPHeader) bytes() int64 {
	size := 1<<20 + h.file + 4*int64(h.w)
	if !h.lossy {
		return size + h.losslessBytes()
	}
	blocks := int64((h.w+15)/16) * int64((h.h+15)/16)
	const luma, chroma, filter = 256, 128, 4
	size += h.file + blocks*(luma+chroma+filter) + int64(h.w) // the coded bytes once more
	size += 4 * int64(h.w) * int64(h.h)                       // R, G and B
	if h.alpha {
		size += int64(h.w)*int64(h.h) + h.losslessBytes()
	}
	return size
}

// overrun returns for how long decoding may go on when its context has ended.
func (h webPHeader) overrun() time.Duration {
	pixels := time.Duration(h.w) * time.Duration(h.h)
	t := pixels * webPPixel
	if h.lossy {
		t += min(time.Duration(min(h.frame, h.file))*webPLossyByte, pixels*webPLossyMost)
	}
	return t
}

// losslessBytes bounds what golang.org/x/image/vp8l takes: pixels, a second time if they are packed
// indices; three images of tiles; and groups of Huffman trees, of which it accepts 2,600, with
// tables for those that a tile names.
func (h webPHeader) losslessBytes() int64 {
	pixels, tiles := int64(h.w)*int64(h.h), int64((h.w+3)/4)*int64((h.h+3)/4)
	const (
		symbols = 256 + 24 + 2048 + 3*256 + 40 // of a group
		smaller = 8*symbols + 4<<10            // lengths and codes
		whole   = 16*symbols + 4<<10           // nodes, tables
	)
	groups := min(2600, h.coded/2+1)
	return 6*pixels + 3*4*tiles + groups*smaller + min(groups, tiles)*whole
}

// openWebP reads the beginning of a WebP file.
func openWebP(ctx context.Context, r io.Reader) (opened, error) {
	h, head, err := readWebPHeader(r)
	if err != nil {
		return opened{}, err
	}
	size := h.bytes() + 4*int64(len(head))
	return opened{size: image.Pt(h.w, h.h), most: maxWebPPixels, bytes: size, overrun: h.overrun(), decode: func() (image.Image, error) {
		data := make([]byte, max(h.file, int64(len(head))))
		n, err := io.ReadFull(r, data[copy(data, head):])
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return nil, err
		}
		return decodeWebP(ctx, data[:len(head)+n])
	}}, nil
}

// decodeWebP decodes a file, turned upright as its Exif orientation says.
func decodeWebP(ctx context.Context, data []byte) (image.Image, error) {
	o := asStored
	seen := false // the image is there, and whole
	for at := 12; at+8 <= len(data); {
		name, size := string(data[at:at+4]), int64(binary.LittleEndian.Uint32(data[at+4:]))
		at += 8
		if size > int64(len(data)-at) {
			break
		}
		chunk := data[at : at+int(size)]
		at += int(size + size&1)
		switch name {
		case "VP8 ", "VP8L":
			seen = true
		case "EXIF":
			chunk = bytes.TrimPrefix(chunk, []byte("Exif\x00\x00"))
			if o == asStored {
				o = tiffOrientation(chunk)
			}
		}
	}
	if !seen {
		return nil, io.ErrUnexpectedEOF
	}
	img, err := webp.Decode(&reader{ctx, bytes.NewReader(data)})
	if err != nil {
		return nil, err
	}
	switch lossy := img.(type) {
	case *image.YCbCr:
		to := image.NewRGBA(lossy.Rect)
		img, err = to, fromVideo(ctx, lossy, to.Pix, nil, 0)
	case *image.NYCbCrA:
		to := image.NewNRGBA(lossy.Rect)
		img, err = to, fromVideo(ctx, &lossy.YCbCr, to.Pix, lossy.A, lossy.AStride)
	}
	if err == nil && o != asStored {
		img = &oriented{img: img, orientation: o}
	}
	return img, err
}

// fromVideo writes the colours of a lossy WebP, whose luma goes from 16 to 235 and not, as in
// image.YCbCr, from 0 to 255. Chroma is interpolated, and all is rounded, as libwebp does, whose
// pixels these are.
func fromVideo(ctx context.Context, img *image.YCbCr, pix, alpha []byte, alphaStride int) error {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	columns, rows := (w+1)/2, (h+1)/2
	us, vs := make([]int32, columns), make([]int32, columns)
	for y := range h {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Of the four samples around a pixel the nearest one counts nine times, those beside it
		// three times each.
		near, far := y/2*img.CStride, max(0, min(y/2-1+y%2*2, rows-1))*img.CStride
		for x := range columns {
			us[x] = 3*int32(img.Cb[near+x]) + int32(img.Cb[far+x])
			vs[x] = 3*int32(img.Cr[near+x]) + int32(img.Cr[far+x])
		}
		row := img.Y[y*img.YStride:][:w]
		to := pix[4*y*w:][:4*w]
		for x, luma := range row {
			at, beside := x/2, max(0, min(x/2-1+x%2*2, columns-1))
			l := int32(luma) * 19077 >> 8
			u, v := (3*us[at]+us[beside]+8)>>4, (3*vs[at]+vs[beside]+8)>>4
			to[4*x] = clamp6(l + v*26149>>8 - 14234)
			to[4*x+1] = clamp6(l - u*6419>>8 - v*13320>>8 + 8708)
			to[4*x+2] = clamp6(l + u*33050>>8 - 17685)
			to[4*x+3] = 0xff
			if alpha != nil {
				to[4*x+3] = alpha[y*alphaStride+x]
			}
		}
	}
	return nil
}

// clamp6 makes a byte of a number with six bits behind the point.
func clamp6(v int32) byte { return byte(max(0, min(v>>6, 255))) }
