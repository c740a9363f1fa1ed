package zoo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
	"github.com/bitcnn/bitcnn/bcnn/lower"
	"github.com/bitcnn/bitcnn/bcnn/plan"
	"github.com/bitcnn/bitcnn/bcnn/zoo"
)

// parameters counts what is learned in a network, with so many numbers for each channel
// of a batch normalisation.
func parameters(t *testing.T, net *bcnn.Network, perNorm int64) int64 {
	p, err := lower.Network(t.Context(), net, lower.Options{})
	require.NoError(t, err)
	sum := int64(0)
	for _, r := range plan.Summarize(net, p) {
		sum += r.Params
	}
	for _, l := range net.Layers {
		switch op := l.Op.(type) {
		case bcnn.BatchNorm:
			sum += perNorm * int64(len(op.Gamma))
		case bcnn.PReLU:
			sum += int64(len(op.Slope))
		}
	}
	return sum
}

// The counts are those that were published: of parameters by the Larq Zoo (the
// documentation of each network), which has four numbers for each channel of a batch
// normalisation, three where it has no scale, and for later networks the two that are
// trained; of ReActNet-A by its paper, 4.82·10⁹ products of integers and 0.12·10⁸ others; of
// FINN's the weights; and of BMXNet's those of the files, whose bytes are the stored ones.
func TestPublished(t *testing.T) {
	for name, want := range map[string]struct {
		params, perNorm     int64
		macs, exact, stored int64
	}{
		"birealnet18":     {11_699_112, 4, 1_814_073_344, 1_676_279_808, 4_150_944},
		"resnete18":       {11_699_368, 4, 1_814_073_344, 1_676_279_808, 4_150_944},
		"binaryalexnet":   {61_859_192, 3, 841_367_552, 841_367_552, 7_787_520},
		"xnornet":         {62_396_768, 3, 1_139_124_224, 1_025_744_896, 23_828_608},
		"densenet28":      {5_150_504, 4, 3_789_867_520, 3_587_383_296, 4_179_104},
		"realtobinary":    {11_995_624, 4, 1_814_367_744, 1_676_279_808, 5_328_544},
		"meliusnet22":     {6_944_584, 2, 4_760_608_768, 4_624_220_160, 4_006_688},
		"quicknet-small":  {12_655_688, 2, 1_171_996_160, 1_156_055_040, 4_167_072},
		"quicknet":        {13_234_088, 2, 1_879_339_776, 1_849_688_064, 4_329_376},
		"quicknet-large":  {23_342_248, 2, 3_729_027_840, 3_699_376_128, 5_591_968},
		"reactnet":        {29_333_736, 4, 4_828_758_016, 4_816_896_000, 7_636_512},
		"cnv-1w1a":        {1_542_848, 0, 59_461_376, 59_461_376, 197_248},
		"cnv-1w2a":        {1_542_848, 0, 59_461_376, 59_461_376, 197_248},
		"cnv-2w2a":        {1_542_848, 0, 59_461_376, 59_461_376, 1_542_848},
		"lfc-1w2a":        {2_910_208, 0, 2_910_208, 2_910_208, 369_920},
		"lfc-1w1a":        {2_910_208, 0, 2_910_208, 2_910_208, 369_920},
		"bmxnet-lenet":    {1_138_074, 0, 8_509_200, 7_577_600, 187_496},
		"bmxnet-resnet18": {11_168_458, 0, 559_617_024, 557_842_432, 1_422_632},
	} {
		net, p := lowered(t, name)
		require.Equal(t, want.params, parameters(t, net, want.perNorm), name)
		var macs, exact, stored int64
		for _, r := range plan.Summarize(net, p) {
			macs += r.MACs
			stored += r.BytesPacked
			if r.Precision < plan.Float {
				exact += r.MACs
			}
		}
		require.Equal(t, want.macs, macs, name)
		require.Equal(t, want.exact, exact, name)
		require.Equal(t, want.stored, stored, name)
	}
}

// Reduced networks have the layers of the whole ones.
func TestReduced(t *testing.T) {
	for _, e := range zoo.Networks() {
		name, reduced := e.Name, e.Reduced(seed)
		net, err := zoo.New(name, seed)
		require.NoError(t, err)
		require.NoError(t, reduced.Check(), name)
		require.Equal(t, len(net.Layers), len(reduced.Layers), name)
		for i, l := range net.Layers {
			require.Equal(t, l.Name, reduced.Layers[i].Name, name)
			require.Equal(t, l.Op.Kind(), reduced.Layers[i].Op.Kind(), name)
			require.Equal(t, l.Inputs, reduced.Layers[i].Inputs, name)
		}
		require.Less(t, parameters(t, reduced, 0), parameters(t, net, 0)/6, name)
	}
}
