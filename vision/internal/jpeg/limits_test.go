package jpeg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// empty is a grey progressive file of some scans, each of which says in a few bytes that
// no block has more coefficients.
func empty(w, h, scans int) []byte {
	m := made{w: w, h: h, sampling: []byte{0x11}, frame: startOfFrame2, script: []passed{{}}}
	m.draw(1)
	for i := range m.blocks[0] {
		m.blocks[0][i] = [blockSize]int32{}
	}
	for range scans {
		m.script = append(m.script, passed{from: 1, to: 63})
	}
	return m.encode()
}

// Scans of a few bytes visit all blocks: so many are accepted that any encoder's are, and who is
// beyond that is told before the work is done, at every scale.
func TestScans(t *testing.T) {
	const side = 2048 // 65,536 blocks: the smallest image whose own number counts
	blocks := int64(side / 8 * side / 8)
	just, over := empty(side, side, maxVisits-1), empty(side, side, maxVisits)
	for _, scale := range []int{1, 4, 8} {
		_, err := decode(just, scale)
		require.NoError(t, err)
		_, err = decode(over, scale)
		require.EqualError(t, err, fmt.Sprintf("jpeg: the scans visit %d blocks or more, at most %d are accepted", (maxVisits+1)*blocks, maxVisits*blocks))
		_, err = decode(empty(64, 64, 500), scale)
		require.NoError(t, err, "a small image may have a scan for each bit")
	}
}

// What is right and not read is told apart from what is broken.
func TestUnsupported(t *testing.T) {
	m := made{w: 8, h: 8, sampling: []byte{0x11}, frame: startOfFrame0}
	m.draw(1)
	good := m.encode()
	frame := bytes.Index(good, []byte{0xff, startOfFrame0})
	for _, c := range []struct {
		offset int
		value  byte
		want   string
	}{
		{1, 0xc3, "lossless coding"}, {1, 0xc5, "differential coding"}, {1, 0xc7, "differential coding"},
		{1, 0xc9, "arithmetic coding"}, {1, 0xca, "arithmetic coding"}, {1, 0xcb, "arithmetic coding"}, {1, 0xcc, "arithmetic coding"},
		{1, 0xcf, "arithmetic coding"}, {4, 12, "12 bits per colour"}, {6, 0, "a height of 0, or one given after the image"},
	} {
		data := bytes.Clone(good)
		data[frame+c.offset] = c.value
		_, err := decode(data, 1)
		require.Equal(t, Unsupported(c.want), err)
	}
	for _, sampling := range [][]byte{{0x11, 0x11}, {0x11, 0x11, 0x11, 0x11, 0x11}} {
		m := made{w: 8, h: 8, sampling: sampling, frame: startOfFrame0}
		m.draw(1)
		_, err := decode(m.encode(), 1)
		require.Equal(t, Unsupported(fmt.Sprintf("%d components", len(sampling))), err)
	}
	for _, sampling := range []byte{0x01, 0x10, 0x51, 0x15} {
		data := bytes.Clone(good)
		data[frame+11] = sampling
		_, err := decode(data, 1)
		require.ErrorContains(t, err, "component 0 is sampled")
		require.NotErrorAs(t, err, new(Unsupported))
	}
}

// What stands between segments is passed over, as other decoders do.
func TestBetweenSegments(t *testing.T) {
	m := made{w: 20, h: 20, sampling: []byte{0x11, 0x11, 0x11}, frame: startOfFrame0, restart: 2}
	m.draw(3)
	good := m.encode()
	want, err := decode(good, 1)
	require.NoError(t, err)
	for _, marker := range []byte{quantisationTables, startOfFrame0, startOfScan, endOfImage} {
		at := bytes.LastIndex(good, []byte{0xff, marker})
		for _, more := range []string{"x", "\x00\xff\x00", "\xff\xff", "\xff\xd3", "\xff\x01", "ab\xff\xd0cd"} {
			data := append(append(bytes.Clone(good[:at]), more...), good[at:]...)
			got, err := decode(data, 1)
			require.NoError(t, err, "%q in front of %x", more, marker)
			require.Equal(t, want, got)
			same(t, data, got)
		}
	}
}

// However the bytes of a file come, it is the same; and an error of the reader is handed on.
func TestReaders(t *testing.T) {
	_, coded := filesOf(5, 70, 65, 1)
	unplugged := errors.New("unplugged")
	for name, data := range coded {
		want, err := decode(data, 1)
		require.NoError(t, err)
		for _, r := range []io.Reader{iotest.OneByteReader(bytes.NewReader(data)), iotest.DataErrReader(bytes.NewReader(data)), iotest.HalfReader(bytes.NewReader(data))} {
			d, err := Open(r, goOn)
			require.NoError(t, err, name)
			got, err := d.Decode(1)
			require.NoError(t, err, name)
			require.Equal(t, want, got, name)
		}
		for _, n := range []int{len(data) / 2, len(data) - 1} {
			d, err := Open(io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(unplugged)), goOn)
			require.NoError(t, err, name)
			_, err = d.Decode(1)
			require.ErrorIs(t, err, unplugged, name)
		}
	}
}

// A decoder that is told to stop does so before the next row of blocks or of pixels, the next scan
// and the next piece of the file.
func TestStop(t *testing.T) {
	stopped := errors.New("stopped")
	for k := range kinds {
		if testing.Short() && k%5 > 0 {
			continue
		}
		_, coded := filesOf(k, 40, 40, 1)
		for name, data := range coded {
			asked := 0
			count := func() error { asked++; return nil }
			d, err := Open(bytes.NewReader(data), count)
			require.NoError(t, err)
			_, err = d.Decode(1)
			require.NoError(t, err)
			require.GreaterOrEqual(t, asked, 3, name)
			for at := range asked {
				left := at
				stop := func() error {
					if left--; left < 0 {
						return stopped
					}
					return nil
				}
				d, err := Open(bytes.NewReader(data), stop)
				if err == nil {
					_, err = d.Decode(1)
				}
				require.ErrorIs(t, err, stopped, "%s, asked %d of %d times", name, at, asked)
				require.Equal(t, -1, left, "it is asked once more")
			}
		}
	}
	asked := 0
	d, err := Open(bytes.NewReader(empty(64, 4096, 50)), func() error { asked++; return nil })
	require.NoError(t, err)
	_, err = d.Decode(8)
	require.NoError(t, err)
	require.Greater(t, asked, 512+512+50, "once for each row, and for each scan")
}

// Tables that are defined again and again take no memory.
func TestManyTables(t *testing.T) {
	m := made{w: 8, h: 8, sampling: []byte{0x11}, frame: startOfFrame0}
	m.draw(1)
	table := huffmanSegment(1)
	segment := append(binary.BigEndian.AppendUint16([]byte{0xff, huffmanTables}, uint16(len(table)+2)), table...)
	m.segments = string(bytes.Repeat(segment, 1000))
	data := m.encode()
	require.Less(t, testing.AllocsPerRun(2, func() {
		_, err := decode(data, 4)
		require.NoError(t, err)
	}), 100.0)
}
