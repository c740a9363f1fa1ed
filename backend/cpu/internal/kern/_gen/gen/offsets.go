package gen

import (
	"fmt"
	"reflect"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern"
)

// fields returns a function that gives the offset of a field of T, by its name.
func fields[T any]() func(name string) int {
	t := reflect.TypeFor[T]()
	return func(name string) int {
		field, ok := t.FieldByName(name)
		if !ok {
			panic(fmt.Sprintf("%v has no field %s", t, name))
		}
		at, offset := t, uintptr(0)
		for _, i := range field.Index { // through embedded structs
			offset += at.Field(i).Offset
			at = at.Field(i).Type
		}
		return int(offset)
	}
}

// size returns the bytes of a T.
func size[T any]() int { return int(reflect.TypeFor[T]().Size()) }

var (
	blendJob      = fields[kern.BlendJob]()
	blendRowJob   = fields[kern.BlendRowJob]()
	blendTap      = fields[kern.BlendTap]()
	columnsJob    = fields[kern.ColumnsJob]()
	convJob       = fields[kern.ConvJob]()
	depthwiseJob  = fields[kern.DepthwiseJob]()
	dotJob        = fields[kern.DotJob]()
	endJob        = fields[kern.EndJob]()
	fmaJob        = fields[kern.FMAJob]()
	function      = fields[kern.Function]()
	groupsJob     = fields[kern.GroupsJob]()
	levelsJob     = fields[kern.LevelsJob]()
	lineRows      = fields[kern.LineRows]()
	lineRun       = fields[kern.LineRun]()
	matrixBlock   = fields[kern.MatrixBlock]()
	matrixJob     = fields[kern.MatrixJob]()
	pickJob       = fields[kern.PickJob]()
	pickPiece     = fields[kern.PickPiece]()
	poolJob       = fields[kern.PoolJob]()
	runRows       = fields[kern.RunRows]()
	winogradInput = fields[kern.WinogradInput]()
	winogradJob   = fields[kern.WinogradJob]()
	winogradSums  = fields[kern.WinogradSums]()
)

// Offsets of the fields of kern.ConvJob.
var (
	JobDstStep  = convJob("DstStep")
	JobSrc      = convJob("Src")
	JobTable    = convJob("Table")
	JobWeights  = convJob("weights")
	JobRows     = convJob("rows")
	JobRunBytes = convJob("run")
	JobRowSkip  = convJob("skip")
	JobPixels   = convJob("Pixels")
	JobFlip     = convJob("Flip")
	JobTail     = convJob("tail")
	JobDst      = convJob("dst")
	JobAt       = convJob("at")
	JobClass    = convJob("class")
	JobScale    = convJob("scale")
	JobShift    = convJob("shift")
	JobSlope    = convJob("slope")
	JobClip     = convJob("clip")
	JobLow      = convJob("low")
	JobHigh     = convJob("high")
	JobAdded    = convJob("added") // one more than from where values are written to what is added to them
	JobNext     = convJob("Next")
	JobDstPlane = convJob("DstPlane")
	JobBudget   = convJob("budget")
	JobIn       = convJob("in") // planes of the input, and of the output
	JobOut      = convJob("out")
	JobLevel    = convJob("levelScale") // scale of levels
	JobMove     = convJob("levelShift") // and shift
	JobRest     = convJob("levelRest")  // of the scales of levels
	JobLeast    = convJob("least")
	JobMost     = convJob("most")
	JobOffset   = convJob("offset")
)

// Offsets of the fields of kern.DepthwiseJob behind those of kern.ConvJob.
var (
	DepthwiseRow    = depthwiseJob("Row")
	DepthwiseColumn = depthwiseJob("Column")
	DepthwiseMask   = depthwiseJob("mask")
)

// Offsets of the fields of kern.WinogradJob behind those of kern.ConvJob, and of kern.WinogradInput.
var (
	WinogradRow   = winogradJob("Row")
	WinogradPlane = winogradJob("Plane")

	SquaresDst     = winogradInput("Dst")
	SquaresSrc     = winogradInput("Src")
	SquaresStep    = winogradInput("Step")
	SquaresRow     = winogradInput("Row")
	SquaresDstStep = winogradInput("DstStep")
	SquaresPlane   = winogradInput("Plane")
	SquaresCount   = winogradInput("Squares")
	SquaresVectors = winogradInput("Vectors")
	SquaresOffset  = winogradInput("Offset")
)

