package f32

import "math"

// curve is a function on the numbers of one sign.
type curve struct {
	// around is the series around a number; tables ask for numbers of growing magnitude.
	around func(x float64) series
	// Below 2^first in magnitude, the series around 0 does.
	first int
	// From end on, the function is slope·x + level; end is the bound of an interval. For
	// an infinite x it is limit.
	end, slope, level, limit float64
	// coarse says that there are as few intervals as possible.
	coarse bool
	// near, where it is not 0, is the function below 2^first, or below end if that is
	// nearer to 0. It then has no series there.
	near float64
	// step, where it is not nil, is the function: one number for each exponent.
	step func(exponent int) float64
}

// tiny is so far below 1 that x + x² is x.
const tiny = -25

// flushed is where e^x counts as 0, which keeps what is computed above the subnormal
// numbers.
const flushed = -84

// stepBits is how many bits of the mantissa of subnormal numbers a step tells apart: 2^-133 and
// what is smaller count as one.
const stepBits = 6

// leastRoot is the exponent of the least number, times the square of its root_power. Below
// 2^-18, float32 would not hold all coefficients of 1/x.
const leastRoot = -17

// curves returns a function on the positive and on the negative numbers.
func curves(name string) [2]curve {
	inf, zero := math.Inf(1), math.Copysign(0, -1)
	both := func(f func(series) series) func(float64) series {
		return func(x float64) series { return f(variable(x)) }
	}
	// Products of x with what tends to 1 and 0.
	gate := func(gate func(series) series, end, low float64) [2]curve {
		around := both(func(x series) series { return x.times(gate(x)) })
		return [2]curve{{around: around, first: tiny, end: end, slope: 1, limit: inf}, {around: around, first: tiny, end: low, level: zero, limit: zero}}
	}
	switch name {
	case "tanh":
		return [2]curve{
			{around: tangent(), first: -12, end: 10, level: 1, limit: 1, coarse: true},
			{around: tangent(), first: -12, end: -10, level: -1, limit: -1, coarse: true},
		}
	case "sigmoid":
		return [2]curve{{around: both(sigmoid), first: -4, end: 18, level: 1, limit: 1}, {around: both(sigmoid), first: -4, end: flushed}}
	case "exp":
		around := both(series.exp)
		return [2]curve{{around: around, first: tiny, end: 88.75, level: inf, limit: inf}, {around: around, first: tiny, end: flushed}}
	case "softplus":
		around := both(func(x series) series {
			return sigmoid(x).integral(max(x[0], 0) + log1p(exp(-math.Abs(x[0]))))
		})
		return [2]curve{{around: around, first: tiny, end: 18, slope: 1, limit: inf}, {around: around, first: tiny, end: flushed}}
	case "elu":
		around := both(func(x series) series {
			e := x.exp()
			e[0] = expm1(x[0])
			return e
		})
		return [2]curve{{slope: 1, limit: inf}, {around: around, first: tiny, end: -18, level: -1, limit: -1}}
	case "erf":
		around := both(func(x series) series {
			square := x.times(x).scaled(-1)
			return square.exp().scaled(2 / math.Sqrt(math.Pi)).integral(erf(x[0]))
		})
		return [2]curve{{around: around, first: tiny, end: 4, level: 1, limit: 1}, {around: around, first: tiny, end: -4, level: -1, limit: -1}}
	case "silu":
		return gate(sigmoid, 18, flushed)
	case "gelu":
		return gate(func(x series) series {
			return x.times(x).scaled(-0.5).exp().scaled(1 / math.Sqrt(2*math.Pi)).integral(normal(x[0]))
		}, 6, -13)
	case "gelu_tanh":
		return gate(func(x series) series {
			cube := x.times(x).times(x).scaled(0.044715)
			return sigmoid(x.plus(cube).scaled(2 * math.Sqrt(2/math.Pi)))
		}, 6, -10)
	case "mish":
		return gate(func(x series) series {
			if x[0] < 0 {
				e := x.exp()
				n := e.times(e.plus(constant(2)))
				return n.over(n.plus(constant(2)))
			}
			e := x.scaled(-1).exp()
			n := e.scaled(2).plus(constant(1))
			return n.over(n.plus(e.times(e).scaled(2)))
		}, 18, flushed)
	case "reciprocal":
		around := both(func(x series) series { return constant(1).over(x) })
		return [2]curve{
			{around: around, end: 4, level: 0.25, limit: 0.25, near: 1},
			{around: around, end: -4, level: -0.25, limit: -0.25, near: -1},
		}
	case "rsqrt":
		return [2]curve{{around: both(series.rsqrt), end: 4, level: 0.5, limit: 0.5, near: 1}, {level: 1, limit: 1}}
	case "rootscale":
		scale := func(exponent int) float64 { return math.Ldexp(1, -int(math.Floor(float64(max(exponent, -126))/2))) }
		return [2]curve{{step: scale}, {step: scale}}
	case "inverse":
		around := both(func(x series) series { return constant(1).over(x) })
		return [2]curve{
			{around: around, first: leastRoot, end: 4, near: inf},
			{around: around, first: leastRoot, end: -4, level: zero, limit: zero, near: -inf},
		}
	case "inverse_root":
		return [2]curve{
			{around: both(series.rsqrt), first: leastRoot, end: 4, near: inf},
			{end: -math.Ldexp(1, leastRoot), level: math.NaN(), limit: math.NaN(), near: -inf},
		}
	case "root_factor":
		return [2]curve{
			{around: both(series.rsqrt), first: leastRoot, end: 4, level: 1, limit: 1, near: 1},
			{end: -math.Ldexp(1, leastRoot), level: math.NaN(), limit: math.NaN(), near: 1},
		}
	case "root_power":
		power := func(exponent int) float64 { return math.Ldexp(1, -1-int(math.Floor(float64(exponent)/2))) }
		return [2]curve{{step: power}, {step: power}}
	case "float16_shift":
		shift := shift(13, -14, 16)
		return [2]curve{{step: shift}, {step: shift}}
	case "bfloat16_shift":
		shift := shift(16, -126, 111)
		return [2]curve{{step: shift}, {step: shift}}
	case "float16_range":
		within := func(exponent int) float64 {
			if exponent < 16 {
				return 1
			}
			return inf
		}
		return [2]curve{{step: within}, {step: within}}
	default: // hardswish
		c := gate(func(x series) series { return x.plus(constant(3)).scaled(1.0 / 6) }, 3, -3)
		c[0].coarse, c[1].coarse = true, true // a polynomial of degree 2
		return c
	}
}

