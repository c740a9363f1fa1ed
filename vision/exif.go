package vision

import "encoding/binary"

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
			const long, signedLong = 4, 9 // all others are read as SHORT, which it should be
			o := uint32(order.Uint16(b[at+8:]))
			if typ := order.Uint16(b[at+2:]); typ == long || typ == signedLong {
				o = order.Uint32(b[at+8:])
			}
			if o >= 1 && o <= 8 {
				return orientation(o)
			}
			return asStored
		}
	}
	return asStored
}
