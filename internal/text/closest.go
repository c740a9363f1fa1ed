package text

// Closest returns the word that a wrong one was most likely meant to be: the first of those
// with the fewest letters inserted, left out, changed or swapped with the next one, up to a
// third of its letters; empty if there is none.
func Closest(wrong string, words []string) string {
	best, least := "", len([]rune(wrong))/3+1
	for _, w := range words {
		if d := distance([]rune(wrong), []rune(w)); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance is that of Damerau and Levenshtein, where no letter is changed twice (optimal
// string alignment).
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := range a {
		for j := range b {
			d := rows[i][j]
			if a[i] != b[j] {
				d++
			}
			d = min(d, rows[i][j+1]+1, rows[i+1][j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(a)][len(b)]
}