// shift returns what is added to a number of an exponent and taken away again, so that as many bits
// of it are lost, at least as many as of one with the least exponent. From end on it is 0.
func shift(bits, least, end int) func(exponent int) float64 {
	return func(exponent int) float64 {
		if exponent >= end {
			return 0
		}
		return math.Ldexp(1.5, max(exponent, least)+bits)
	}
}

func sigmoid(x series) series {
	if x[0] < 0 {
		e := x.exp()
		return e.over(e.plus(constant(1)))
	}
	return constant(1).over(x.scaled(-1).exp().plus(constant(1)))
}

// tangent returns the hyperbolic tangent, from one series to the next by y' = 1 − y².
func tangent() func(x float64) series {
	var at float64
	var y series
	return func(x float64) series {
		if x == 0 {
			return variable(0) // for the numbers of which the cube does not count
		}
		value := 0.0
		if at == 0 { // x − x³/3 + 2x⁵/15 − 17x⁷/315: what is left is below 2^-100
			s := float64(x * x)
			value = float64(x * (1 + float64(s*(-1.0/3+float64(s*(2.0/15-float64(s*(17.0/315))))))))
		} else {
			value = y.at(x - at)
		}
		at = x
		y = series{value}
		for k := range order {
			sum := 0.0
			if k == 0 {
				sum = 1
			}
			for i := range k + 1 {
				sum -= float64(y[i] * y[k-i])
			}
			y[k+1] = sum / float64(k+1)
		}
		return y
	}
}

const (
	// leastBits and mostBits are how many bits of the mantissa tell intervals apart.
	leastBits, mostBits = 3, 9
	// reach is by how much of itself a function may change in half an interval, so that
	// errors of the polynomial count little beside the rounding of its last sum.
	reach = 1.0 / 8
	// missed is the relative error that a polynomial may have.
	missed = 1.0 / (1 << 31)
)

// tabulate makes the table of a function.
func tabulate(curves [2]curve) *Function {
	f := &Function{}
	for sign, c := range curves {
		to := math.Float32bits(float32(math.Abs(c.end)))
		f.inner[sign] = [2]uint32{min(math.Float32bits(float32(math.Ldexp(1, c.first))), to), to}
		for exponent := range directorySize / 2 {
			f.directory[sign*directorySize/2+exponent] = f.octave(&c, float64(1-2*sign), exponent)
		}
	}
	f.words = make([]float32, 0, directorySize+rowSize*len(f.rows))
	for _, d := range f.directory {
		f.words = append(f.words, math.Float32frombits(d))
	}
	for i := range f.rows {
		f.words = append(f.words, f.rows[i][:]...)
	}
	return f
}

