package kern

// ByteTable maps bytes to bytes. Vectors of 16 bytes look up the low four bits of a byte in one
// table for each value of the high bits up to its own, and XOR the results.
type ByteTable struct {
	Values  [256]uint8
	changes [256]uint8 // Values[i] XOR Values[i − 16], from 0 and from 128 on Values[i]
}

// NewByteTable returns the table of 256 integers from 0 to 255.
func NewByteTable(values []float32) *ByteTable {
	t := &ByteTable{}
	for i, v := range values[:len(t.Values)] {
		t.Values[i] = uint8(v)
	}
	for i, v := range t.Values {
		if i%128 >= 16 {
			v ^= t.Values[i-16]
		}
		t.changes[i] = v
	}
	return t
}

// Changes returns the tables for kernels of 16 bytes.
func (t *ByteTable) Changes() *uint8 { return &t.changes[0] }
