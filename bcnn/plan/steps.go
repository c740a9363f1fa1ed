package plan

import "github.com/bitcnn/bitcnn/bcnn"

// Pixels makes an image of the pixels of a Bits or Float32 tensor, as the layer
// Pixels says. Blocks are at least 1. A Fill that is used is −1 or +1 where the
// tensors are Bits.
type Pixels bcnn.Pixels

// Resample makes Float32 of Float32. The value of a channel in row y and column x
// is acc = +0, then acc = fma(v, weight, acc) for the taps (ky, kx) in this order,
// where v is that of row Rows.Index[y·Rows.N + ky] and column Cols.Index[x·Cols.N + kx],
// and weight the product of the weights of both, one rounding each.
type Resample bcnn.Resample

// TopK makes Float32 of Float32, as the layer TopK says: numbers of channels as
// they are, or values.
type TopK bcnn.TopK

// MatMul makes Float32 of two Bits or two Float32 tensors, H×W×K and H×V×K: the output is
// H×W×V. Of bits it is float32(K − 2·popcount(a xor b)); of float32 values acc = +0, then
// acc = fma(a[h][w][k], b[h][v][k], acc) for each k in this order.
type MatMul struct{}

// Transpose swaps columns and channels of a Bits or Float32 tensor, as the layer Transpose
// does.
type Transpose struct{}

func (*Pixels) stepKind() string    { return "pixels" }
func (*Resample) stepKind() string  { return "resample" }
func (*TopK) stepKind() string      { return "topk" }
func (*MatMul) stepKind() string    { return "matmul" }
func (*Transpose) stepKind() string { return "transpose" }