// octave appends the rows of the numbers of one sign and exponent, unless they are those
// of the exponent before, and returns their place.
func (f *Function) octave(c *curve, sign float64, exponent int) uint32 {
	const bias, infinity = 127, 255
	if c.step != nil {
		if exponent == 0 { // leading zeros tell subnormal numbers apart
			first := len(f.rows)
			for i := range 1 << stepBits {
				_, length := math.Frexp(float64(i))
				f.rows = append(f.rows, [rowSize]float32{1: float32(c.step(length - bias - stepBits))})
			}
			return place(first, mantissaBits-stepBits)
		}
		row := [rowSize]float32{1: float32(c.step(min(exponent, infinity-1) - bias))} // infinity as the largest ones
		if f.rows[len(f.rows)-1] != row {
			f.rows = append(f.rows, row)
		}
		return place(len(f.rows)-1, mantissaBits)
	}
	end := math.Abs(c.end)
	switch low := math.Ldexp(1, exponent-bias); {
	case exponent == infinity:
		row := [rowSize]float32{1: float32(c.limit)}
		if c.limit == 0 { // which keeps −0
			row[2] = row[1]
		}
		f.rows = append(f.rows, row)
	case exponent > 0 && low >= end:
		if low/2 < end {
			f.rows = append(f.rows, c.tail())
		}
	case exponent == 0:
		if end == 0 {
			f.rows = append(f.rows, c.tail())
			break
		}
		if c.near != 0 {
			f.rows = append(f.rows, [rowSize]float32{1: float32(c.near)})
			break
		}
		a := c.around(math.Copysign(0, sign))
		row := [rowSize]float32{1: float32(a[0]), 2: float32(a[0] - float64(float32(a[0])))}
		if a[0] == 0 { // which keeps −0
			row[1], row[2] = float32(math.Copysign(0, -1)), float32(math.Copysign(0, -1))
		}
		for k := 1; k <= degree; k++ {
			row[2+k] = float32(a[k])
		}
		f.rows = append(f.rows, row)
	case exponent-bias >= c.first:
		bits := c.bits(sign, low)
		first := len(f.rows)
		width := math.Ldexp(low, -bits)
		for i := range 1 << bits {
			if low+float64(float64(i)*width) >= end {
				f.rows = append(f.rows, c.tail())
				continue
			}
			m := float64(sign * (low + float64((float64(i)+0.5)*width)))
			short := c.around(m).shorten(width / 2)
			hi := float32(short[0])
			row := [rowSize]float32{float32(m), hi, float32(short[0] - float64(hi))}
			for k, v := range short[1:] {
				row[3+k] = float32(v)
			}
			f.rows = append(f.rows, row)
		}
		return place(first, mantissaBits-bits)
	}
	return place(len(f.rows)-1, mantissaBits)
}

// tail is the row behind the end.
func (c *curve) tail() [rowSize]float32 {
	level := float32(c.level)
	if level == 0 && c.slope != 0 {
		level = float32(math.Copysign(0, -1))
	}
	lo := float32(0)
	if level == 0 {
		lo = level
	}
	return [rowSize]float32{1: level, 2: lo, 3: float32(c.slope)}
}

// bits returns how many bits of the mantissa tell the intervals of the numbers from low to
// 2·low apart.
func (c *curve) bits(sign, low float64) int {
	if c.coarse {
		return leastBits
	}
	for bits := leastBits; bits < mostBits; bits++ {
		width := math.Ldexp(low, -bits)
		good := true
		for i := range 1 << bits {
			if low+float64(float64(i)*width) < math.Abs(c.end) {
				good = good && c.fits(float64(sign*(low+float64((float64(i)+0.5)*width))), width/2)
			}
		}
		if good {
			return bits
		}
	}
	return mostBits
}

// fits reports whether a polynomial of the degree of a table does for an interval.
func (c *curve) fits(m, half float64) bool {
	a := c.around(m)
	value := math.Abs(a[0])
	rest, power := 0.0, half
	for k := 1; k <= order; k++ {
		if k > degree {
			rest += math.Abs(a[k]) * power
		}
		power *= half
	}
	return math.Abs(a[1])*half <= reach*value && rest/(1<<degree) <= missed*value
}
