//go:build !race

package kern

import "unsafe"

func Annotated(set *Set) *Set { return set }

func annotateConv(*ConvJob, *WideFilter, *filterBlock, int, int) {}

func annotateEnd(*ConvJob, *filterBlock, *End, unsafe.Pointer) {}

func annotateLevels(*filterBlock, *Levels) {}

func annotatePlanes(*ConvJob, *WideFilter, *filterBlock, int, int) {}

func annotateMatrix(*MatrixJob, *MatrixFilter, *MatrixPart, int, unsafe.Pointer) {}

func annotateInput(*WinogradInput) {}

func annotateSquares(*WinogradSums, *WinogradFilter) {}

func annotateOutput(*WinogradJob, *End, unsafe.Pointer, int) {}

func annotateDepthwise(*DepthwiseJob, *End, int, int) {}
