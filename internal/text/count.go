package text

import "strconv"

// Count writes a number of things, of which one is called so: 1 image, 2 images.
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
