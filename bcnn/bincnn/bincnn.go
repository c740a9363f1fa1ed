// Package bincnn reads the weights that Khan, Huttunen and Boutellier published
// with "Binarized Convolutional Neural Networks for Efficient Inference on GPUs"
// (EUSIPCO 2018): a vehicle classifier of 96×96 RGB images and four classes,
// whose order is not known.
//
// A folder holds little-endian files of 32-bit words without headers. The first
// element of a word is its most significant bit in use: 25 bits hold a 5×5
// kernel or 25 inputs of a dense layer, 32 bits the channels of a pixel. Bit 1
// is +1.
//
//	pkwConv1.bin  32 outputs × 3 channels × 25 bits
//	wConv1.bin    the same, as int32 values +1 and −1
//	pkwConv2.bin  32 outputs × 32 channels × 25 bits
//	pkwD1.bin     100 outputs × 576 pixels × 32 bits
//	pkwD2.bin     100 outputs × 4 × 25 bits
//	pkwD3.bin     4 outputs × 4 × 25 bits
package bincnn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/bits"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
	"github.com/bitcnn/bitcnn/internal/files"
	"github.com/bitcnn/bitcnn/internal/fpmode"
)

// Mode is what the network does with the bytes of an image.
type Mode string

const (
	// Thresh adds −127, −100 and −70 to R, G and B and takes the sign.
	Thresh Mode = "thresh"
	// Norm stretches the range of the image to −127 … 127 and takes the sign.
	Norm Mode = "norm"
	// Int convolves the bytes, with zero padding.
	Int Mode = "int"
)

// Modes lists all modes.
var Modes = []Mode{Thresh, Norm, Int}

const (
	side    = 96
	filters = 32
	kernel  = 5
	taps    = kernel * kernel
	pixels  = side / 4 * (side / 4) // of the map that the dense layers read
	units   = 100
	classes = 4
)

// file is one of the files and how many words of how many bits it has.
type file struct {
	name        string
	words, bits int
}

var (
	conv1 = file{"pkwConv1.bin", filters * 3, taps}
	conv2 = file{"pkwConv2.bin", filters * filters, taps}
	d1    = file{"pkwD1.bin", units * pixels, filters}
	d2    = file{"pkwD2.bin", units * units / taps, taps}
	d3    = file{"pkwD3.bin", classes * units / taps, taps}
	plain = file{"wConv1.bin", filters * 3 * taps, 32}
)

// Load reads the weights in a folder as a network of the given mode. Every
// binarisation behind the input is +1 where the value is greater than 0, every
// padding but that of bytes is −1. Errors name the file.
func Load(ctx context.Context, dir string, mode Mode) (*bcnn.Network, error) {
	return load(ctx, place{
		func(name string) string { return filepath.Join(dir, name) }, files.ReadAll,
	}, mode)
}

// Read is Load for a folder of a file system, such as an embed.FS.
func Read(ctx context.Context, fsys fs.FS, dir string, mode Mode) (*bcnn.Network, error) {
	return load(ctx, place{
		func(name string) string { return path.Join(dir, name) },
		func(path string, limit int64) ([]byte, error) { return files.ReadAllFS(fsys, path, limit) },
	}, mode)
}

// place is where the files are.
type place struct {
	path func(name string) string
	read func(path string, limit int64) ([]byte, error)
}

