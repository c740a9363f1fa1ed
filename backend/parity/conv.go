package parity

import (
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
)

// convSpec describes a case of one convolution or dense layer and what follows.
// Zero values are the defaults; name lists the others.
type convSpec struct {
	in      string // "bits", "bytes", "float"
	h, w, c int
	k       [2]int
	s, d    [2]int
	pad     [4]int // top, left, bottom, right
	pv      int    // padding value
	out     int
	groups  int
	dense   bool
	flatten bool // before dense
	binary  bool // ±1 weights on float input
	zero    bcnn.ZeroRule
	norm    norm
	pool    pooling
	end     string // "sign", "sum", "bias", "norm", "relu"
	act     string // an activation at the end, or before the sign
	z       int    // zero point of bytes
	fill    fill
	batch   int
}

// pooling stands before or after the sign.
type pooling struct {
	at     string // "", "presign", "postsign"
	k      [2]int
	s, pad [2]int // stride 0 means the size; padding on all sides
}

func (p pooling) window() bcnn.Window {
	w := bcnn.Window{KH: p.k[0], KW: p.k[1], StrideH: p.s[0], StrideW: p.s[1],
		Pad: bcnn.Padding{Top: p.pad[0], Bottom: p.pad[0], Left: p.pad[1], Right: p.pad[1]}}
	if p.s == [2]int{} {
		w.StrideH, w.StrideW = p.k[0], p.k[1]
	}
	return w
}

func pair(p [2]int) string { return fmt.Sprintf("%dx%d", p[0], p[1]) }

