package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

// kind is what a convolution multiplies.
type kind int

const (
	bitsKind    kind = iota // ±1 and ±1: counts the bits that differ
	bytesKind               // uint8 and int8
	carriesKind             // bits of which two pieces are added before they are counted
	wordsKind               // uint8 and int16
)

// counts reports whether sums are those of bits that differ.
func (k kind) counts() bool { return k == bitsKind || k == carriesKind }

// result is what a convolution writes.
type result int

const (
	packed      result = iota // bits of thresholded sums
	pooled                    // bits that any of four pixels has
	pooledAlike               // the same, of pixels with the same thresholds
	sums                      // int32
	floats                    // float32: ended sums and what is added to them
	levels                    // bytes: the numbers of the levels of ended sums
	planes                    // bits of numbers of thresholds
	planeSums                 // int32, of planes
)

// conv writes a convolution of pixels × vectors of 16 output channels: one
// 32-bit piece of every patch meets one vector of weights at a time.
func conv(k kind, out result, pixels, vectors int) { convPlanes(k, out, pixels, vectors, 1, 1) }

// convPlanes is conv for planes of the input and the output. The pixels are those of
// planes.
func convPlanes(k kind, out result, pixels, vectors, in, outPlanes int) {
	name := [...]string{"convBits", "convBytes", "convCarries", "convWords"}[k]
	relation := "≤"
	if k == bytesKind {
		relation = "≥"
	}
	what := "bit o of dst[p] = c[o] " + relation + " table[class[p]][o], XOR flip"
	narrow := 1 // pixels at the end
	switch out {
	case pooled, pooledAlike:
		name += "Pooled"
		if out == pooledAlike {
			name += "Alike"
		}
		what = "bit o of dst[p/4] = c[o] " + relation + " table[class[p]][o] of any of four pixels, XOR flip"
		if out == pooledAlike {
			what = strings.ReplaceAll(what, "class[p]", "class[4·(p/4)]")
		}
		narrow = 4
	case sums:
		name += "Sums"
		what = "dst[p][o] = table[class[p]][o] − 2·c[o]"
		if !k.counts() {
			what = "dst[p][o] = table[class[p]][o] + c[o]"
		}
	case floats:
		name += "Floats"
		what = "dst[p][o] = end of float32(table[class[p]][o] − 2·c[o]), plus what is added"
		if !k.counts() {
			what = "dst[p][o] = end of float32(table[class[p]][o] + c[o]), plus what is added"
		}
	case levels:
		name += "Levels"
		what = "dst[p][o] = level of the end of float32(table[class[p]][o] + c[o])"
	case planes:
		name += fmt.Sprintf("Planes%dTo%d", in, outPlanes)
		what = fmt.Sprintf("dst[p/%d] = the planes of the number of thresholds that are not less than c[p][o] + 2·c[p+1][o] …", in)
		narrow = in
	case planeSums:
		name += fmt.Sprintf("Planes%dSums", in)
		what = fmt.Sprintf("dst[p/%d][o] = table[class[p]][o] − 2·(c[p][o] + 2·c[p+1][o] …)", in)
		narrow = in
	}
	name += fmt.Sprintf("%dAVX512", 16*vectors)
	TEXT(name, NOSPLIT, "func(job *byte)")
	product := "popcount(x[i] XOR w[i][o])"
	if !k.counts() {
		product = "Σ of 4 bytes of x[i]·w[i][o]"
	}
	pieces := "pieces of the patch at src + at[p],"
	if k == carriesKind {
		pieces = "pieces of the patch whose parities are at src + at[p], an even number,"
	}
	Doc(name+" computes, for every pixel p and each of "+fmt.Sprint(16*vectors)+" outputs o, with x the 32-bit",
		pieces,
		"",
		"\tc[o] = Σ over i of "+product,
		"\t"+what)
	Pragma("noescape")
	job := Load(Param("job"), GP64())

	Label("wide")
	CMPQ(Mem{Base: job, Disp: gen.JobPixels}, U8(pixels))
	JLT(LabelRef("narrow"))
	tile(k, out, job, pixels, vectors, in, outPlanes, "w")
	JMP(LabelRef("wide"))
	Label("narrow")
	if narrow < pixels {
		CMPQ(Mem{Base: job, Disp: gen.JobPixels}, U8(0))
		JEQ(LabelRef("done"))
		tile(k, out, job, narrow, vectors, in, outPlanes, "n")
		JMP(LabelRef("narrow"))
	}
	Label("done")
	VZEROUPPER()
	RET()
}