// Offsets of the fields of kern.WinogradSums.
var (
	SumsDst      = winogradSums("Dst")
	SumsSrc      = winogradSums("Src")
	SumsWeights  = winogradSums("weights")
	SumsTable    = winogradSums("table")
	SumsSquares  = winogradSums("Squares")
	SumsChannels = winogradSums("channels")
	SumsSrcPlane = winogradSums("srcPlane")
	SumsDstPlane = winogradSums("dstPlane")
)

// Offsets of the fields of kern.DotJob and kern.FMAJob.
var (
	TileDst     = dotJob("dst")
	TileDstStep = dotJob("dstStep")
	TileSrc     = dotJob("src")
	TileStep    = dotJob("step")
	TileRows    = dotJob("rows")
	TileRun     = dotJob("run")
	TileSkip    = dotJob("skip")
	TileWeights = dotJob("weights")
	DotBlock    = dotJob("block")  // of weights
	FMARuns     = fmaJob("runs")   // places and taps, 16 bytes each
	FMACount    = fmaJob("count")  // of runs
	FMARun      = fmaJob("length") // values of a run
	FMATap      = fmaJob("tap")    // from the weights of a tap to those of the next one
	DotK        = dotJob("k")
	FMABias     = fmaJob("bias")
	TilePixels  = dotJob("pixels")
	FMAOutputs  = fmaJob("outputs")
	FMABlock    = fmaJob("block") // from the weights of a block to those of the next one
	FMAScale    = fmaJob("scale")
	FMAShift    = fmaJob("shift")
	FMASlope    = fmaJob("slope")
	FMAClip     = fmaJob("clip")
	FMALow      = fmaJob("low")
	FMAHigh     = fmaJob("high")
	// Of means.
	MeanTaps       = fmaJob("low")
	MeanReciprocal = fmaJob("high")
)

// Offsets of the fields of kern.ColumnsJob behind those of kern.FMAJob.
var (
	ColumnsDstRow = columnsJob("dstRow")
	ColumnsSrcRow = columnsJob("srcRow")
	ColumnsLast   = columnsJob("last") // of the first channel of the last vector, in bytes
	ColumnsRows   = columnsJob("rows")
	ColumnsSkip   = columnsJob("skip")
	ColumnsSteps  = columnsJob("steps")
	ColumnsLeft   = columnsJob("left")
	ColumnsRight  = columnsJob("right")
)

// Offsets of the fields of kern.GroupsJob behind those of kern.FMAJob.
var (
	GroupsIndex = groupsJob("index") // of each input, for every lane
	GroupsEach  = groupsJob("each")  // bytes from what a vector of outputs reads to what the next one does
	GroupsMask  = groupsJob("mask")  // of the values that it reads
)

// Offsets of the fields of kern.EndJob.
var (
	EndDst     = endJob("dst")
	EndDstStep = endJob("dstStep")
	EndSrc     = endJob("src")
	EndSrcStep = endJob("srcStep")
	EndSrc2    = endJob("src2")
	EndScale   = endJob("scale")
	EndShift   = endJob("shift")
	EndSlope   = endJob("slope")
	EndN       = endJob("n") // values of a row
	EndRows    = endJob("rows")
	EndClip    = endJob("clip")
	EndLow     = endJob("low")
	EndHigh    = endJob("high")
	EndScale2  = endJob("scale2")
	EndShift2  = endJob("shift2")
	EndClip2   = endJob("clip2")
	EndLow2    = endJob("low2")
	EndHigh2   = endJob("high2")
)

