package jpeg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// source reads a file piece by piece, so that none is held in memory as a whole.
type source struct {
	r       io.Reader
	stop    func() error // is asked before each piece
	buf     []byte
	at, end int   // what of buf has not been taken
	taken   int64 // bytes before buf
}

const (
	pieceBytes   = 8 << 10
	segmentBytes = 1 << 16 // the longest segment is a little shorter
)

// need returns the next n bytes, at most segmentBytes, without taking them. They stay where they
// are until the next call.
func (s *source) need(n int) ([]byte, error) {
	if n > len(s.buf) {
		s.buf = append(s.buf, make([]byte, segmentBytes-len(s.buf))...)
	}
	for s.end-s.at < n {
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
	return s.buf[s.at : s.at+n], nil
}

// fill reads some more bytes.
func (s *source) fill() error {
	if err := s.stop(); err != nil {
		return err
	}
	s.taken += int64(s.at)
	s.end = copy(s.buf, s.buf[s.at:s.end])
	s.at = 0
	for range 100 { // as often as bufio tries
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if n > 0 {
			return nil
		}
		if err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// position is how many bytes have been taken.
func (s *source) position() int64 { return s.taken + int64(s.at) }

// marker takes the next marker that begins a segment, or ends the image, and all in front of it:
// like other decoders this one is not strict about what stands between segments, which are the
// restarts and the rest of a scan, too.
func (s *source) marker() (byte, error) {
	for {
		b, err := s.need(2)
		if err != nil {
			return 0, err
		}
		switch m := b[1]; {
		case b[0] != 0xff:
			rest := s.buf[s.at:s.end]
			if n := bytes.IndexByte(rest, 0xff); n >= 0 {
				s.at += n
			} else {
				s.at = s.end
			}
		case m == 0xff: // a fill byte
			s.at++
		case m == 0, m == temporary, restart0 <= m && m <= restart7:
			s.at += 2
		default:
			s.at += 2
			return m, nil
		}
	}
}

// segment takes a segment and returns its bytes behind the length. They stay where they are until
// more of the file is read.
func (s *source) segment(marker byte) ([]byte, error) {
	b, err := s.need(2)
	if err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint16(b))
	if size < 2 {
		return nil, fmt.Errorf("jpeg: a segment %#x of %d bytes", marker, size)
	}
	if b, err = s.need(size); err != nil {
		return nil, err
	}
	s.at += size
	return b[2:], nil
}

// coded takes coded bytes of a scan, without the zeros behind 0xff, and appends them to dst until
// that is full, or ended: then a marker is next.
func (s *source) coded(dst []byte) (more []byte, ended bool, err error) {
	for len(dst) < cap(dst) {
		b, err := s.need(1)
		if err != nil {
			return dst, false, err
		}
		if b[0] != 0xff {
			rest := s.buf[s.at:min(s.end, s.at+cap(dst)-len(dst))]
			if n := bytes.IndexByte(rest, 0xff); n >= 0 {
				rest = rest[:n]
			}
			dst = append(dst, rest...)
			s.at += len(rest)
			continue
		}
		if b, err = s.need(2); err != nil {
			return dst, false, err
		}
		switch b[1] {
		case 0:
			dst = append(dst, 0xff)
			s.at += 2
		case 0xff: // a fill byte
			s.at++
		default:
			return dst, true, nil
		}
	}
	return dst, false, nil
}

// restart goes to the end of a part of a scan, and reports whether a restart is there, which it
// takes.
func (s *source) restart() (bool, error) {
	for {
		b, err := s.need(2)
		if err != nil {
			return false, err
		}
		switch m := b[1]; {
		case b[0] != 0xff:
			rest := s.buf[s.at:s.end]
			if n := bytes.IndexByte(rest, 0xff); n >= 0 {
				s.at += n
			} else {
				s.at = s.end
			}
		case m == 0xff:
			s.at++
		case m == 0:
			s.at += 2
		default:
			if m < restart0 || m > restart7 {
				return false, nil
			}
			s.at += 2
			return true, nil
		}
	}
}

// Unsupported is what a file is coded in that this package does not read, though it may be right.
type Unsupported string

func (u Unsupported) Error() string { return "JPEG with " + string(u) }

var errTwo = errors.New("jpeg: an image begins inside another")
