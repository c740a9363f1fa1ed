package bincnn

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/bcnn/lower"
)

// folder holds weight files in memory.
type folder map[string][]byte

// write puts the files into a new folder.
func (f folder) write(t *testing.T) string {
	dir := t.TempDir()
	for name, b := range f {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	return dir
}

// random returns valid files.
func random(seed uint64) folder {
	rng := rand.New(rand.NewPCG(seed, 1))
	f := folder{}
	for _, s := range []file{conv1, conv2, d1, d2, d3} {
		b := make([]byte, 0, 4*s.words)
		for range s.words {
			b = binary.LittleEndian.AppendUint32(b, rng.Uint32()>>(32-s.bits))
		}
		f[s.name] = b
	}
	b := make([]byte, 0, 4*plain.words)
	for i := range plain.words {
		// Written from the description of the format alone.
		word := binary.LittleEndian.Uint32(f[conv1.name][4*(i/25):])
		w := int32(-1)
		if word&(1<<(24-i%25)) != 0 {
			w = 1
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(w))
	}
	f[plain.name] = b
	return f
}

func TestEveryWeightHasItsPlace(t *testing.T) {
	f := random(5)
	dir := f.write(t)
	net, err := Load(t.Context(), dir, Int)
	require.NoError(t, err)
	same, err := Read(t.Context(), os.DirFS(filepath.Dir(dir)), filepath.Base(dir), Int)
	require.NoError(t, err)
	require.Equal(t, net, same)
	word := func(s file, i int) uint32 { return binary.LittleEndian.Uint32(f[s.name][4*i:]) }
	sign := func(w uint32, bit int) int { return 2*int(w>>bit&1) - 1 }
	find := func(name string) bcnn.Op {
		for _, l := range net.Layers {
			if l.Name == name {
				return l.Op
			}
		}
		t.Fatalf("no layer %s", name)
		return nil
	}
	for _, c := range []struct {
		layer string
		src   file
		in    int
	}{{"conv1", conv1, 3}, {"conv2", conv2, 32}} {
		w := find(c.layer).(bcnn.Conv2D).Weights.Bits
		for o := range 32 {
			for ky := range 5 {
				for kx := range 5 {
					for ch := range c.in {
						row := w[(o*5+ky)*5+kx:]
						require.Equal(t, sign(word(c.src, o*c.in+ch), 24-(ky*5+kx)), bits.At(row, ch))
					}
				}
			}
		}
	}
	w := find("dense1").(bcnn.Dense).Weights.Bits
	for o := range 100 {
		for i := range 576 * 32 {
			require.Equal(t, sign(word(d1, o*576+i/32), 31-i%32), bits.At(w[o*288:], i))
		}
	}
	w = find("dense2").(bcnn.Dense).Weights.Bits
	for o := range 100 {
		for i := range 100 {
			require.Equal(t, sign(word(d2, o*4+i/25), 24-i%25), bits.At(w[o*2:], i))
		}
	}
}

func TestBadFilesAreNamed(t *testing.T) {
	for _, mode := range Modes {
		_, err := Load(t.Context(), random(1).write(t), mode)
		require.NoError(t, err)
	}
	_, err := Load(t.Context(), random(1).write(t), "fast")
	require.ErrorContains(t, err, `unknown mode "fast", want one of [thresh norm int]`)
	_, err = Load(t.Context(), random(1).write(t), "")
	require.Error(t, err)

	for name := range random(1) {
		change := func(edit func(b []byte) []byte) (string, error) {
			f := random(1)
			f[name] = edit(f[name])
			dir := f.write(t)
			_, err := Load(t.Context(), dir, Thresh)
			return filepath.Join(dir, name), err
		}
		path, err := change(func(b []byte) []byte { return b[:len(b)-1] })
		require.ErrorContains(t, err, path+": ")
		path, err = change(func(b []byte) []byte { return append(b, 0) })
		require.ErrorContains(t, err, path+": ")
		path, err = change(func([]byte) []byte { return nil })
		require.ErrorContains(t, err, path+": the file has only 0 bytes, want")
		if name != d1.name { // uses all bits of a word
			path, err = change(func(b []byte) []byte { b[3] ^= 0x80; return b })
			require.ErrorContains(t, err, path+": ")
		}

		dir := random(1).write(t)
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
		_, err = Load(t.Context(), dir, Thresh)
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, name)
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		_, err = Load(t.Context(), dir, Thresh)
		require.EqualError(t, err, filepath.Join(dir, name)+": is a directory")
	}

	f := random(1)
	f[conv1.name][0] ^= 1 // the last tap of the first kernel
	dir := f.write(t)
	_, err = Load(t.Context(), dir, Thresh)
	require.EqualError(t, err, filepath.Join(dir, plain.name)+": its weights differ from those of "+conv1.name)
}

// FuzzLoad changes one of the files. Whatever loads is a network that lowers.
func FuzzLoad(f *testing.F) {
	names := []string{conv1.name, conv2.name, d2.name, d3.name, plain.name, d1.name}
	for i, name := range names[:5] {
		f.Add(uint8(i), random(2)[name])
	}
	f.Add(uint8(5), []byte("short"))
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		set := random(3)
		name := names[int(which)%len(names)]
		set[name] = b
		dir := set.write(t)
		for _, mode := range Modes {
			n, err := Load(t.Context(), dir, mode)
			if err != nil {
				require.ErrorContains(t, err, dir)
				require.NotErrorIs(t, err, try.ErrPanic)
				continue
			}
			_, err = lower.Network(t.Context(), n, lower.Options{})
			require.NoError(t, err)
		}
	})
}

// failing is a context that panics once it was asked so often whether it has ended.
type failing struct {
	context.Context
	left *int
}

func (c failing) Err() error {
	if *c.left--; *c.left < 0 {
		panic(errors.New("asked too often"))
	}
	return c.Context.Err()
}

// A panic anywhere is an error of Load.
func TestPanicAnywhere(t *testing.T) {
	dir := random(4).write(t)
	for n := range 6 {
		left := n
		net, err := Load(failing{t.Context(), &left}, dir, Thresh)
		if n == 5 { // once for each of the packed files
			require.NoError(t, err)
			require.NotNil(t, net)
			return
		}
		require.ErrorIs(t, err, try.ErrPanic)
		require.ErrorContains(t, err, ".failing.Err (bincnn_test.go:")
		require.Nil(t, net)
	}
}