// Offsets of the fields of kern.MatrixJob and kern.MatrixBlock.
var (
	MatrixSrc         = matrixJob("Src")
	MatrixTaps        = matrixJob("taps") // offsets of lines, by step
	MatrixTapsEnd     = matrixJob("tapsEnd")
	MatrixWeights     = matrixJob("weights")
	MatrixWeightsEnd  = matrixJob("weightsEnd")
	MatrixBlocks      = matrixJob("blocks")
	MatrixCount       = matrixJob("count")  // of blocks
	MatrixPixels      = matrixJob("Pixels") // places of sums and of rows of the table
	MatrixTable       = matrixJob("Table")
	MatrixDst         = matrixJob("Dst")
	MatrixDstStep     = matrixJob("DstStep")
	MatrixBefore      = matrixJob("Before") // bytes of the pixels in front of the first one
	MatrixFlip        = matrixJob("Flip")
	MatrixSumShift    = matrixJob("Shift") // by how many bits sums are shifted
	MatrixScale       = matrixJob("scale")
	MatrixShift       = matrixJob("shift")
	MatrixSlope       = matrixJob("slope")
	MatrixClip        = matrixJob("clip") // 0 or 1
	MatrixLow         = matrixJob("low")
	MatrixHigh        = matrixJob("high")
	MatrixAdded       = matrixJob("added")  // one more than from where values are written to what is added to them
	MatrixScale2      = matrixJob("scale2") // of the second end
	MatrixShift2      = matrixJob("shift2")
	MatrixClip2       = matrixJob("clip2")
	MatrixLow2        = matrixJob("low2")
	MatrixHigh2       = matrixJob("high2")
	MatrixLevel       = matrixJob("level") // scale of levels
	MatrixMove        = matrixJob("move")  // and shift
	MatrixLeast       = matrixJob("least")
	MatrixMost        = matrixJob("most")
	MatrixOffset      = matrixJob("offset")
	MatrixRing        = matrixJob("ring") // of tiles of weights
	MatrixRingEnd     = matrixJob("ringEnd")
	MatrixPanelEnd    = matrixJob("panelEnd")  // bytes of a row of the table
	MatrixTiles       = matrixJob("tiles")     // of the block in hand
	MatrixBlockFrom   = matrixJob("blockFrom") // its pixels
	MatrixBlockEnd    = matrixJob("blockEnd")
	MatrixBlockDst    = matrixJob("blockDst")
	MatrixPanel       = matrixJob("panel")      // in bytes of a row of the table
	MatrixNow         = matrixJob("now")        // where sums are stored next
	MatrixPendingEnd  = matrixJob("pendingEnd") // of the pixels whose sums are to be ended
	MatrixPendingFlip = matrixJob("pendingFlip")
	MatrixConfig      = matrixJob("config")       // of tiles
	MatrixValues      = matrixJob("values")       // of weights of 4 bits
	MatrixRest        = matrixJob("rest")         // of the scales of levels
	MatrixLine        = matrixJob("line")         // bytes from a line of pixels to the next
	MatrixPending     = matrixJob("pendingPanel") // panel of the sums that are to be ended, as MatrixPanel
	MatrixFakeLevel   = matrixJob("fakeLevel")    // scale of the levels of a FakeQuantize
	MatrixFakeRest    = matrixJob("fakeRest")
	MatrixFakeMove    = matrixJob("fakeMove")
	MatrixFakeScale   = matrixJob("fakeScale") // of its values
	MatrixFakeShift   = matrixJob("fakeShift")
	MatrixFakeLeast   = matrixJob("fakeLeast")
	MatrixFakeMost    = matrixJob("fakeMost")
	MatrixFakeLow     = matrixJob("fakeLow")
	MatrixResult      = matrixJob("result")
	MatrixPend        = matrixJob("pend") // functions of the result
	MatrixRows        = matrixJob("ended")
	MatrixDrain       = matrixJob("drained")

	MatrixBlockTiles = matrixBlock("Tiles")  // their number, behind their places
	MatrixBlockFirst = matrixBlock("First")  // pixel
	MatrixBlockCount = matrixBlock("Pixels") // of pixels
	MatrixPixelSize  = size[kern.MatrixPixel]()
	MatrixBlockSize  = size[kern.MatrixBlock]()
)

