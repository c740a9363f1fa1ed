package jpeg

import (
	"encoding/binary"
	"errors"
)

var errHuffman = errors.New("jpeg: invalid Huffman table")

// fastBits is the length of codes that one look-up decodes.
const fastBits = 10

// table decodes the codes of a Huffman table, T.81, annex C.
type table struct {
	fast    [1 << fastBits]uint16 // length of the code << 8 | its value; 0 for longer ones
	limit   [18]uint32            // the first code of 16 bits that is longer than n bits
	offset  [17]int               // from a code of n bits to its value
	values  [256]byte
	defined bool
	past    []past // of AC, where whole coefficients may be left out
	hasPast bool
}

// past is what the first pastBits bits hold of whole coefficients: how many bits they are, 0 for
// less than one, how many coefficients, zeros included, and whether a block ends behind them.
type past struct {
	bits, coefficients uint8
	ends               bool
}

// pastBits is a compromise: about two coefficients, in a table that the nearest cache holds.
const pastBits = 12

// findPast fills past, when a scan needs it.
func (t *table) findPast() {
	if t.hasPast || !t.defined {
		return
	}
	if t.past == nil {
		t.past = make([]past, 1<<pastBits)
	}
	t.hasPast = true
	for i := range t.past {
		t.past[i] = past{}
		p := &t.past[i]
		b := bits{acc: uint64(i) << (64 - pastBits), have: pastBits}
		for {
			value, length := t.code(&b)
			size := uint(value & 15)
			if length == 0 || length+size > b.have || size == 0 && value>>4 > 0 && value>>4 < 15 {
				break
			}
			b.skip(length + size)
			p.bits = uint8(pastBits - b.have)
			if value == 0 {
				p.ends = true
				break
			}
			p.coefficients += value>>4 + 1
		}
	}
}

// readHuffman reads tables, T.81, B.2.4.2.
func (d *Decoder) readHuffman(b []byte) error {
	for len(b) > 0 {
		if len(b) < 17 {
			return errHuffman
		}
		class, id, counts := b[0]>>4, b[0]&15, b[1:17]
		total := 0
		for _, n := range counts {
			total += int(n)
		}
		if class > 1 || id > 3 || total == 0 || total > 256 || len(b) < 17+total {
			return errHuffman
		}
		if !d.huffman[class][id].build(counts, b[17:17+total]) {
			return errHuffman
		}
		b = b[17+total:]
	}
	return nil
}

// build reports whether the lengths are those of a code.
func (t *table) build(counts, values []byte) bool {
	*t = table{past: t.past}
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
	t.defined = true
	return true
}

// cleanBytes is how many coded bytes are held at a time.
const cleanBytes = 4 << 10

// bits reads the bits of a part of a scan between restarts, the first one highest. Behind the
// end they are 0: short tells that some of those were taken.
type bits struct {
	source *source // of what comes behind buf, up to the next marker; nil if nothing does
	buf    []byte
	at     int
	acc    uint64
	have   uint // bits of acc
	err    error
}

// refill makes at least 57 bits available.
func (b *bits) refill() {
	if b.at+8 > len(b.buf) {
		b.refillEnd()
		return
	}
	b.acc |= binary.BigEndian.Uint64(b.buf[b.at:]) >> b.have
	n := (63 - b.have) >> 3
	b.at, b.have = b.at+int(n), b.have+8*n
}

// refillEnd is refill near the end of buf.
func (b *bits) refillEnd() {
	if b.source != nil {
		var ended bool
		b.buf = b.buf[:copy(b.buf, b.buf[b.at:])]
		b.at = 0
		b.buf, ended, b.err = b.source.coded(b.buf)
		if ended || b.err != nil {
			b.source = nil
		}
		if len(b.buf) >= 8 {
			b.refill()
			return
		}
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