// normal sets the defaults.
func (s convSpec) normal() convSpec {
	for _, d := range []struct {
		field *int
		value int
	}{{&s.h, 5}, {&s.w, 6}, {&s.c, 33}, {&s.out, 34}, {&s.groups, 1}, {&s.batch, 2},
		{&s.k[0], 3}, {&s.k[1], 3}, {&s.s[0], 1}, {&s.s[1], 1}, {&s.d[0], 1}, {&s.d[1], 1}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if s.end == "" {
		s.end = "sign"
	}
	if s.zero == 0 {
		s.zero = bcnn.ZeroRule(1 + (s.c+s.out+s.k[0])%2)
	}
	return s
}

func (s convSpec) name() string {
	parts := []string{"conv", s.in}
	if s.dense {
		parts[0] = "dense"
	}
	add := func(show bool, format string, args ...any) {
		if show {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(true, "%dx%dx%d", s.h, s.w, s.c)
	add(s.flatten, "flatten")
	add(!s.dense, "k%s", pair(s.k))
	add(s.s != [2]int{1, 1}, "s%s", pair(s.s))
	add(s.d != [2]int{1, 1}, "d%s", pair(s.d))
	add(s.pad != [4]int{}, "pad%d.%d.%d.%d=%d", s.pad[0], s.pad[1], s.pad[2], s.pad[3], s.pv)
	add(true, "out%d", s.out)
	add(s.groups != 1, "g%d", s.groups)
	add(s.z != 0, "z%d", s.z)
	add(s.binary, "binary")
	add(s.pool.at == "presign", "maxpool%s", s.pool.name())
	add(true, "%s", s.end)
	add(s.act != "", "%s", s.act)
	add(s.end == "sign", "%s", map[bcnn.ZeroRule]string{bcnn.ZeroIsPlus: "ge", bcnn.ZeroIsMinus: "gt"}[s.zero])
	add(s.norm != "", "%s", s.norm)
	add(s.pool.at == "postsign", "maxpool%s", s.pool.name())
	add(s.fill != "", "%s", s.fill)
	add(s.batch != 2, "n%d", s.batch)
	return strings.Join(parts, "/")
}

func (p pooling) name() string {
	name := pair(p.k)
	if p.s != [2]int{} {
		name += "s" + pair(p.s)
	}
	if p.pad != [2]int{} {
		name += "p" + pair(p.pad)
	}
	return name
}

func (s convSpec) testCase() Case {
	s = s.normal()
	return Case{Name: s.name(), Batch: s.batch, fill: s.fill, build: s.build}
}

func (s convSpec) build(b *builder) *bcnn.Network {
	dtype := bcnn.Float32
	if s.in == "bytes" {
		dtype = bcnn.Uint8
	}
	b.input(dtype, s.h, s.w, s.c)
	if s.in == "bits" {
		b.binarySource(bcnn.ZeroIsPlus)
	}
	if s.z != 0 {
		b.add(bcnn.Affine{Scale: []float32{1.0 / 64}, Bias: []float32{float32(-s.z) / 64}})
	}
	if s.flatten {
		b.add(bcnn.Flatten{})
	}
	real := s.in == "float" && !s.binary
	if s.dense {
		b.dense(s.out, real)
	} else {
		b.conv(bcnn.Conv2D{
			Window: bcnn.Window{KH: s.k[0], KW: s.k[1], StrideH: s.s[0], StrideW: s.s[1], DilationH: s.d[0], DilationW: s.d[1],
				Pad: bcnn.Padding{Top: s.pad[0], Left: s.pad[1], Bottom: s.pad[2], Right: s.pad[3]}},
			Out: s.out, Groups: s.groups, PadValue: s.pv,
		}, real)
	}
	if s.pool.at == "presign" {
		b.add(bcnn.MaxPool{Window: s.pool.window()})
	}
	switch s.end {
	case "sign":
		b.batchNorm(s.norm)
		b.activation(s.act)
		b.add(bcnn.Sign{Zero: s.zero})
	case "bias":
		b.add(bcnn.Affine{Bias: b.floats(s.out, 3)})
	case "norm":
		b.batchNorm(s.norm)
	case "relu":
		b.batchNorm(s.norm)
		b.add(bcnn.ReLU{})
	}
	if s.end != "sign" {
		b.activation(s.act)
	}
	if s.pool.at == "postsign" {
		b.add(bcnn.MaxPool{Window: s.pool.window()})
	}
	return b.net
}

// same is the padding that keeps the size at stride 1, the odd one at the end.
func same(k, d [2]int) [4]int {
	v, h := (k[0]-1)*max(d[0], 1), (k[1]-1)*max(d[1], 1)
	return [4]int{v / 2, h / 2, v - v/2, h - h/2}
}

var (
	padValues = []int{-1, 1, 0}
	kernels   = [][2]int{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {7, 7}, {1, 3}, {3, 1}, {3, 5}, {2, 7}}
	strides   = [][2]int{{1, 2}, {2, 1}, {2, 2}, {3, 2}, {4, 4}}
	dilations = [][2]int{{2, 1}, {1, 2}, {2, 2}, {3, 3}}
	pools     = []pooling{
		{k: [2]int{2, 2}}, {k: [2]int{3, 3}}, {k: [2]int{1, 2}}, {k: [2]int{2, 1}}, {k: [2]int{3, 2}}, {k: [2]int{1, 1}},
		{k: [2]int{3, 3}, s: [2]int{2, 2}, pad: [2]int{1, 1}}, {k: [2]int{3, 3}, s: [2]int{1, 1}, pad: [2]int{1, 1}},
		{k: [2]int{2, 2}, s: [2]int{1, 1}}, {k: [2]int{1, 1}, s: [2]int{2, 2}}, {k: [2]int{2, 3}, s: [2]int{3, 2}, pad: [2]int{0, 1}},
	}
)

// aroundSmall has images that are smaller than the padding, so that of some taps no output reads them.
func aroundSmall(in string, pv int) []convSpec {
	return []convSpec{
		{in: in, h: 1, w: 1, c: 3, out: 64, k: [2]int{1, 4}, pad: [4]int{0, 7, 0, 1}, pv: pv},
		{in: in, h: 1, w: 3, c: 64, out: 64, k: [2]int{5, 2}, pad: [4]int{4, 5, 0, 0}, pv: pv},
		{in: in, h: 3, w: 2, c: 64, out: 64, s: [2]int{3, 4}, pad: [4]int{1, 5, 4, 2}, pv: pv},
		{in: in, h: 2, w: 1, c: 16, out: 20, d: [2]int{3, 4}, pad: [4]int{3, 8, 3, 8}, pv: pv, end: "sum"},
	}
}

// convSpecs lists the cases of convolutions.
func convSpecs() []convSpec {
	var specs []convSpec
	add := func(s ...convSpec) { specs = append(specs, s...) }

	for _, pv := range padValues {
		for _, k := range kernels {
			add(convSpec{in: "bits", h: 7, w: 5, k: k, pad: same(k, [2]int{}), pv: pv})
		}
		for _, s := range strides {
			add(convSpec{in: "bits", h: 9, w: 7, s: s, pad: [4]int{1, 1, 1, 1}, pv: pv})
		}
		for _, d := range dilations {
			add(convSpec{in: "bits", h: 9, w: 7, d: d, pad: same([2]int{3, 3}, d), pv: pv})
		}
		for _, g := range [][3]int{{2, 32, 32}, {2, 33, 5}, {3, 1, 1}, {4, 16, 16}, {16, 1, 2}, {65, 1, 1}, {2, 64, 64}, {2, 65, 3}, {5, 13, 7}, {3, 24, 16}, {4, 29, 33}, {2, 65, 5}, {2, 33, 9}, {5, 13, 21}, {3, 5, 52}, {4, 16, 17}} {
			add(convSpec{in: "bits", groups: g[0], c: g[0] * g[1], out: g[0] * g[2], pad: [4]int{1, 1, 1, 1}, pv: pv})
		}
		for _, pad := range [][4]int{{0, 1, 2, 3}, {3, 0, 0, 0}, {0, 0, 0, 5}, {4, 4, 4, 4}} {
			add(convSpec{in: "bits", pad: pad, pv: pv}, convSpec{in: "bits", h: 1, w: 1, c: 65, pad: pad, pv: pv, end: "sum",
				k: [2]int{min(3, 1+pad[0]+pad[2]), min(3, 1+pad[1]+pad[3])}, zero: bcnn.ZeroIsPlus})
		}
		add(convSpec{in: "bits", h: 8, w: 9, k: [2]int{3, 2}, s: [2]int{2, 3}, d: [2]int{2, 2}, pad: [4]int{2, 1, 3, 0}, pv: pv, c: 66, groups: 2, out: 6, batch: 3})
		add(aroundSmall("bits", pv)...)
	}
	for _, c := range []int{1, 2, 3, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 130, 192, 256, 257, 512} {
		add(convSpec{in: "bits", h: 4, w: 3, c: c, out: 9, pad: [4]int{1, 1, 1, 1}, pv: 0},
			convSpec{in: "bits", h: 3, w: 4, c: c, k: [2]int{1, 1}, out: 10})
	}
	for _, out := range []int{1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 100, 127, 128, 129, 130, 256} {
		add(convSpec{in: "bits", h: 3, w: 3, c: 32, k: [2]int{2, 2}, out: out},
			convSpec{in: "bits", h: 3, w: 3, c: 64, k: [2]int{2, 2}, out: out, end: "norm"})
	}
	for _, size := range [][2]int{{1, 1}, {1, 17}, {17, 1}, {2, 2}, {13, 11}, {33, 5}, {3, 64}, {3, 15}} {
		add(convSpec{in: "bits", h: size[0], w: size[1], pad: [4]int{1, 1, 1, 1}, pv: 1, c: 16, out: 8},
			convSpec{in: "bytes", h: size[0], w: size[1], pad: [4]int{1, 1, 1, 1}, c: 3, out: 8},
			convSpec{in: "float", h: size[0], w: size[1], pad: [4]int{1, 1, 1, 1}, c: 3, out: 8})
	}
	for _, in := range []string{"bits", "bytes", "float"} {
		c := map[string]int{"bits": 33, "bytes": 3, "float": 5}[in]
		for _, p := range pools {
			for _, at := range []string{"presign", "postsign"} {
				if p.at = at; in == "bits" || p.k == [2]int{2, 2} || p.pad[0] > 0 {
					add(convSpec{in: in, h: 8, w: 7, c: c, out: 18, pool: p, pad: [4]int{1, 1, 1, 1}})
				}
			}
		}
		add(convSpec{in: in, h: 8, w: 7, c: c, out: 18, pool: pooling{at: "presign", k: [2]int{2, 2}}, end: "norm"})
		for _, end := range []string{"sum", "bias", "norm", "relu"} {
			add(convSpec{in: in, c: c, end: end, out: 13})
		}
		for _, zero := range []bcnn.ZeroRule{bcnn.ZeroIsPlus, bcnn.ZeroIsMinus} {
			for _, n := range []norm{normTies, normFalling, normConstant} {
				for _, at := range []string{"", "presign", "postsign"} {
					p := pooling{at: at}
					if at != "" {
						p.k = [2]int{2, 2}
					}
					add(convSpec{in: in, c: c, out: 67, zero: zero, norm: n, pool: p, pad: [4]int{1, 1, 1, 1}})
				}
			}
			for _, f := range []fill{fillZeros, fillOnes, fillTies} {
				add(convSpec{in: in, c: c, zero: zero, fill: f, pad: [4]int{1, 1, 1, 1}})
			}
		}
		for _, n := range []int{1, 3, 4, 5, 8} {
			add(convSpec{in: in, c: c, h: 4, out: 20, batch: n, pool: pooling{at: "postsign", k: [2]int{2, 2}}})
		}
	}
	return append(specs, moreConvSpecs()...)
}

// moreConvSpecs lists what is particular to bytes and floats, and dense layers.
func moreConvSpecs() []convSpec {
	var specs []convSpec
	add := func(s ...convSpec) { specs = append(specs, s...) }
	for _, in := range []string{"bytes", "float"} {
		for _, k := range kernels {
			add(convSpec{in: in, h: 7, w: 6, c: 3, k: k, pad: same(k, [2]int{}), out: 17})
		}
		for _, s := range strides {
			add(convSpec{in: in, h: 9, w: 7, c: 3, s: s, pad: [4]int{1, 1, 1, 1}, out: 9})
		}
		for _, d := range dilations {
			add(convSpec{in: in, h: 9, w: 7, c: 2, d: d, pad: same([2]int{3, 3}, d), out: 9})
		}
		for _, c := range []int{1, 2, 4, 8, 31, 64, 65, 130} {
			add(convSpec{in: in, h: 3, w: 4, c: c, out: 10, k: [2]int{2, 2}})
		}
		for _, out := range []int{1, 2, 7, 8, 15, 16, 32, 33, 64, 65, 100, 130} {
			add(convSpec{in: in, h: 3, w: 4, c: 3, out: out}, convSpec{in: in, h: 3, w: 4, c: 3, out: out, end: "relu"})
		}
		for _, out := range []int{31, 127} {
			add(convSpec{in: in, h: 3, w: 4, c: 3, out: out})
		}
		for _, g := range [][3]int{{3, 1, 4}, {2, 5, 9}, {2, 65, 3}} {
			add(convSpec{in: in, groups: g[0], c: g[0] * g[1], out: g[0] * g[2], pad: [4]int{1, 1, 1, 1}})
		}
		add(convSpec{in: in, h: 2, w: 2, c: 3, out: 5, pad: [4]int{4, 3, 4, 5}, end: "sum"})
		add(aroundSmall(in, 0)...)
	}
	for _, z := range []int{1, 127, 128, 255} {
		add(convSpec{in: "bytes", c: 3, z: z, k: [2]int{5, 5}, pad: [4]int{2, 2, 2, 2}},
			convSpec{in: "bytes", c: 3, z: z, pad: [4]int{2, 0, 1, 3}, end: "norm"},
			convSpec{in: "bytes", c: 3, z: z, pad: [4]int{1, 1, 1, 1}, groups: 3, out: 12},
			convSpec{in: "bytes", c: 3, z: z, pad: [4]int{1, 1, 1, 1}, fill: fillZeros},
			convSpec{in: "bytes", c: 3, z: z, pad: [4]int{1, 1, 1, 1}, fill: fillOnes, end: "sum"})
	}
	add(convSpec{in: "float", c: 20, out: 30, fill: fillTiny, end: "sum"},
		convSpec{in: "float", c: 20, out: 30, binary: true}, convSpec{in: "float", c: 65, out: 30, binary: true, pad: [4]int{1, 1, 1, 1}, end: "relu"},
		convSpec{in: "float", c: 70, out: 9, binary: true, dense: true, end: "norm"})

	for _, c := range []int{1, 31, 32, 33, 63, 64, 65, 100, 128, 1000, 4097} {
		for _, end := range []string{"sign", "norm"} {
			add(convSpec{in: "bits", dense: true, h: 1, w: 1, c: c, out: 11, end: end})
		}
		add(convSpec{in: "float", dense: true, h: 1, w: 1, c: min(c, 1000), out: 7, end: "sum", batch: 2 + c/4097})
	}
	for _, out := range []int{1, 2, 3, 6, 10, 16, 32, 63, 64, 65, 100, 130} {
		add(convSpec{in: "bits", dense: true, h: 1, w: 1, c: 100, out: out, batch: 5},
			convSpec{in: "bits", dense: true, h: 1, w: 1, c: 100, out: out, end: "norm"},
			convSpec{in: "bits", dense: true, h: 1, w: 1, c: 100, out: out, end: "relu"},
			convSpec{in: "float", dense: true, h: 1, w: 1, c: 19, out: out, end: "relu"})
	}
	// Images and outputs that blocks leave over.
	for _, out := range []int{17, 23, 65} {
		add(convSpec{in: "bytes", dense: true, h: 1, w: 1, c: 20, out: out, batch: 5})
	}
	add(convSpec{in: "float", dense: true, h: 1, w: 1, c: 19, out: 17, batch: 5})
	for _, s := range [][3]int{{3, 4, 3}, {2, 5, 32}, {3, 3, 33}, {4, 3, 64}, {2, 3, 100}, {6, 6, 32}} {
		for _, flatten := range []bool{false, true} {
			add(convSpec{in: "bits", dense: true, flatten: flatten, h: s[0], w: s[1], c: s[2], out: 23},
				convSpec{in: "bits", dense: true, flatten: flatten, h: s[0], w: s[1], c: s[2], out: 23, end: "norm", norm: normTies},
				convSpec{in: "bytes", dense: true, flatten: flatten, h: s[0], w: s[1], c: s[2], out: 12},
				convSpec{in: "bytes", dense: true, flatten: flatten, h: s[0], w: s[1], c: s[2], out: 12, z: 128, end: "relu"},
				convSpec{in: "float", dense: true, flatten: flatten, h: s[0], w: s[1], c: s[2], out: 12, end: "norm"})
		}
	}
	for _, f := range []fill{fillZeros, fillOnes} {
		add(convSpec{in: "bits", dense: true, h: 2, w: 2, c: 257, out: 64, fill: f, end: "sum"},
			convSpec{in: "bytes", dense: true, h: 16, w: 16, c: 250, out: 3, fill: f, end: "sum"}) // sums near 2²⁴
	}
	// Large enough for several tiles and threads.
	add(convSpec{in: "bits", h: 28, w: 27, c: 32, out: 32, k: [2]int{5, 5}, pad: [4]int{2, 2, 2, 2}, pv: -1, pool: pooling{at: "presign", k: [2]int{2, 2}}, batch: 1},
		convSpec{in: "bits", h: 16, w: 17, c: 64, out: 64, pad: [4]int{1, 1, 1, 1}, pv: 0, batch: 1},
		convSpec{in: "bits", h: 9, w: 10, c: 128, out: 33, pad: [4]int{1, 1, 1, 1}, pv: 1, pool: pooling{at: "presign", k: [2]int{2, 2}}, batch: 1},
		convSpec{in: "bits", h: 40, w: 40, c: 64, out: 33, k: [2]int{1, 1}, batch: 1},
		convSpec{in: "bytes", h: 40, w: 41, c: 3, out: 32, k: [2]int{5, 5}, pad: [4]int{2, 2, 2, 2}, z: 128, pool: pooling{at: "presign", k: [2]int{2, 2}}, batch: 1},
		convSpec{in: "float", h: 30, w: 31, c: 3, out: 16, k: [2]int{5, 5}, pad: [4]int{2, 2, 2, 2}, batch: 1},
		convSpec{in: "bits", dense: true, h: 12, w: 12, c: 32, out: 100, batch: 4})
	return specs
}
