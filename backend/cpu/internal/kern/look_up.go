package kern

import "math"

// TableBytes is the number of values that a byte can have.
const TableBytes = 256

// FloatTables are the values that bytes stand for: one table, or several that take turns.
type FloatTables struct {
	Tables int
	Values []float32 // TableBytes for each table
	Bytes  []uint8   // for each table byte 0 of all values, then bytes 1, 2 and 3
}

// NewFloatTables lays out tables.
func NewFloatTables(values []float32) *FloatTables {
	t := &FloatTables{Tables: len(values) / TableBytes, Values: values, Bytes: make([]uint8, 4*len(values))}
	for i, v := range values {
		for j := range 4 {
			t.Bytes[i/TableBytes*4*TableBytes+j*TableBytes+i%TableBytes] = uint8(math.Float32bits(v) >> (8 * j))
		}
	}
	return t
}
