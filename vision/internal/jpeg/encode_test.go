package jpeg

import (
	"encoding/binary"
	mathbits "math/bits"
	"math/rand/v2"

	"github.com/bitcnn/bitcnn/internal/num"
)

// made is a JPEG whose coefficients are drawn, in every way of coding that is read: encoders
// write few of them.
type made struct {
	w, h      int
	sampling  []byte // horizontal and vertical factor of each component
	ids       string // of the components, "\x01\x02\x03\x04" if empty
	segments  string // in front of all others
	frame     byte
	apart     bool // a scan for each component
	restart   int
	script    []passed // of a progressive file
	maxH      int
	maxV      int
	blocks    [][][blockSize]int32 // of a component, in zigzag order
	across    []int                // blocks in a row
	quantised [blockSize]byte
}

// passed is a scan of a progressive file: of all components if it has means, else of one.
type passed struct {
	component int
	from, to  int
	high, low uint
	noRunning bool
}

func (m *made) draw(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range m.quantised {
		m.quantised[i] = byte(1 + rng.IntN(3+i/4))
	}
	for _, s := range m.sampling {
		m.maxH, m.maxV = max(m.maxH, int(s>>4)), max(m.maxV, int(s&15))
	}
	if len(m.sampling) == 1 {
		m.sampling, m.maxH, m.maxV = []byte{0x11}, 1, 1
	}
	for _, s := range m.sampling {
		x, y := num.CeilDiv(m.w, 8*m.maxH)*int(s>>4), num.CeilDiv(m.h, 8*m.maxV)*int(s&15)
		blocks := make([][blockSize]int32, x*y)
		for i := range blocks {
			b := &blocks[i]
			b[0] = int32(rng.IntN(1200)-600) / int32(m.quantised[0])
			if rng.IntN(4) == 0 {
				continue // runs of blocks end together
			}
			for range rng.IntN(12) {
				k := 1 + rng.IntN(blockSize-1)>>rng.IntN(4)
				b[k] = int32(rng.IntN(200/(1+k/2)+3) - (200/(1+k/2)+3)/2)
			}
			if rng.IntN(9) == 0 {
				b[blockSize-1] = 1 // a full block
			}
		}
		m.blocks, m.across = append(m.blocks, blocks), append(m.across, x)
	}
}

// The Huffman code of all symbols: four have 4 bits, some 7, most 12.
func codeOf(symbol byte) (code uint32, length uint) {
	switch n := uint32(symbol); {
	case n < 4:
		return n, 4
	case n < 20:
		return 4<<3 + n - 4, 7
	default:
		return (4<<3+16)<<5 + n - 20, 12
	}
}

func huffmanSegment(class byte) []byte {
	counts, symbols := [16]byte{3: 4, 6: 16, 11: 236}, 256
	if class == 0 { // means have 16 sizes
		counts, symbols = [16]byte{3: 4, 6: 12}, 16
	}
	b := append([]byte{class << 4}, counts[:]...)
	for i := range symbols {
		b = append(b, byte(i))
	}
	return b
}

// writer writes bits, with zeros behind 0xff.
type writer struct {
	out  []byte
	acc  uint64
	have uint
}

func (w *writer) put(v uint32, n uint) {
	w.acc, w.have = w.acc<<n|uint64(v)&(1<<n-1), w.have+n
	for w.have >= 8 {
		b := byte(w.acc >> (w.have - 8))
		w.out = append(w.out, b)
		if b == 0xff {
			w.out = append(w.out, 0)
		}
		w.have -= 8
	}
}

func (w *writer) symbol(s byte) { w.put(codeOf(s)) }

// number writes a number of as many bits as its size has.
func (w *writer) number(v int32, size uint) {
	if v < 0 {
		v--
	}
	w.put(uint32(v), size)
}

func sizeOf(v int32) uint { return uint(mathbits.Len32(uint32(max(v, -v)))) }

func (w *writer) flush() {
	if w.have > 0 {
		w.put(1<<(8-w.have)-1, 8-w.have)
	}
}

func (w *writer) segment(marker byte, data ...byte) {
	w.out = append(w.out, 0xff, marker)
	w.out = binary.BigEndian.AppendUint16(w.out, uint16(len(data)+2))
	w.out = append(w.out, data...)
}

func (m *made) id(i int) byte {
	if m.ids != "" {
		return m.ids[i]
	}
	return byte(i + 1)
}

func (m *made) encode() []byte {
	w := &writer{out: []byte("\xff\xd8" + m.segments)}
	w.segment(quantisationTables, append([]byte{0}, m.quantised[:]...)...)
	w.segment(huffmanTables, append(huffmanSegment(0), huffmanSegment(1)...)...)
	if m.restart > 0 {
		w.segment(restartInterval, byte(m.restart>>8), byte(m.restart))
	}
	frame := []byte{8, byte(m.h >> 8), byte(m.h), byte(m.w >> 8), byte(m.w), byte(len(m.sampling))}
	all := []int{}
	for i, s := range m.sampling {
		frame, all = append(frame, m.id(i), s, 0), append(all, i)
	}
	w.segment(m.frame, frame...)
	switch {
	case m.frame == startOfFrame2:
		for _, p := range m.script {
			if p.from == 0 && !m.apart {
				m.scan(w, all, p)
			} else if p.from == 0 {
				for i := range all {
					m.scan(w, []int{i}, p)
				}
			} else if p.component < len(all) {
				m.scan(w, []int{p.component}, p)
			}
		}
	case m.apart:
		for i := range all {
			m.scan(w, []int{i}, passed{to: blockSize - 1})
		}
	default:
		m.scan(w, all, passed{to: blockSize - 1})
	}
	return append(w.out, 0xff, endOfImage)
}