// tile computes some pixels and takes them off the job.
func tile(k kind, out result, job reg.Register, pixels, vectors, in, outPlanes int, label string) {
	at := GP64()
	MOVQ(Mem{Base: job, Disp: gen.JobAt}, at)
	x := make([]reg.GPVirtual, pixels)
	for p := range x {
		x[p] = GP64()
		MOVL(Mem{Base: at, Disp: 4 * p}, x[p].As32())
		ADDQ(Mem{Base: job, Disp: gen.JobSrc}, x[p])
	}
	goOn := func() {
		ADDQ(U8(4*pixels), Mem{Base: job, Disp: gen.JobAt})
		SUBQ(U8(pixels), Mem{Base: job, Disp: gen.JobPixels})
	}
	if k == carriesKind {
		carriesTile(out, job, x, in, outPlanes, label)
		goOn()
		return
	}
	table := tables(job)
	acc := make([]reg.VecVirtual, pixels*vectors)
	for i := range acc {
		acc[i] = ZMM()
	}
	// Thresholds are what counts are taken off, so that in the end the sign says
	// what the bit is.
	countdown := differences(k, out)
	for p := range pixels {
		var t reg.Register
		if countdown {
			t = table(p)
		}
		for v := range vectors {
			a := acc[p*vectors+v]
			if countdown {
				VMOVDQU32(Mem{Base: t, Disp: 64 * v}, a)
			} else {
				VPXORD(a, a, a)
			}
		}
	}
	w, i, row, end := GP64(), GP64(), GP64(), GP64()
	var low reg.VecVirtual // bytes of words
	if k == wordsKind {
		low = ZMM()
		MOVQ(U32(0xff00ff), i)
		VPBROADCASTD(i.As32(), low)
	}
	MOVQ(Mem{Base: job, Disp: gen.JobWeights}, w)
	XORQ(i, i)
	MOVQ(Mem{Base: job, Disp: gen.JobRows}, row)
	Label(label + "row")
	MOVQ(Mem{Base: job, Disp: gen.JobRunBytes}, end)
	ADDQ(i, end)
	Label(label + "piece")
	perPiece := vectors
	if k == wordsKind {
		perPiece = 2 * vectors
		wordProducts(x, i, w, low, acc, vectors)
	} else {
		products(k, x, i, loadWeights(w, 0, vectors), acc, countdown)
	}
	ADDQ(U32(uint32(64*perPiece)), w)
	ADDQ(U8(4), i)
	CMPQ(i, end)
	JNE(LabelRef(label + "piece"))
	ADDQ(Mem{Base: job, Disp: gen.JobRowSkip}, i)
	DECQ(row)
	JNE(LabelRef(label + "row"))

	finish(k, out, job, acc, pixels, vectors, in, outPlanes, label)
	goOn()
}

// differences reports whether sums end as thresholds less counts.
func differences(k kind, out result) bool {
	return out == pooled && k != bytesKind || out == packed && k == bitsKind
}

// tables returns what loads the place of the table of a pixel.
func tables(job reg.Register) func(p int) reg.Register {
	class := GP64()
	MOVQ(Mem{Base: job, Disp: gen.JobClass}, class)
	return func(p int) reg.Register {
		r := GP64()
		MOVL(Mem{Base: class, Disp: 4 * p}, r.As32())
		ADDQ(Mem{Base: job, Disp: gen.JobTable}, r)
		return r
	}
}

// finish makes outputs of the sums of some pixels, and goes on behind them.
func finish(k kind, out result, job reg.Register, acc []reg.VecVirtual, pixels, vectors, in, outPlanes int, label string) {
	dst := GP64()
	MOVQ(Mem{Base: job, Disp: gen.JobDst}, dst)
	table := tables(job)
	if out == floats || out == levels {
		for p := range pixels {
			if k.counts() {
				doubled(table(p), acc[p*vectors:][:vectors])
			} else {
				addTable(table(p), acc[p*vectors:][:vectors])
			}
		}
		zmm.EndFloats(job, acc, vectors, label)
	}
	if out == levels {
		zmm.EndLevels(job, acc, vectors, label)
	}
	for p := 0; p < pixels; p++ {
		switch out {
		case sums:
			storeSums(k, dst, table(p), acc[p*vectors:][:vectors])
		case floats:
			zmm.StoreFloats(job, dst, acc[p*vectors:][:vectors], fmt.Sprint(label, p))
		case levels:
			storeLevels(dst, acc[p*vectors:][:vectors])
		case packed:
			storeBits(k, job, dst, func() reg.Register { return table(p) }, acc[p*vectors:][:vectors])
		case pooled, pooledAlike:
			storePooled(k, job, dst, out, func() reg.Register { return table(p) }, acc[p*vectors:][:4*vectors])
			p += 3
		case planes:
			storePlanes(job, dst, table(p), addPlanes(acc[p*vectors:][:in*vectors], vectors), outPlanes)
			p += in - 1
		case planeSums:
			storeSums(k, dst, table(p), addPlanes(acc[p*vectors:][:in*vectors], vectors))
			p += in - 1
		}
		ADDQ(Mem{Base: job, Disp: gen.JobDstStep}, dst)
	}
	MOVQ(dst, Mem{Base: job, Disp: gen.JobDst})
	ADDQ(U8(4*pixels), Mem{Base: job, Disp: gen.JobClass})
}

