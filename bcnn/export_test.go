package bcnn

// ArenaCounted is Arena, and returns the pairs that it looked at.
func ArenaCounted(items []Lifetime) (offsets []int64, total, pairs int64) { return arena(items) }