// Offsets of the fields of kern.LineRows.
var (
	LinesRows   = lineRows("Rows")
	LinesBefore = lineRows("Before")
	LinesInside = lineRows("Inside")
	LinesAfter  = lineRows("After")
	LinesStep   = lineRows("Step")
	LinesRow    = lineRows("Row")
	LinesPlanes = lineRows("Planes")
	LinesPlane  = lineRows("Plane")
	LinesMask   = lineRows("Mask")
	LinesBorder = lineRows("Border")
)

// Offsets of the fields of kern.RunRows and kern.LineRun.
var (
	RunsRows   = runRows("Rows")
	RunsPixels = runRows("Pixels")
	RunsStep   = runRows("Step")
	RunsRow    = runRows("Row")
	RunsRuns   = runRows("Runs")
	RunsCount  = RunsRuns + 8 // the length of the slice

	RunOffset = lineRun("Offset")
	RunMask   = lineRun("Mask")
	RunSize   = size[kern.LineRun]()
)

// Offsets of the fields of kern.LevelsJob.
var (
	LevelsDst      = levelsJob("dst")
	LevelsSrc      = levelsJob("src")
	LevelsScale    = levelsJob("scale")
	LevelsShift    = levelsJob("shift")
	LevelsTable    = levelsJob("table")
	LevelsList     = levelsJob("list")
	LevelsN        = levelsJob("n")
	LevelsDown     = levelsJob("down")
	LevelsRest     = levelsJob("rest")
	LevelsTruncate = levelsJob("truncate")
	LevelsLeast    = levelsJob("least")
	LevelsMost     = levelsJob("most")
	LevelsLow      = levelsJob("low")
	LevelsOffset   = levelsJob("offset")
)

// Offsets of the fields of kern.PickJob and kern.PickPiece.
var (
	PickDst     = pickJob("dst")
	PickSrc     = pickJob("src")
	PickDstStep = pickJob("dstStep")
	PickSrcStep = pickJob("srcStep")
	PickPieces  = pickJob("pieces")
	PickPixels  = pickJob("pixels")
	PickVectors = pickJob("vectors")

	PieceOffset = pickPiece("offset")
	PieceMask   = pickPiece("mask")
	PieceIndex  = pickPiece("index")
	PieceLanes  = pickPiece("lanes")
	PieceBytes  = pickPiece("bytes")
	PieceSize   = size[kern.PickPiece]()
)

// Offsets of the fields of kern.Function.
var (
	FunctionRows      = function("rows")
	FunctionFrom      = function("from")
	FunctionTo        = function("to")
	FunctionBelow     = function("below")
	FunctionPlaces    = function("places")
	FunctionDirectory = function("directory")
)

// Offsets of the fields of kern.BlendRowJob.
var (
	BlendRowDst     = blendRowJob("dst")
	BlendRowSrc     = blendRowJob("src")
	BlendRowRows    = blendRowJob("rows")
	BlendRowTable   = blendRowJob("table")
	BlendRowPlaces  = blendRowJob("places")
	BlendRowVectors = blendRowJob("vectors")
	BlendRowDstStep = blendRowJob("dstStep")
)

// Offsets of the fields of kern.BlendJob and kern.BlendTap.
var (
	BlendDst      = blendJob("dst")
	BlendSrc      = blendJob("src")
	BlendRows     = blendJob("rows")
	BlendRowCount = blendJob("rowCount")
	BlendCols     = blendJob("cols")
	BlendColBytes = blendJob("colBytes") // of the columns of a pixel
	BlendPixels   = blendJob("pixels")
	BlendBytes    = blendJob("bytes") // of a pixel

	BlendTapOffset = blendTap("At")
	BlendTapWeight = blendTap("Weight")
	BlendTapSize   = size[kern.BlendTap]()
)

// Offsets of the fields of kern.PoolJob.
var (
	PoolDst     = poolJob("dst")
	PoolSrc     = poolJob("src")
	PoolTaps    = poolJob("taps") // offsets in bytes
	PoolCount   = poolJob("count")
	PoolBytes   = poolJob("bytes") // of a pixel
	PoolStep    = poolJob("step")
	PoolDstStep = poolJob("dstStep")
	PoolPixels  = poolJob("pixels")
	// Of means of ±1.
	PoolDivisor    = poolJob("divisor")
	PoolReciprocal = poolJob("reciprocal")
)
