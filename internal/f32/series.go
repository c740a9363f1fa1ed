package f32

import "math"

// order of the series that the polynomials are made of.
const order = 20

// series is a power series of the distance from a number. Its arithmetic is of sums,
// products and quotients of float64 alone, and the conversions keep compilers from fusing
// them: so it is the same on every machine, which the package math is not.
type series [order + 1]float64

// variable is x itself, around a number.
func variable(at float64) series { return series{at, 1} }

func constant(v float64) series { return series{v} }

func (a series) plus(b series) series {
	for k := range a {
		a[k] += b[k]
	}
	return a
}

func (a series) times(b series) (product series) {
	for i := range a {
		for k := range order + 1 - i {
			product[i+k] += float64(a[i] * b[k])
		}
	}
	return product
}

func (a series) scaled(factor float64) series {
	for k := range a {
		a[k] = float64(a[k] * factor)
	}
	return a
}

func (a series) over(b series) (quotient series) {
	for k := range a {
		v := a[k]
		for i := range k {
			v -= float64(quotient[i] * b[k-i])
		}
		quotient[k] = v / b[0]
	}
	return quotient
}

// exp solves y' = a'·y.
func (a series) exp() (y series) {
	y[0] = exp(a[0])
	for k := 1; k <= order; k++ {
		sum := 0.0
		for i := 1; i <= k; i++ {
			sum += float64(float64(float64(i)*a[i]) * y[k-i])
		}
		y[k] = sum / float64(k)
	}
	return y
}

// rsqrt solves 2·a·y' = −a'·y.
func (a series) rsqrt() (y series) {
	y[0] = 1 / math.Sqrt(a[0])
	for k := 1; k <= order; k++ {
		sum := 0.0
		for i := 1; i <= k; i++ {
			sum -= float64(float64((float64(i)/2+float64(k-i))*a[i]) * y[k-i])
		}
		y[k] = sum / float64(float64(k)*a[0])
	}
	return y
}

// integral has the value at the middle and the derivative a.
func (a series) integral(value float64) (y series) {
	y[0] = value
	for k := range order {
		y[k+1] = a[k] / float64(k+1)
	}
	return y
}

func (a series) at(u float64) float64 {
	v := 0.0
	for k := order; k >= 0; k-- {
		v = float64(v*u) + a[k]
	}
	return v
}

// exp is within a few units in the last place of float64.
func exp(x float64) float64 {
	n := math.Round(x / math.Ln2)
	r := float64(x-float64(n*0x1.62e42feep-1)) - float64(n*0x1.a39ef35793c76p-33)
	v := 1.0
	for k := 18; k > 0; k-- {
		v = 1 + float64(v*r)/float64(k)
	}
	return math.Ldexp(v, int(n))
}

// log1p is the logarithm of 1 + x, for x from 0 to 1.
func log1p(x float64) float64 {
	s := x / (2 + x)
	sum := 0.0
	for k := 45; k > 0; k -= 2 { // of the area tangent
		sum = float64(sum*float64(s*s)) + 1/float64(k)
	}
	return 2 * float64(s*sum)
}

// expm1 is e^x − 1, for x up to 0.
func expm1(x float64) float64 {
	if x < -0.5 {
		return exp(x) - 1
	}
	v := 1.0
	for k := 16; k > 1; k-- {
		v = 1 + float64(v*x)/float64(k)
	}
	return float64(v * x)
}

// normal is the probability that a value of the normal distribution is below x.
func normal(x float64) float64 {
	tail := 0.0
	if t := math.Abs(x) / math.Sqrt2; t < 2.5 {
		tail = 0.5 - erf(t)/2
	} else {
		fraction := t
		for k := 100; k > 0; k-- {
			fraction = t + float64(k)/2/fraction
		}
		tail = exp(-float64(t*t)) / math.Sqrt(math.Pi) / fraction / 2
	}
	if x < 0 {
		return tail
	}
	return 1 - tail
}

// erf is the error function, for magnitudes up to 4.
func erf(t float64) float64 {
	term, sum := t, t
	for k := 1; k < 100; k++ {
		term = float64(float64(2*t)*float64(t*term)) / float64(2*k+1)
		sum += term
	}
	return float64(2/math.Sqrt(math.Pi)*exp(-float64(t*t))) * sum
}

// shorten makes a polynomial of the degree of a table of a longer one: for as long as it
// is too long, a multiple of the Chebyshev polynomial of its degree is subtracted, which
// is the least that takes its last term away between −half and half.
func (a series) shorten(half float64) [degree + 1]float64 {
	scale := 1.0
	for k := range a {
		a[k] = float64(a[k] * scale)
		scale = float64(scale * half)
	}
	for n := order; n > degree; n-- {
		t := &chebyshev[n]
		factor := a[n] / t[n]
		for k, v := range t[:n+1] {
			a[k] -= float64(factor * v)
		}
	}
	var short [degree + 1]float64
	scale = 1
	for k := range short {
		short[k] = a[k] / scale
		scale = float64(scale * half)
	}
	return short
}

// chebyshev are the Chebyshev polynomials, whose coefficients are integers.
var chebyshev = func() (t [order + 1]series) {
	t[0], t[1] = series{1}, series{0, 1}
	for n := 2; n <= order; n++ {
		for k := range n {
			t[n][k+1] += 2 * t[n-1][k]
			t[n][k] -= t[n-2][k]
		}
	}
	return t
}()
