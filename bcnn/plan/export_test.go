package plan

// PlaceCounted returns how many pairs of tensors Place has looked at.
func (p *Plan) PlaceCounted(n int, uses []Use) (pairs int64) {
	_, _, pairs = place(p.lifetimes(n, uses))
	return pairs
}
