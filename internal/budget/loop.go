package budget

// block is how many iterations Loop lets pass between two charges.
const block = 1 << 16

// Loop runs f over the iterations lo to hi-1 of blocks that cover [0, n), and
// charges a block, a unit for each iteration, before it runs. So a loop is
// charged as it goes, and ends with the context.
func (b *Budget) Loop(n int, f func(lo, hi int)) error {
	for lo := 0; lo < n; lo += block {
		hi := lo + min(block, n-lo)
		if err := b.Charge(int64(hi - lo)); err != nil {
			return err
		}
		f(lo, hi)
	}
	return nil
}
