package vision

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/draw"
)

// orientation returns the Exif orientation (tag 0x0112, values 1 to 8) that the
// first bytes of a JPEG file carry, 1 if none. Anything odd counts as none: a
// photo must not fail for its camera's notes.
func orientation(jpeg []byte) int {
	const app1, startOfScan = 0xe1, 0xda
	for at := 2; at+4 <= len(jpeg) && jpeg[at] == 0xff && jpeg[at+1] != startOfScan; {
		marker, size := jpeg[at+1], int(binary.BigEndian.Uint16(jpeg[at+2:]))
		if size < 2 || at+2+size > len(jpeg) {
			return 1
		}
		segment := jpeg[at+4 : at+2+size]
		if tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); ok && marker == app1 {
			return tiffOrientation(tiff)
		}
		at += 2 + size
	}
	return 1
}

func tiffOrientation(b []byte) int {
	if len(b) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return 1
	}
	const entry = 12
	n := int64(order.Uint16(b[at:]))
	for at += 2; n > 0 && at+entry <= int64(len(b)); n, at = n-1, at+entry {
		if order.Uint16(b[at:]) == 0x0112 {
			if o := int(order.Uint16(b[at+8:])); o >= 1 && o <= 8 {
				return o
			}
			return 1
		}
	}
	return 1
}

// upright turns an image as its orientation says.
func upright(img image.Image, orientation int) image.Image {
	if orientation == 1 {
		return img
	}
	b := img.Bounds()
	src := image.NewRGBA(image.Rectangle{Max: b.Size()})
	draw.Draw(src, src.Rect, img, b.Min, draw.Src)
	w, h := b.Dx(), b.Dy()
	size := image.Pt(w, h)
	if orientation >= 5 { // the sides change places
		size = image.Pt(h, w)
	}
	dst := image.NewRGBA(image.Rectangle{Max: size})
	for y := range size.Y {
		for x := range size.X {
			sx, sy := x, y
			if orientation >= 5 {
				sx, sy = y, x
			}
			switch orientation {
			case 2, 7, 3, 8:
				sx = w - 1 - sx
			}
			switch orientation {
			case 3, 4, 6, 7:
				sy = h - 1 - sy
			}
			copy(dst.Pix[dst.PixOffset(x, y):][:4], src.Pix[src.PixOffset(sx, sy):])
		}
	}
	return dst
}
