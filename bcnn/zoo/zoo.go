// Package zoo holds the topologies of published networks in their binary form,
// with random weights, and the operators that other engines publish times of.
// They serve to measure, and as examples of networks built in Go.
package zoo

import (
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Entry describes a network of the zoo.
type Entry struct {
	Name string
	// About names the network and where it is published.
	About string
	build func(b *builder)
}

// Networks lists the zoo. Unless the entry says otherwise, every weight is ±1,
// the first layer reads the bytes of an image less 128, the others ±1 values,
// padding is −1 (but 128 for bytes), and the last layer gives float32 through
// its batch normalisation.
func Networks() []Entry {
	return []Entry{
		{"vgg16", "VGG-16 (configuration D of Simonyan and Zisserman), binarised as in BitFlow (Hu et al.), but conv1.1 reads bytes", vgg(2, 2, 3, 3, 3)},
		{"vgg19", "VGG-19 (configuration E), likewise", vgg(2, 2, 4, 4, 4)},
		{"alexnet", "AlexNet without groups, binarised as in XNOR-Net (Rastegari et al.), dense layers too", alexNet},
		{"birealnet18", "Bi-Real Net 18 (Liu et al.): first and last layer and shortcuts are float32", biRealNet18},
		{"birealnet18-stem", "Bi-Real Net 18 with the stem of PeleeNet (3×3 convolutions) in place of its 7×7 convolution, as daBNN (Zhang et al.) has it", biRealNet18Stem},
		{"binarynet", "the network for CIFAR-10 of Binarized Neural Networks (Courbariaux et al.)", binaryNet},
		{"bmxnet-lenet", "the LeNet published with BMXNet (Yang et al.): first and last layer are float32, padding is +1", bmxLeNet},
		{"bmxnet-resnet18", "the ResNet-18 for CIFAR-10 published with BMXNet: first and last layer are float32, padding is +1", bmxResNet18},
		{"cnv-1w1a", "CNV of FINN (Umuroglu et al.) for CIFAR-10, without padding", cnv},
		{"cnv-1w2a", "CNV of FINN, with activations of 2 bits as Brevitas has them: −1, 0 and 1", lowBits(cnv, false)},
		{"cnv-2w2a", "CNV of FINN, with such activations and weights", lowBits(cnv, true)},
		{"lfc-1w1a", "LFC of FINN for MNIST, whose pixels are ±1, too", lfc},
		{"lfc-1w2a", "LFC of FINN, with pixels and activations of 2 bits: −1, 0 and 1", lowBits(lfc, false)},
		{"binaryalexnet", "BinaryAlexNet of the Larq Zoo; padding is 0", binaryAlexNet},
		{"xnornet", "XNOR-Net (Rastegari et al.) as in the Larq Zoo: first and last layer are float32, padding is 0", xnorNet},
		{"resnete18", "ResNetE-18 (Bethge et al.) as BinaryResNetE18 of the Larq Zoo: first and last layer and shortcuts are float32, padding is 0", resNetE18},
		{"densenet28", "BinaryDenseNet-28 (Bethge et al.) as in the Larq Zoo: first and last layer and transitions are float32, padding is 0", denseNet28},
		{"realtobinary", "Real-to-Binary Net (Martinez et al.) as in the Larq Zoo: first and last layer, shortcuts and gates are float32, padding is 0", realToBinary},
		{"meliusnet22", "MeliusNet-22 (Bethge et al.) as in the Larq Zoo: stem, transitions and last layer are float32, padding is 0", meliusNet22},
		{"reactnet", "ReActNet-A (Liu et al.), of the form of MobileNet: first and last layer are float32, padding is 0", reActNet},
		{"quicknet-small", "QuickNet Small (Bannink et al.) of the Larq Zoo: stem, transitions and last layer are float32, padding is +1", quickNet([]int{4, 4, 4, 4}, []int{32, 64, 256, 512})},
		{"quicknet", "QuickNet, likewise", quickNet([]int{4, 4, 4, 4}, []int{64, 128, 256, 512})},
		{"quicknet-large", "QuickNet Large, likewise", quickNet([]int{6, 8, 12, 6}, []int{64, 128, 256, 512})},
	}
}

// Names lists the names of Networks.
func Names() []string {
	var names []string
	for _, e := range Networks() {
		names = append(names, e.Name)
	}
	return names
}

// New returns a network of the zoo with random weights and batch
// normalisation, always the same for a seed.
func New(name string, seed uint64) (*bcnn.Network, error) {
	for _, e := range Networks() {
		if e.Name == name {
			b := newBuilder(name, seed)
			e.build(b)
			return b.net, nil
		}
	}
	return nil, fmt.Errorf("zoo: no network %q, there are %s", name, strings.Join(Names(), ", "))
}

// Reduced returns the network with images of 32 or 64 pixels a side in place of 224, as
// its windows need, and an eighth of the channels: for tests that all its layers are to
// take part in.
func (e Entry) Reduced(seed uint64) *bcnn.Network {
	b := newBuilder(e.Name, seed)
	b.reduced = true
	e.build(b)
	return b.net
}

// vgg returns the builder of a VGG network for ImageNet with the given numbers
// of 3×3 convolutions before each of its five max-pools.
func vgg(blocks ...int) func(b *builder) {
	return func(b *builder) {
		b.image(224, 32, 256)
		channels := []int{64, 128, 256, 512, 512}
		for i, convs := range blocks {
			for j := range convs {
				id := fmt.Sprintf("%d.%d", i+1, j+1)
				b.conv("conv"+id, bcnn.Conv2D{Window: square(3, 1, 1), Out: b.channels(channels[i])})
				b.normSign(id)
			}
			b.pool(fmt.Sprint("pool", i+1), square(2, 2, 0))
		}
		b.classifier(6, 4096, 4096, 1000)
	}
}

func alexNet(b *builder) {
	b.image(224, 64, 256)
	for i, c := range []struct {
		window bcnn.Window
		out    int
		pool   bool
	}{
		{square(11, 4, 2), 96, true},
		{square(5, 1, 2), 256, true},
		{square(3, 1, 1), 384, false},
		{square(3, 1, 1), 384, false},
		{square(3, 1, 1), 256, true},
	} {
		id := fmt.Sprint(i + 1)
		b.conv("conv"+id, bcnn.Conv2D{Window: c.window, Out: b.channels(c.out)})
		if c.pool {
			b.pool("pool"+id, square(3, 2, 0))
		}
		b.normSign(id)
	}
	b.classifier(6, 4096, 4096, 1000)
}

func binaryNet(b *builder) {
	b.image(32, 16, 0)
	for i, out := range []int{128, 128, 256, 256, 512, 512} {
		id := fmt.Sprint(i + 1)
		b.conv("conv"+id, bcnn.Conv2D{Window: square(3, 1, 1), Out: b.channels(out)})
		if i%2 == 1 {
			b.pool("pool"+id, square(2, 2, 0))
		}
		b.normSign(id)
	}
	b.classifier(7, 1024, 1024, 10)
}
