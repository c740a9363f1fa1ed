package jpeg

import "encoding/binary"

// fastBits is the length of codes that one look-up decodes.
const fastBits = 10

// table decodes the codes of a Huffman table, T.81, annex C.
type table struct {
	fast    [1 << fastBits]uint16 // length of the code << 8 | its value; 0 for longer ones
	limit   [18]uint32            // the first code of 16 bits that is longer than n bits
	offset  [17]int               // from a code of n bits to its value
	values  [256]byte
	defined bool
	past    []past // of AC
}

// past is what the first pastBits bits hold of whole coefficients: how many bits they are, 0 for
// less than one, how many coefficients, zeros included, and whether a block ends behind them.
type past struct {
	bits, coefficients uint8
	ends               bool
}

// pastBits is a compromise: about two coefficients, in a table that the nearest cache holds.
const pastBits = 12

// findPast fills past.
func (t *table) findPast() {
	t.past = make([]past, 1<<pastBits)
	for i := range t.past {
		p := &t.past[i]
		b := bits{acc: uint64(i) << (64 - pastBits), have: pastBits}
		for {
			value, length := t.code(&b)
			size := uint(value & 15)
			if length == 0 || length+size > b.have {
				break
			}
			b.skip(length + size)
			p.bits = uint8(pastBits - b.have)
			if size == 0 && value>>4 < 15 {
				p.ends = true
				break
			}
			p.coefficients += value>>4 + 1
		}
	}
}

// readHuffman reads tables, T.81, B.2.4.2.
func (d *decoder) readHuffman(b []byte) error {
	for len(b) > 0 {
		if len(b) < 17 {
			return errShort
		}
		class, id, counts := b[0]>>4, b[0]&15, b[1:17]
		total := 0
		for _, n := range counts {
			total += int(n)
		}
		if class > 1 || id > 3 || total == 0 || total > 256 || len(b) < 17+total {
			return ErrUnsupported
		}
		t := &d.huffman[class][id]
		if !t.build(counts, b[17:17+total]) {
			return ErrUnsupported
		}
		if class == 1 {
			t.findPast()
		}
		b = b[17+total:]
	}
	return nil
}

// build reports whether the lengths are those of a code.
func (t *table) build(counts, values []byte) bool {
	*t = table{defined: true}
	copy(t.values[:], values)
	code, at := uint32(0), 0
	for length := 1; length <= 16; length++ {
		t.offset[length] = at - int(code)
		for range counts[length-1] {
			if code >= 1<<length {
				return false
			}
			if length <= fastBits {
				from := code << (fastBits - length)
				for i := range uint32(1) << (fastBits - length) {
					t.fast[from+i] = uint16(length)<<8 | uint16(values[at])
				}
			}
			code, at = code+1, at+1
		}
		t.limit[length] = code << (16 - length)
		code <<= 1
	}
	return true
}

// bits reads the bits of a part of a scan between restarts, the first one highest. Behind the
// end they are 0: short tells that some of those were taken.
type bits struct {
	buf  []byte
	at   int
	acc  uint64
	have uint // bits of acc
}

// refill makes at least 57 bits available.
func (b *bits) refill() {
	if b.at+8 <= len(b.buf) {
		b.acc |= binary.BigEndian.Uint64(b.buf[b.at:]) >> b.have
		n := (63 - b.have) >> 3
		b.at, b.have = b.at+int(n), b.have+8*n
		return
	}
	for b.have <= 56 {
		if b.at < len(b.buf) {
			b.acc |= uint64(b.buf[b.at]) << (56 - b.have)
		}
		b.at, b.have = b.at+1, b.have+8
	}
}

func (b *bits) skip(n uint) {
	b.acc <<= n
	b.have -= n
}

// take takes n ≤ 16 bits that are available.
func (b *bits) take(n uint) int32 {
	v := b.acc >> 1 >> (63 - n)
	b.skip(n)
	return int32(v)
}

// bit takes one bit.
func (b *bits) bit() bool {
	if b.have == 0 {
		b.refill()
	}
	one := b.acc>>63 != 0
	b.skip(1)
	return one
}

// extended takes a number of n bits, of which the lower half stands for negative ones, T.81, F.2.2.1.
func (b *bits) extended(n uint) int32 {
	v := b.take(n)
	if n > 0 && v < 1<<(n-1) {
		v += -1<<n + 1
	}
	return v
}

func (b *bits) short() bool { return b.at-int(b.have/8) > len(b.buf) }

// code decodes a code: its value and its length, 0 for what is none. 16 bits must be available.
func (t *table) code(b *bits) (value byte, length uint) {
	if e := t.fast[b.acc>>(64-fastBits)]; e != 0 {
		return byte(e), uint(e >> 8)
	}
	return t.long(uint32(b.acc >> 48))
}

// long decodes the code that 16 bits begin with.
func (t *table) long(first uint32) (value byte, length uint) {
	for n := fastBits + 1; n <= 16; n++ {
		if first < t.limit[n] {
			return t.values[(int(first>>(16-n))+t.offset[n])&255], uint(n)
		}
	}
	return 0, 0
}
