package candidates

import (
	"slices"

	"github.com/bitcnn/bitcnn/backend/internal/gpu"
	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// Join moves the extraction of patches to the step before the convolution, where that
// binarises the image for it: both are one kernel then. all are the candidates of the
// steps, of variant gpu.Patches where there are such. It returns what the first step was
// before, which makes its output; nil where nothing was joined.
func Join(plan *plan.Plan, all [][]Candidate) *Candidate {
	if !gpu.BinarizedForConv(plan) || len(all[0]) == 0 || len(all[1]) == 0 || all[1][0].Specs[0].Name != gpu.PackPatches {
		return nil
	}
	before, of := all[0][0], all[1][0].Specs
	last := len(before.Specs) - 1
	pack := of[0]
	pack.Kernel = gpu.PackImage(before.Specs[last].Kernel, pack.Kernel)
	first := append(slices.Clone(before.Specs[:last]), pack)
	all[0], all[1] = []Candidate{{Variant: gpu.Patches, Specs: first}}, []Candidate{{Variant: gpu.Patches, Specs: of[1:]}}
	return &before
}
