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

// List makes a list of n values, f(i) at place i, and charges what it takes.
func List[T int | int32](b *Budget, n int, f func(i int) T) ([]T, error) {
	if err := b.Charge(8 * int64(n)); err != nil {
		return nil, err
	}
	list := make([]T, n)
	err := b.Loop(n, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			list[i] = f(i)
		}
	})
	return list, err
}
