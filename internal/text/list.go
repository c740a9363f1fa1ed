package text

import "strings"

// List joins words by commas, the last two by a conjunction: "a, b and c".
func List(words []string, and string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + and + " " + words[last]
}
