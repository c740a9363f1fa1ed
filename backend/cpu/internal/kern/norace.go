//go:build !race

package kern

func annotated(set *Set) *Set { return set }

func annotateConv(*ConvJob, *WideFilter, *filterBlock, int, int) {}
