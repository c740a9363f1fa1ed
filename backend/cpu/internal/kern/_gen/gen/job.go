// Package gen is what the generators of the instruction sets share: the places
// of fields, and parts of kernels for amd64.
package gen

import (
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of kern.ConvJob.
const (
	JobDstStep  = 8
	JobSrc      = 16
	JobTable    = 40
	JobWeights  = 48
	JobRows     = 56
	JobRunBytes = 64
	JobRowSkip  = 72
	JobPixels   = 80
	JobFlip     = 88
	JobTail     = 96
	JobDst      = 104
	JobAt       = 112
	JobClass    = 120
	JobScale    = 128
	JobShift    = 136
	JobSlope    = 144
	JobClip     = 152
	JobLow      = 160
	JobHigh     = 164
	JobAdded    = 168 // one more than from where values are written to what is added to them
	JobNext     = 176
	JobDstPlane = 184
	JobBudget   = 192
	JobIn       = 200 // planes of the input, and of the output
	JobOut      = 208
	JobLevel    = 216 // scale of levels
	JobMove     = 224 // and shift
	JobRest     = 232 // of the scales of levels
	JobLeast    = 240
	JobMost     = 244
	JobOffset   = 248
)

// Offsets of the fields of kern.WinogradJob behind those of kern.ConvJob, and of kern.WinogradInput.
const (
	WinogradRow   = 256
	WinogradPlane = 264

	SquaresDst     = 0
	SquaresSrc     = 8
	SquaresStep    = 16
	SquaresRow     = 24
	SquaresDstStep = 32
	SquaresPlane   = 40
	SquaresCount   = 48
	SquaresVectors = 56
	SquaresOffset  = 64
)

// Offsets of the fields of kern.WinogradSums.
const (
	SumsDst      = 0
	SumsSrc      = 8
	SumsWeights  = 16
	SumsTable    = 24
	SumsSquares  = 32
	SumsChannels = 40
	SumsSrcPlane = 48
	SumsDstPlane = 56
)

// Offsets of the fields of kern.DotJob and kern.FMAJob.
const (
	TileDst     = 0
	TileDstStep = 8
	TileSrc     = 16
	TileStep    = 24
	TileRows    = 32
	TileRun     = 40
	TileSkip    = 48
	TileWeights = 56
	DotBlock    = 64 // of weights
	FMARuns     = 32 // places and taps, 16 bytes each
	FMACount    = 40 // of runs
	FMARun      = 48 // values of a run
	FMATap      = 64 // from the weights of a tap to those of the next one
	DotK        = 72
	FMABias     = 72
	TilePixels  = 80
	FMAOutputs  = 88
	FMABlock    = 96 // from the weights of a block to those of the next one
	FMAScale    = 104
	FMAShift    = 112
	FMASlope    = 120
	FMAClip     = 128
	FMALow      = 136
	FMAHigh     = 140
	// Of means.
	MeanTaps       = 136
	MeanReciprocal = 140
)

// Offsets of the fields of kern.ColumnsJob behind those of kern.FMAJob.
const (
	ColumnsDstRow = 160
	ColumnsSrcRow = 168
	ColumnsLast   = 176 // of the first channel of the last vector, in bytes
	ColumnsRows   = 184
	ColumnsSkip   = 192
	ColumnsSteps  = 200
	ColumnsLeft   = 208
	ColumnsRight  = 216
)

// Offsets of the fields of kern.GroupsJob behind those of kern.FMAJob.
const (
	GroupsIndex = 160 // of each input, for every lane
	GroupsEach  = 168 // bytes from what a vector of outputs reads to what the next one does
	GroupsMask  = 176 // of the values that it reads
)

// Offsets of the fields of kern.EndJob.
const (
	EndDst     = 0
	EndDstStep = 8
	EndSrc     = 16
	EndSrcStep = 24
	EndSrc2    = 32
	EndScale   = 40
	EndShift   = 48
	EndSlope   = 56
	EndN       = 64 // values of a row
	EndRows    = 72
	EndClip    = 80
	EndLow     = 88
	EndHigh    = 92
	EndScale2  = 96
	EndShift2  = 104
	EndClip2   = 112
	EndLow2    = 120
	EndHigh2   = 124
)

// Offsets of the fields of kern.MatrixJob and kern.MatrixBlock.
const (
	MatrixSrc         = 0
	MatrixTaps        = 8 // offsets of lines, by step
	MatrixTapsEnd     = 16
	MatrixWeights     = 24
	MatrixWeightsEnd  = 32
	MatrixBlocks      = 40
	MatrixCount       = 48 // of blocks
	MatrixPixels      = 56 // places of sums and of rows of the table
	MatrixTable       = 64
	MatrixDst         = 72
	MatrixDstStep     = 80
	MatrixBefore      = 88 // bytes of the pixels in front of the first one
	MatrixFlip        = 96
	MatrixSumShift    = 104 // by how many bits sums are shifted
	MatrixScale       = 112
	MatrixShift       = 120
	MatrixSlope       = 128
	MatrixClip        = 136 // 0 or 1
	MatrixLow         = 144
	MatrixHigh        = 148
	MatrixAdded       = 152 // one more than from where values are written to what is added to them
	MatrixScale2      = 160 // of the second end
	MatrixShift2      = 168
	MatrixClip2       = 176
	MatrixLow2        = 184
	MatrixHigh2       = 188
	MatrixLevel       = 192 // scale of levels
	MatrixMove        = 200 // and shift
	MatrixLeast       = 208
	MatrixMost        = 212
	MatrixOffset      = 216
	MatrixRing        = 224 // of tiles of weights
	MatrixRingEnd     = 232
	MatrixPanelEnd    = 240 // bytes of a row of the table
	MatrixTiles       = 248 // of the block in hand
	MatrixBlockFrom   = 280 // its pixels
	MatrixBlockEnd    = 288
	MatrixBlockDst    = 296
	MatrixPanel       = 304 // in bytes of a row of the table
	MatrixNow         = 312 // where sums are stored next
	MatrixPendingEnd  = 320 // of the pixels whose sums are to be ended
	MatrixPendingFlip = 328
	MatrixConfig      = 336 // of tiles
	MatrixValues      = 400 // of weights of 4 bits
	MatrixRest        = 408 // of the scales of levels
	MatrixLine        = 416 // bytes from a line of pixels to the next
	MatrixPending     = 424 // panel of the sums that are to be ended, as MatrixPanel
	MatrixFakeLevel   = 432 // scale of the levels of a FakeQuantize
	MatrixFakeRest    = 440
	MatrixFakeMove    = 448
	MatrixFakeScale   = 456 // of its values
	MatrixFakeShift   = 464
	MatrixFakeLeast   = 472
	MatrixFakeMost    = 476
	MatrixFakeLow     = 480
	MatrixMore        = 488 // 0 if nothing happens to float32 outputs but the scale and the shift

	MatrixBlockTiles = 16 // their number, behind their places
	MatrixBlockFirst = 20 // pixel
	MatrixBlockCount = 24 // of pixels
	MatrixPixelSize  = 8
	MatrixBlockSize  = 32
)

// Offsets of the fields of kern.LineRows.
const (
	LinesRows   = 0
	LinesBefore = 8
	LinesInside = 16
	LinesAfter  = 24
	LinesStep   = 32
	LinesRow    = 40
	LinesPlanes = 48
	LinesPlane  = 56
	LinesMask   = 64
	LinesBorder = 72
)

// Offsets of the fields of kern.RunRows and kern.LineRun.
const (
	RunsRows   = 0
	RunsPixels = 8
	RunsStep   = 16
	RunsRow    = 24
	RunsRuns   = 32
	RunsCount  = 40

	RunOffset = 0
	RunMask   = 8
	RunSize   = 16
)

// Offsets of the fields of kern.LevelsJob.
const (
	LevelsDst      = 0
	LevelsSrc      = 8
	LevelsScale    = 16
	LevelsShift    = 24
	LevelsTable    = 32
	LevelsList     = 40
	LevelsN        = 48
	LevelsDown     = 56
	LevelsRest     = 64
	LevelsTruncate = 72
	LevelsLeast    = 80
	LevelsMost     = 84
	LevelsLow      = 88
	LevelsOffset   = 92
)

// Offsets of the fields of kern.PickJob and kern.PickPiece.
const (
	PickDst     = 0
	PickSrc     = 8
	PickDstStep = 16
	PickSrcStep = 24
	PickPieces  = 32
	PickPixels  = 40
	PickVectors = 48

	PieceOffset = 0
	PieceMask   = 8
	PieceIndex  = 16
	PieceLanes  = 80
	PieceBytes  = 112
	PieceSize   = 128
)

// Offsets of the fields of kern.Function.
const (
	FunctionRows      = 0
	FunctionFrom      = 8
	FunctionTo        = 16
	FunctionBelow     = 24
	FunctionPlaces    = 32
	FunctionDirectory = 288
)

// Offsets of the fields of kern.BlendRowJob.
const (
	BlendRowDst     = 0
	BlendRowSrc     = 8
	BlendRowRows    = 16
	BlendRowTable   = 24
	BlendRowPlaces  = 32
	BlendRowVectors = 40
	BlendRowDstStep = 48
)

// Offsets of the fields of kern.BlendJob and kern.BlendTap.
const (
	BlendDst      = 0
	BlendSrc      = 8
	BlendRows     = 16
	BlendRowCount = 24
	BlendCols     = 32
	BlendColBytes = 40 // of the columns of a pixel
	BlendPixels   = 48
	BlendBytes    = 56 // of a pixel

	BlendTapOffset = 0
	BlendTapWeight = 8
	BlendTapSize   = 16
)

// MaxPieces is the number of pieces that kernels behind a PickJob take.
const MaxPieces = 4

// Offsets of the fields of kern.PoolJob.
const (
	PoolDst     = 0
	PoolSrc     = 8
	PoolTaps    = 16 // offsets in bytes
	PoolCount   = 24
	PoolBytes   = 32 // of a pixel
	PoolStep    = 40
	PoolDstStep = 48
	PoolPixels  = 56
	// Of means of ±1.
	PoolDivisor    = 64
	PoolReciprocal = 68
)

// Tiles writes a loop over the pixels of a DotJob or FMAJob, so many at a time,
// for kernels of AVX. body gets pointers to their patches, store writes the
// results of pixel p.
func Tiles(job reg.Register, pixels int, body func(x []reg.GPVirtual), store func(p int, dst reg.Register)) {
	TilesSSE(job, pixels, body, store)
	VZEROUPPER()
	RET()
}

// TilesSSE is Tiles without the end of the function.
func TilesSSE(job reg.Register, pixels int, body func(x []reg.GPVirtual), store func(p int, dst reg.Register)) {
	Label("next")
	CMPQ(Mem{Base: job, Disp: TilePixels}, U8(pixels))
	JLT(LabelRef("done"))
	x := make([]reg.GPVirtual, pixels)
	for p := range x {
		x[p] = GP64()
		if p == 0 {
			MOVQ(Mem{Base: job, Disp: TileSrc}, x[p])
		} else {
			MOVQ(x[p-1], x[p])
			ADDQ(Mem{Base: job, Disp: TileStep}, x[p])
		}
	}
	body(x)
	dst := GP64()
	MOVQ(Mem{Base: job, Disp: TileDst}, dst)
	for p := range pixels {
		store(p, dst)
		ADDQ(Mem{Base: job, Disp: TileDstStep}, dst)
	}
	MOVQ(dst, Mem{Base: job, Disp: TileDst})
	last := x[pixels-1]
	ADDQ(Mem{Base: job, Disp: TileStep}, last)
	MOVQ(last, Mem{Base: job, Disp: TileSrc})
	SUBQ(U8(pixels), Mem{Base: job, Disp: TilePixels})
	JMP(LabelRef("next"))
	Label("done")
}

// Rows writes a loop over the runs of patches: i counts the bytes from the first
// one, and body, which moves it on, gets the end of the run.
func Rows(job reg.Register, body func(i, end reg.GPVirtual)) {
	i, row, end := GP64(), GP64(), GP64()
	XORQ(i, i)
	MOVQ(Mem{Base: job, Disp: TileRows}, row)
	Label("row")
	MOVQ(Mem{Base: job, Disp: TileRun}, end)
	ADDQ(i, end)
	body(i, end)
	ADDQ(Mem{Base: job, Disp: TileSkip}, i)
	DECQ(row)
	JNE(LabelRef("row"))
}

// DotWeights returns the places of the weights of one or four blocks of a
// DotJob, and a function that moves them on by so many bytes.
func DotWeights(job reg.Register, blocks int) (at []Mem, advance func(bytes int)) {
	w, w3, block := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: job, Disp: TileWeights}, w)
	MOVQ(Mem{Base: job, Disp: DotBlock}, block)
	if blocks == 1 {
		return []Mem{{Base: w}}, func(bytes int) { ADDQ(U8(bytes), w) }
	}
	LEAQ(Mem{Base: w, Index: block, Scale: 2}, w3)
	ADDQ(block, w3)
	at = []Mem{{Base: w}, {Base: w, Index: block, Scale: 1}, {Base: w, Index: block, Scale: 2}, {Base: w3}}
	return at, func(bytes int) {
		ADDQ(U8(bytes), w)
		ADDQ(U8(bytes), w3)
	}
}

// DotDoc writes the comment of a kernel behind DotBits.
func DotDoc(name string, pixels, outputs int) {
	Doc(name+" computes, for every pixel p, "+strconv.Itoa(pixels)+" at a time, and each of "+strconv.Itoa(outputs)+" outputs o,",
		"with x the words of its patch,",
		"",
		"\tdst[p][o] = K − 2·Σ over i of popcount(x[i] XOR w[i][o])",
		"",
		"and takes the pixels off the job.")
	Pragma("noescape")
}