// products adds the products of a piece of each patch, at x, and the weights to acc.
func products(k kind, x []reg.GPVirtual, i reg.Register, weights, acc []reg.VecVirtual, countdown bool) {
	vectors := len(weights)
	for p := range x {
		piece := Mem{Base: x[p], Index: i, Scale: 1}
		if k == bitsKind && vectors == 1 {
			t := ZMM()
			VPXORD_BCST(piece, weights[0], t)
			VPOPCNTD(t, t)
			if countdown {
				VPSUBD(t, acc[p], acc[p])
			} else {
				VPADDD(t, acc[p], acc[p])
			}
			continue
		}
		b := ZMM()
		VPBROADCASTD(piece, b)
		for v := range vectors {
			a := acc[p*vectors+v]
			if k == bytesKind {
				VPDPBUSD(weights[v], b, a)
				continue
			}
			t := b
			if v < vectors-1 {
				t = ZMM()
			}
			VPXORD(b, weights[v], t)
			VPOPCNTD(t, t)
			if countdown {
				VPSUBD(t, a, a)
			} else {
				VPADDD(t, a, a)
			}
		}
	}
}

// wordProducts is products for weights of 16 bits: first those of the first and the third
// byte of a piece, then those of the others.
func wordProducts(x []reg.GPVirtual, i, w reg.Register, low reg.VecVirtual, acc []reg.VecVirtual, vectors int) {
	for half := range 2 {
		weights := loadWeights(w, half*vectors, vectors)
		for p := range x {
			piece, b := Mem{Base: x[p], Index: i, Scale: 1}, ZMM()
			if half == 0 {
				VPANDD_BCST(piece, low, b)
			} else {
				VPBROADCASTD(piece, b)
				VPSRLW(U8(8), b, b)
			}
			for v := range vectors {
				VPDPWSSD(weights[v], b, acc[p*vectors+v])
			}
		}
	}
}

func loadWeights(w reg.Register, from, n int) []reg.VecVirtual {
	weights := make([]reg.VecVirtual, n)
	for v := range weights {
		weights[v] = ZMM()
		VMOVDQU32(Mem{Base: w, Disp: 64 * (from + v)}, weights[v])
	}
	return weights
}

// doubled makes table − 2·c of counts.
func doubled(table reg.Register, acc []reg.VecVirtual) {
	for v, a := range acc {
		t := ZMM()
		VMOVDQU32(Mem{Base: table, Disp: 64 * v}, t)
		VPADDD(a, a, a)
		VPSUBD(a, t, a)
	}
}

// addTable makes table + c of sums of bytes.
func addTable(table reg.Register, acc []reg.VecVirtual) {
	for v, a := range acc {
		VPADDD(Mem{Base: table, Disp: 64 * v}, a, a)
	}
}

func storeLevels(dst reg.Register, acc []reg.VecVirtual) {
	for v, a := range acc {
		VPMOVDB(a, Mem{Base: dst, Disp: 16 * v})
	}
}

func storeSums(k kind, dst, table reg.Register, acc []reg.VecVirtual) {
	if k.counts() {
		doubled(table, acc)
	} else {
		addTable(table, acc)
	}
	for v, a := range acc {
		VMOVDQU32(a, Mem{Base: dst, Disp: 64 * v})
	}
}

// storeBits writes the word of a pixel.
func storeBits(k kind, job, dst reg.Register, table func() reg.Register, acc []reg.VecVirtual) {
	storeMasks(job, dst, compare(k, packed, table, acc))
}

