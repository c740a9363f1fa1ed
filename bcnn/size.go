package bcnn

// What the checks of a network and lowering may cost; its size is what its description holds, in
// bytes.
const (
	// WorkPerByte is what may be spent for each byte of the size, in bytes that
	// are allocated and iterations alike. Most is for thresholds that are searched
	// behind maxMixed functions, of which one has a value of 4 bytes per channel.
	WorkPerByte = 192
	LayerBytes  = 64 // of a layer without parameters
)

// size is what a layer holds, in bytes.
func (l Layer) size() int64 {
	sum, _ := ParameterBytes(l.Op)
	return LayerBytes + int64(len(l.Name)) + 8*int64(len(l.Inputs)) + l.Source.size() + sum
}

// sides is the share of a tensor in the size of a network.
func (s Shape) sides() int64 { return int64(s.H) + int64(s.W) + int64(s.C) }
