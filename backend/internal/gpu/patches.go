package gpu

import (
	"slices"

	"github.com/bitcnn/bitcnn/bcnn/plan"
)

// PackPatches is the kernel of variant Patches that extracts the patches of bits.
const PackPatches = "pack_patches"

// BinarizedForConv reports whether the first step of a plan makes bits of the image for
// nothing but the convolution that is the second.
func BinarizedForConv(p *plan.Plan) bool {
	if len(p.Steps) < 2 {
		return false
	}
	bits := p.Steps[0].Out
	_, binarizes := p.Steps[0].Op.(*plan.Binarize)
	conv, convolves := p.Steps[1].Op.(*plan.Conv)
	return binarizes && convolves && !conv.Dense && slices.Equal(p.Steps[1].In, []int{bits}) &&
		plan.NewGraph(p).ReadOnlyBy(bits, 1, 1)
}

// PackImage joins the kernel that binarises an image and PackPatches of its bits, as the
// paper does, to one that extracts patches of the image.
func PackImage(binarize, pack Kernel) Kernel {
	pack.Name = "pack_image"
	g := &pack.G
	g.InC, g.Scheme, g.Parts, g.Flip = binarize.G.InC, binarize.G.Scheme, binarize.G.Parts, binarize.G.Flip
	// The image, where the patches go, what the image is compared with, and the rest.
	pack.Args = slices.Concat(binarize.Args[:1], pack.Args[1:2], binarize.Args[2:], pack.Args[2:])
	return pack
}