// scan writes a scan of some components.
func (m *made) scan(w *writer, components []int, p passed) {
	head := []byte{byte(len(components))}
	for _, i := range components {
		head = append(head, m.id(i), 0)
	}
	w.segment(startOfScan, append(head, byte(p.from), byte(p.to), byte(p.high<<4|p.low))...)
	s := &written{w: w, passed: p, dc: make([]int32, len(m.sampling))}
	x, y := num.CeilDiv(m.w, 8*m.maxH), num.CeilDiv(m.h, 8*m.maxV)
	if len(components) == 1 {
		c := m.sampling[components[0]]
		x, y = num.CeilDiv(m.w*int(c>>4), 8*m.maxH), num.CeilDiv(m.h*int(c&15), 8*m.maxV)
	}
	for unit := range x * y {
		if m.restart > 0 && unit > 0 && unit%m.restart == 0 {
			s.end()
			w.out = append(w.out, 0xff, byte(restart0+(unit/m.restart-1)%8))
			clear(s.dc)
		}
		for _, i := range components {
			ch, cv := int(m.sampling[i]>>4), int(m.sampling[i]&15)
			if len(components) == 1 {
				ch, cv = 1, 1
			}
			for v := range cv {
				for h := range ch {
					s.block(&m.blocks[i][(unit/x*cv+v)*m.across[i]+unit%x*ch+h], &s.dc[i], m.frame == startOfFrame2)
				}
			}
		}
	}
	s.end()
}

// written is the state of a scan that is written.
type written struct {
	w *writer
	passed
	dc  []int32
	run uint32 // blocks that end, and have not been written
}

func (s *written) endRun() {
	if s.run > 0 {
		n := uint(mathbits.Len32(s.run)) - 1
		s.w.symbol(byte(n << 4))
		s.w.put(s.run, n)
		s.run = 0
	}
}

func (s *written) end() {
	s.endRun()
	s.w.flush()
}

func (s *written) block(b *[blockSize]int32, dc *int32, progressive bool) {
	if s.from == 0 && s.high > 0 {
		s.w.put(uint32(b[0]>>s.low), 1)
		return
	}
	k := s.from
	if s.from == 0 {
		v := b[0] >> s.low
		size := sizeOf(v - *dc)
		s.w.symbol(byte(size))
		s.w.number(v-*dc, size)
		*dc, k = v, 1
	}
	if s.high > 0 {
		s.refine(b)
		return
	}
	zeros := 0
	for ; k <= s.to; k++ {
		v := b[k] / (1 << s.low)
		if v == 0 {
			zeros++
			continue
		}
		s.endRun()
		for ; zeros > 15; zeros -= 16 {
			s.w.symbol(0xf0)
		}
		s.w.symbol(byte(zeros<<4) | byte(sizeOf(v)))
		s.w.number(v, sizeOf(v))
		zeros = 0
	}
	if zeros > 0 {
		if s.run++; !progressive || s.noRunning || s.run == 0x7fff {
			s.endRun()
		}
	}
}

// refine writes one more bit, T.81, G.1.2.3, with an end for each block that needs one.
func (s *written) refine(b *[blockSize]int32) {
	abs := func(k int) int32 { return max(b[k], -b[k]) >> s.low }
	last := 0
	for k := s.from; k <= s.to; k++ {
		if abs(k) == 1 {
			last = k
		}
	}
	zeros, later := 0, []uint32{}
	correct := func() {
		for _, bit := range later {
			s.w.put(bit, 1)
		}
		later = later[:0]
	}
	for k := s.from; k <= s.to; k++ {
		v := abs(k)
		if v == 0 {
			zeros++
			continue
		}
		for zeros > 15 && k <= last {
			s.w.symbol(0xf0)
			correct()
			zeros -= 16
		}
		if v > 1 {
			later = append(later, uint32(v&1))
			continue
		}
		s.w.symbol(byte(zeros<<4) | 1)
		sign := uint32(1)
		if b[k] < 0 {
			sign = 0
		}
		s.w.put(sign, 1)
		correct()
		zeros = 0
	}
	if zeros > 0 || len(later) > 0 {
		s.w.symbol(0)
		correct()
	}
}

// usual is a script like that of libjpeg: means, then bands, then one more bit of all.
var usual = []passed{
	{low: 1}, {component: 0, from: 1, to: 5, low: 2}, {component: 2, from: 1, to: 63, low: 1}, {component: 1, from: 1, to: 63, low: 1},
	{component: 3, from: 1, to: 63}, {component: 0, from: 6, to: 63, low: 2, noRunning: true}, {component: 0, from: 1, to: 63, high: 2, low: 1},
	{high: 1}, {component: 2, from: 1, to: 63, high: 1}, {component: 1, from: 1, to: 63, high: 1}, {component: 0, from: 1, to: 63, high: 1},
}
