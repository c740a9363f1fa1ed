package darknet

import (
	"errors"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/internal/try"
)

// layer is what a section describes.
type layer interface {
	// shape checks the shapes of what the layer reads, and returns that of its output.
	shape(in []bcnn.Shape) bcnn.Shape
	// build makes the layers of a network.
	build(im *importer, s *section, in []value) value
}

// kinds are the kinds of sections, and what reads their options.
var kinds = map[string]func(*section) layer{
	"convolutional": readConvolution,
	"conv":          readConvolution,
	"maxpool":       readMaxPool,
	"max":           readMaxPool,
	"avgpool":       readAvgPool,
	"avg":           readAvgPool,
	"route":         readRoute,
	"shortcut":      readShortcut,
	"upsample":      readUpsample,
	"reorg":         readReorg,
	"reorg3d":       readReorg3D,
	"softmax":       readSoftmax,
	"soft":          readSoftmax,
	"dropout":       readDropout,
	"cost":          readCost,
	"yolo":          readYolo,
	"region":        readRegion,
}

var errKind = errors.New("sections of this kind are not supported")

// maxSide, maxChannels and maxWhole are the largest sizes, those of bcnn, and the largest
// whole number where no size is meant.
const (
	maxSide     = 1 << 16
	maxChannels = 1 << 22
	maxWhole    = 1 << 30
)

// readLayer reads the options of a section, and which layers it reads.
func readLayer(s *section) {
	read, ok := kinds[s.kind]
	if !ok {
		try.Fail(errKind)
	}
	s.inputs = []int{s.number - 1}
	s.layer = read(s)
	s.common()
	s.end()
}

// settings are what [net] says of the input.
type settings struct {
	shape     bcnn.Shape
	letterbox bool
}

// ofTraining are the options of [net] that concern training, the loader of pictures for it,
// and where on a GPU a network runs.
var ofTraining = []string{
	"batch", "subdivisions", "sequential_subdivisions", "dynamic_minibatch", "max_batches", "max_epochs", "seen",
	"learning_rate", "learning_rate_min", "momentum", "decay", "policy", "burn_in", "power", "gamma", "step", "scale", "steps", "scales",
	"seq_scales", "sgdr_cycle", "sgdr_mult", "adam", "B1", "B2", "eps", "ema_alpha", "loss_scale", "try_fix_nan", "label_smooth_eps",
	"adversarial_lr", "attention", "max_chart_loss", "show_receptive_field",
	"angle", "aspect", "saturation", "exposure", "hue", "flip", "max_crop", "min_crop", "blur", "gaussian_noise", "mixup", "cutmix", "mosaic",
	"mosaic_bound", "resize_step", "augment_speed", "random",
	"contrastive", "contrastive_jit_flip", "contrastive_color", "unsupervised", "track",
	"weights_reject_freq", "equidistant_point", "badlabels_rejection_percentage", "num_sigmas_reject_badlabels",
	"use_cuda_graph", "optimized_memory", "workspace_size_limit_MB",
}

func readNet(s *section) settings {
	var n settings
	n.shape.H = s.integer("height", 0, 1, maxSide)
	n.shape.W = s.integer("width", 0, 1, maxSide)
	n.shape.C = s.integer("channels", 0, 1, maxChannels)
	if n.shape.H == 0 || n.shape.W == 0 || n.shape.C == 0 {
		try.Failf("options height, width and channels must say how large the input is")
	}
	try.Check(n.shape.Check())
	if inputs := s.integer("inputs", n.shape.Values(), 1, maxWhole); inputs != n.shape.Values() {
		try.Failf("option inputs is %d, but height, width and channels make %d values", inputs, n.shape.Values())
	}
	if steps := s.integer("time_steps", 1, 0, maxWhole); steps > 1 {
		s.fail("time_steps", "which is not supported: a network has no memory of earlier images")
	}
	n.letterbox = s.flag("letter_box")
	s.ignore(ofTraining...)
	s.end()
	return n
}