func load(ctx context.Context, dir place, mode Mode) (net *bcnn.Network, err error) {
	defer fpmode.Enter().Leave()
	defer try.Recover(&err)
	n := &bcnn.Network{
		Name:   "bincnn-" + string(mode),
		Inputs: []bcnn.Input{{Shape: bcnn.Shape{H: side, W: side, C: 3}, DType: bcnn.Uint8}},
	}
	padValue := -1
	switch mode {
	case Thresh:
		// x + T > 0 is x ≥ 1 − T.
		n.Append("binarize", bcnn.Binarize{Scheme: bcnn.SchemeThreshold, Thresholds: []int32{128, 101, 71}})
	case Norm:
		n.Append("binarize", bcnn.Binarize{Scheme: bcnn.SchemeMinMax})
	case Int:
		padValue = 0
	default:
		return nil, fmt.Errorf("bincnn: unknown mode %q, want one of %v", mode, Modes)
	}
	var words [5][]uint32
	for i, f := range []file{conv1, conv2, d1, d2, d3} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if words[i], err = f.load(dir); err != nil {
			return nil, err
		}
	}
	if err := checkPlain(dir, words[0]); err != nil {
		return nil, err
	}

	sign := bcnn.Sign{Zero: bcnn.ZeroIsMinus}
	conv := func(i string, words []uint32, channels, padValue int) {
		const pad = kernel / 2
		n.Append("conv"+i, bcnn.Conv2D{
			Window: bcnn.Window{KH: kernel, KW: kernel, Pad: bcnn.Padding{Top: pad, Left: pad, Bottom: pad, Right: pad}},
			Out:    filters, PadValue: padValue, Weights: convWeights(words, channels),
		})
		n.Append("pool"+i, bcnn.MaxPool{Window: bcnn.Window{KH: 2, KW: 2, StrideH: 2, StrideW: 2}})
		n.Append("sign"+i, sign)
	}
	conv("1", words[0], 3, padValue)
	conv("2", words[1], filters, -1)
	n.Append("flatten", bcnn.Flatten{})
	n.Append("dense1", bcnn.Dense{Out: units, Weights: denseWeights(words[2], d1.bits, pixels*filters)})
	n.Append("sign3", sign)
	n.Append("dense2", bcnn.Dense{Out: units, Weights: denseWeights(words[3], d2.bits, units)})
	n.Append("sign4", sign)
	n.Append("dense3", bcnn.Dense{Out: classes, Weights: denseWeights(words[4], d3.bits, units)})
	return n, nil
}

// load reads the words of a file.
func (f file) load(dir place) ([]uint32, error) {
	path := dir.path(f.name)
	data, err := dir.read(path, int64(4*f.words))
	if err != nil {
		return nil, err
	}
	words, err := f.decode(data)
	return words, files.Name(path, err)
}

func (f file) decode(data []byte) (words []uint32, err error) {
	defer try.Recover(&err)
	if size := 4 * f.words; len(data) < size {
		return nil, fmt.Errorf("the file has only %d bytes, want %d", len(data), size)
	}
	words = make([]uint32, f.words)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(data[4*i:])
		if words[i]>>(f.bits-1)>>1 != 0 {
			return nil, fmt.Errorf("word %d is %#x, which has more than %d bits", i, words[i], f.bits)
		}
	}
	return words, nil
}

// checkPlain compares the file with the first convolution's weights in plain
// integers with the packed ones, so that a mixture of folders is noticed.
func checkPlain(dir place, packed []uint32) error {
	values, err := plain.load(dir)
	if err != nil {
		return err
	}
	for i, v := range values {
		if int32(v) != int32(2*(packed[i/taps]>>(taps-1-i%taps)&1))-1 {
			return files.Name(dir.path(plain.name), errors.New("its weights differ from those of "+conv1.name))
		}
	}
	return nil
}

// convWeights packs words [output][channel], 25 taps each, as
// [output][ky][kx][channel].
func convWeights(words []uint32, channels int) bcnn.Weights {
	w := make([]uint64, filters*taps) // no more than 64 channels
	for i, word := range words {
		o, c := i/channels, i%channels
		for k := range taps {
			w[o*taps+k] |= uint64(word>>(taps-1-k)&1) << c
		}
	}
	return bcnn.Weights{Bits: w}
}

// denseWeights packs rows of n inputs that come in words of the given number of
// bits.
func denseWeights(words []uint32, perWord, n int) bcnn.Weights {
	row := bits.Words(n)
	w := make([]uint64, len(words)*perWord/n*row)
	for i := range len(words) * perWord {
		bit := uint64(words[i/perWord]>>(perWord-1-i%perWord)) & 1
		w[i/n*row+i%n/bits.WordBits] |= bit << (i % n % bits.WordBits)
	}
	return bcnn.Weights{Bits: w}
}
