//go:build !race

package kern

func Annotated(set *Set) *Set { return set }

func annotateConv(*ConvJob, *WideFilter, *filterBlock, int, int) {}

func annotatePlanes(*ConvJob, *WideFilter, *filterBlock, int, int) {}
