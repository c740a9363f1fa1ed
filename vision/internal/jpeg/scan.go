package jpeg

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/internal/num"
)

// scan is a scan of some components, of the coefficients from ≤ k ≤ to.
type scan struct {
	d          *Decoder
	components []scanned
	from, to   int
	high, low  uint // bits of the coefficients that are known, and that will be
	bits       bits
	endRun     int32 // blocks that have no more coefficients in this scan
}

type scanned struct {
	*component
	means, others *table
}

var (
	errScan = errors.New("jpeg: invalid scan")
	errCode = errors.New("jpeg: invalid codes in a scan")
	errEnds = errors.New("jpeg: a scan ends too early")
)

// A scan of a few bytes may visit all blocks. Encoders visit each about six times.
const (
	maxVisits      = 64      // of each block
	maxSmallVisits = 1 << 22 // of all blocks of a small image: who wants a scan per bit may have it
)

// readScan reads a scan, T.81, B.2.3, if it has coefficients that are needed.
func (d *Decoder) readScan(b []byte) error {
	if len(b) < 1 || len(b) != 4+2*int(b[0]) {
		return errScan
	}
	n := int(b[0])
	s := &scan{d: d, from: int(b[1+2*n]), to: int(b[2+2*n]), high: uint(b[3+2*n] >> 4), low: uint(b[3+2*n] & 15)}
	if !d.progressive {
		s.from, s.to, s.high, s.low = 0, blockSize-1, 0, 0
	}
	if n == 0 || n > len(d.components) || s.from > s.to || s.to >= blockSize || s.low > 13 ||
		s.high != 0 && s.high != s.low+1 || d.progressive && (s.from == 0) != (s.to == 0) || s.from > 0 && n > 1 {
		return errScan
	}
	for i := range n {
		if !s.add(b[1+2*i], b[2+2*i]>>4, b[2+2*i]&15) {
			return errScan
		}
	}
	d.visited += s.visits()
	if most := max(maxSmallVisits, maxVisits*d.blocks()); d.visited > most {
		return fmt.Errorf("jpeg: the scans visit %d blocks or more, at most %d are accepted", d.visited, most)
	}
	// Later scans may refine more coefficients than are needed, and must know all of them.
	return s.read(s.from > 0 && d.last == 0)
}

// add adds a component with its tables, and reports whether they are there.
func (s *scan) add(id, means, others byte) bool {
	c := s.d.component(id)
	if c == nil || means > 3 || others > 3 {
		return false
	}
	for _, before := range s.components {
		if before.component == c {
			return false
		}
	}
	c.scanned = true
	of := scanned{c, &s.d.huffman[0][means], &s.d.huffman[1][others]}
	if !s.d.progressive && s.d.last < blockSize-1 {
		of.others.findPast()
	}
	s.components = append(s.components, of)
	needsMeans, needsOthers := s.from == 0 && s.high == 0, s.to > 0
	return (of.means.defined || !needsMeans) && (of.others.defined || !needsOthers)
}

func (d *Decoder) component(id byte) *component {
	for i := range d.components {
		if d.components[i].id == id {
			return &d.components[i]
		}
	}
	return nil
}

// read goes through the parts between restarts up to the next other marker.
func (s *scan) read(skip bool) error {
	source := &s.d.source
	x, y := s.units()
	left := x * y
	for done := 0; ; {
		if !skip && done < left {
			n := left - done
			if s.d.restart > 0 {
				n = min(n, s.d.restart)
			}
			if err := s.part(done, n, x); err != nil {
				return err
			}
			done += n
		}
		restarted, err := source.restart()
		if err != nil {
			return err
		}
		if !restarted { // there may be more of them than there should
			if !skip && done < left {
				return errEnds
			}
			return nil
		}
	}
}

// units returns how many units of blocks a scan has: those of an image with several
// components have some of each, T.81, A.2.
func (s *scan) units() (x, y int) {
	d := s.d
	if len(s.components) > 1 {
		return d.mcusX, d.mcusY
	}
	c := s.components[0]
	return num.CeilDiv(d.width*c.h, 8*d.maxH), num.CeilDiv(d.height*c.v, 8*d.maxV)
}

// visits returns how many blocks a scan goes through.
func (s *scan) visits() int64 {
	x, y := s.units()
	each := 1
	if len(s.components) > 1 {
		each = 0
		for _, c := range s.components {
			each += c.h * c.v
		}
	}
	return int64(x) * int64(y) * int64(each)
}

// part decodes n units from one on, where the coding begins anew.
func (s *scan) part(from, n, row int) error {
	s.bits, s.endRun = bits{source: &s.d.source, buf: s.d.clean[:0]}, 0
	for _, c := range s.components {
		c.dc = 0
	}
	for unit := from; unit < from+n; unit++ {
		x, y := unit%row, unit/row
		if x == 0 {
			if err := s.d.source.stop(); err != nil {
				return err
			}
		}
		if len(s.components) == 1 {
			if !s.block(&s.components[0], x, y) {
				return s.failed(errCode)
			}
		} else if !s.unit(x, y) {
			return s.failed(errCode)
		}
		if x == row-1 && s.bits.short() {
			return s.failed(errEnds)
		}
	}
	if s.bits.short() {
		return s.failed(errEnds)
	}
	if s.endRun > 0 { // of more blocks than there are; image/jpeg takes the rest for the next scan
		return s.failed(errCode)
	}
	return s.bits.err
}

// failed returns why a part cannot be decoded: an error, or what the reader says.
func (s *scan) failed(err error) error {
	if s.bits.err != nil {
		return s.bits.err
	}
	return err
}