// compare returns where differences of thresholds and counts are not negative,
// where counts do not exceed their thresholds, or where sums of bytes reach them.
func compare(k kind, out result, table func() reg.Register, acc []reg.VecVirtual) []reg.OpmaskVirtual {
	const notLess, notMore = 5, 2
	masks := make([]reg.OpmaskVirtual, len(acc))
	if !differences(k, out) {
		relation := U8(notMore)
		if k == bytesKind {
			relation = notLess
		}
		t := table()
		for v, a := range acc {
			masks[v] = K()
			VPCMPD(relation, Mem{Base: t, Disp: 64 * v}, a, masks[v])
		}
		return masks
	}
	zero := ZMM()
	VPXORD(zero, zero, zero)
	for v, a := range acc {
		masks[v] = K()
		VPCMPD(U8(notLess), zero, a, masks[v])
	}
	return masks
}

// addPlanes adds up the counts of the planes of a pixel, each of so many vectors, times
// powers of 2.
func addPlanes(acc []reg.VecVirtual, vectors int) []reg.VecVirtual {
	for at := len(acc) - vectors; at > 0; at -= vectors {
		for v := range vectors {
			high, low := acc[at+v], acc[at-vectors+v]
			VPADDD(high, high, high)
			VPADDD(high, low, low)
		}
	}
	return acc[:vectors]
}

// storePlanes writes a word for every plane of the output: that of plane j has a bit
// where an odd number of every 2^j-th threshold is reached.
func storePlanes(job, dst, table reg.Register, acc []reg.VecVirtual, out int) {
	const notMore = 2
	words := make([]reg.GPVirtual, out)
	for k := 1; k < 1<<out; k++ {
		masks := make([]reg.OpmaskVirtual, len(acc))
		for v, a := range acc {
			masks[v] = K()
			VPCMPD(U8(notMore), Mem{Base: table, Disp: 64 * v}, a, masks[v])
		}
		reached := joinMasks(masks)
		for j := out - 1; j >= 0; j-- {
			switch {
			case k>>j<<j != k:
			case k == 1<<j && j > 0:
				words[j] = GP64()
				MOVQ(reached, words[j])
			case k == 1:
				words[j] = reached
			default:
				XORQ(reached, words[j])
			}
		}
		if k < 1<<out-1 {
			ADDQ(Mem{Base: job, Disp: gen.JobNext}, table)
		}
	}
	to := GP64()
	MOVQ(dst, to)
	for j, word := range words {
		XORQ(Mem{Base: job, Disp: gen.JobFlip}, word)
		MOVQ(word, Mem{Base: to})
		if j < out-1 {
			ADDQ(Mem{Base: job, Disp: gen.JobDstPlane}, to)
		}
	}
}

// storePooled writes a word of four pixels: any of them has a bit if the
// greatest difference or sum gives it, or the least count. Bytes have one
// threshold for all.
func storePooled(k kind, job, dst reg.Register, out result, table func() reg.Register, acc []reg.VecVirtual) {
	n := len(acc) / 4
	a := func(p int) []reg.VecVirtual { return acc[n*p:][:n] }
	extremes(out, a(0), a(1))
	extremes(out, a(2), a(3))
	extremes(out, a(1), a(3))
	storeMasks(job, dst, compare(k, out, table, a(3)))
}

// extremes makes y what decides of two pixels.
func extremes(out result, x, y []reg.VecVirtual) {
	for v := range y {
		if out == pooledAlike {
			VPMINSD(x[v], y[v], y[v])
		} else {
			VPMAXSD(x[v], y[v], y[v])
		}
	}
}

// storeMasks writes masks of 16 outputs as a word.
func storeMasks(job, dst reg.Register, masks []reg.OpmaskVirtual) {
	word := joinMasks(masks)
	XORQ(Mem{Base: job, Disp: gen.JobFlip}, word)
	MOVQ(word, Mem{Base: dst})
}

func joinMasks(masks []reg.OpmaskVirtual) reg.GPVirtual {
	word := GP64()
	if len(masks) > 1 {
		KUNPCKWD(masks[0], masks[1], masks[0])
	}
	switch len(masks) {
	case 3:
		KUNPCKDQ(masks[0], masks[2], masks[0])
	case 4:
		KUNPCKWD(masks[2], masks[3], masks[2])
		KUNPCKDQ(masks[0], masks[2], masks[0])
	}
	if len(masks) == 1 {
		KMOVW(masks[0], word.As32())
	} else {
		KMOVQ(masks[0], word)
	}
	return word
}
