package zoo

import (
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Operator is a single binary operator, to be measured on its own.
type Operator struct {
	Name  string
	Group string // one of OperatorGroups
	// In is what it reads: ±1 values, packed.
	In bcnn.Shape
	// Op is a Conv2D or Dense without weights, or a MaxPool.
	Op bcnn.Op
}

// OperatorLayer is the name of the layer of Operator.Network that is the
// operator; what stands before and behind it only makes and reads its tensors.
const OperatorLayer = "op"

// OperatorGroups are the groups of Operators: the operators that BitFlow (Hu et
// al., the table of its evaluation) and daBNN (its benchmark) publish times of,
// and a sweep over shapes.
func OperatorGroups() []string { return []string{"bitflow", "dabnn", "sweep"} }

// Operators lists the operators. Padding of convolutions is −1, as in both
// papers' engines.
func Operators() []Operator {
	conv := func(group, name string, size, in, out int, w bcnn.Window, groups int) Operator {
		return Operator{
			Name: name, Group: group, In: bcnn.Shape{H: size, W: size, C: in},
			Op: bcnn.Conv2D{Window: w, Out: out, Groups: groups},
		}
	}
	dense := func(group, name string, in, out int) Operator {
		return Operator{Name: name, Group: group, In: bcnn.Shape{H: 1, W: 1, C: in}, Op: bcnn.Dense{Out: out}}
	}
	pool := func(group, name string, size, c int, w bcnn.Window) Operator {
		return Operator{Name: name, Group: group, In: bcnn.Shape{H: size, W: size, C: c}, Op: bcnn.MaxPool{Window: w}}
	}
	three := square(3, 1, 1)
	list := []Operator{
		conv("bitflow", "conv2.1", 112, 64, 128, three, 1),
		conv("bitflow", "conv3.1", 56, 128, 256, three, 1),
		conv("bitflow", "conv4.1", 28, 256, 512, three, 1),
		conv("bitflow", "conv5.1", 14, 512, 512, three, 1),
		dense("bitflow", "fc6", 7*7*512, 4096),
		dense("bitflow", "fc7", 4096, 4096),
		pool("bitflow", "pool4", 28, 512, square(2, 2, 0)),
		pool("bitflow", "pool5", 14, 512, square(2, 2, 0)),

		conv("dabnn", "dabnn_5x5_256", 14, 256, 256, square(5, 1, 2), 1),
		conv("dabnn", "dabnn_3x3_64", 56, 64, 64, three, 1),
		conv("dabnn", "dabnn_3x3_128", 28, 128, 128, three, 1),
		conv("dabnn", "dabnn_3x3_256", 14, 256, 256, three, 1),
		conv("dabnn", "dabnn_3x3_256_s2", 14, 256, 256, square(3, 2, 1), 1),
		conv("dabnn", "dabnn_3x3_512", 7, 512, 512, three, 1),
	}
	for _, c := range []int{16, 32, 48, 64, 96, 128, 192, 256, 384, 512} {
		list = append(list, conv("sweep", fmt.Sprint("c", c), 28, c, c, three, 1))
	}
	for _, k := range []int{1, 2, 5, 7} {
		list = append(list, conv("sweep", fmt.Sprint("k", k), 28, 128, 128, square(k, 1, k/2), 1))
	}
	dilated := square(3, 1, 2)
	dilated.DilationH, dilated.DilationW = 2, 2
	return append(list,
		conv("sweep", "stride2", 28, 128, 128, square(3, 2, 1), 1),
		conv("sweep", "dilation2", 28, 128, 128, dilated, 1),
		conv("sweep", "groups4", 28, 256, 256, three, 4),
		dense("sweep", "fc1024", 1024, 1024),
		pool("sweep", "pool3x3", 28, 128, square(3, 2, 1)),
	)
}

// Network returns a network around the operator, with random weights from a
// seed: bytes, which a threshold makes ±1; the operator, with batch
// normalisation and sign, so that it writes ±1 as well, unless it is a pool;
// and one output that depends on all of them.
func (o Operator) Network(seed uint64) *bcnn.Network {
	b := newBuilder(o.Name, seed)
	b.bitsInput(o.In)
	switch op := o.Op.(type) {
	case bcnn.Conv2D:
		b.conv(OperatorLayer, op)
		b.normSign("")
	case bcnn.Dense:
		b.dense(OperatorLayer, op.Out)
		b.normSign("")
	case bcnn.MaxPool:
		b.pool(OperatorLayer, op.Window)
	}
	b.dense("output", 1)
	return b.net
}