// unit decodes the blocks of a unit of several components.
func (s *scan) unit(x, y int) bool {
	for i := range s.components {
		c := &s.components[i]
		for v := range c.v {
			for h := range c.h {
				if !s.block(c, x*c.h+h, y*c.v+v) {
					return false
				}
			}
		}
	}
	return true
}

// block decodes a block of a scan, and reports whether its codes are some.
func (s *scan) block(c *scanned, x, y int) bool {
	if !s.d.progressive {
		return s.sequential(c, x, y)
	}
	stored := s.d.stored()
	at := (y*c.blocksX + x) * stored
	block := c.coefficients[at : at+stored]
	switch {
	case s.from == 0 && s.high == 0:
		diff, ok := s.difference(c)
		c.dc += diff
		mean := c.dc << s.low
		block[0] = int16(mean)
		return ok && int32(block[0]) == mean
	case s.from == 0:
		if s.bits.bit() {
			block[0] |= 1 << s.low
		}
		return true
	case s.high == 0:
		return s.first((*[blockSize]int16)(block), c.others)
	}
	return s.refine((*[blockSize]int16)(block), c.others)
}

// difference takes the difference of the mean to that of the block before, T.81, F.2.2.1.
func (s *scan) difference(c *scanned) (int32, bool) {
	s.bits.refill()
	size, length := c.means.code(&s.bits)
	if length == 0 || size > 15 {
		return 0, false
	}
	s.bits.skip(length)
	return s.bits.extended(uint(size)), true
}

// sequential decodes a block with all of its coefficients, T.81, F.2.2, and transforms it.
func (s *scan) sequential(c *scanned, x, y int) bool {
	d, b := s.d, &s.bits
	q := &d.quantisation[c.quantisation]
	diff, ok := s.difference(c)
	if !ok {
		return false
	}
	c.dc += diff
	var block [blockSize]int32 // in the order of rows
	block[0] = c.dc * q[0]
	for k := 1; k < blockSize; k++ {
		if b.have < 32 {
			b.refill()
		}
		if k > d.last { // no more of them are needed
			p := c.others.past[b.acc>>(64-pastBits)]
			next := k + int(p.coefficients)
			// A block may also end because it is full: what comes then is of the next one.
			if p.bits > 0 && (next < blockSize || next == blockSize && !p.ends) {
				b.skip(uint(p.bits))
				if p.ends {
					break
				}
				k = next - 1
				continue
			}
		}
		value, length := c.others.code(b)
		if length == 0 {
			return false
		}
		run, size := int(value>>4), uint(value&15)
		if size == 0 {
			b.skip(length)
			if run == 0 {
				break // no more
			}
			if run < 15 {
				return false // an end of several blocks, which only progressive files have
			}
			k += 15
			continue
		}
		if k += run; k >= blockSize {
			b.skip(length)
			break // as image/jpeg has it
		}
		if k > d.last {
			b.skip(length + size)
			continue
		}
		b.skip(length)
		block[zigzag[k]] = b.extended(size) * q[k]
	}
	d.transform(c.component, x, y, &block)
	return true
}

// first decodes the first bits of the coefficients of a band, T.81, G.1.2.2.
func (s *scan) first(block *[blockSize]int16, t *table) bool {
	if s.endRun > 0 {
		s.endRun--
		return true
	}
	b := &s.bits
	for k := s.from; k <= s.to; k++ {
		b.refill()
		value, length := t.code(b)
		if length == 0 {
			return false
		}
		b.skip(length)
		run, size := int(value>>4), uint(value&15)
		if size == 0 {
			if run < 15 {
				s.endRun = 1<<run + b.take(uint(run)) - 1
				break
			}
			k += 15
			continue
		}
		if k += run; k > s.to {
			break // as image/jpeg has it
		}
		v := b.extended(size) << s.low
		block[k] = int16(v)
		if int32(block[k]) != v {
			return false
		}
	}
	return true
}

// refine decodes one more bit of the coefficients of a band, T.81, G.1.2.3.
func (s *scan) refine(block *[blockSize]int16, t *table) bool {
	b, k := &s.bits, s.from
	if s.endRun == 0 {
		for ; k <= s.to; k++ {
			b.refill()
			value, length := t.code(b)
			if length == 0 {
				return false
			}
			b.skip(length)
			run, made := int(value>>4), int16(0)
			switch value & 15 {
			case 0:
				if run < 15 {
					s.endRun = 1<<run + b.take(uint(run))
				}
			case 1:
				made = -1 << s.low
				if b.bit() {
					made = 1 << s.low
				}
			default:
				return false
			}
			if s.endRun > 0 {
				break
			}
			if k = s.refineSome(block, k, run); k > s.to {
				return false
			}
			if made != 0 {
				block[k] = made
			}
		}
	}
	if s.endRun > 0 {
		s.endRun--
		s.refineSome(block, k, -1)
	}
	return true
}

// refineSome refines the coefficients that are not 0 from k on, up to behind so many that are, all
// of them if that is -1, and returns where it ends.
func (s *scan) refineSome(block *[blockSize]int16, k, zeros int) int {
	for ; k <= s.to; k++ {
		if block[k] == 0 {
			if zeros == 0 {
				break
			}
			zeros--
			continue
		}
		if s.bits.bit() {
			v := int32(block[k])
			if v >= 0 {
				v += 1 << s.low
			} else {
				v -= 1 << s.low
			}
			if block[k] = int16(v); int32(block[k]) != v { // refined more often than it has bits
				s.bits.err = errCode
			}
		}
	}
	return k
}
