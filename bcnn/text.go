package bcnn

import (
	"fmt"
	"unicode/utf8"

	"github.com/bitcnn/bitcnn/internal/text"
)

// checkText refuses what would change how the text around a name or a label is
// shown, on a terminal or in an editor: control characters, the separators of
// lines and paragraphs, what sets the direction of writing, and bytes that are
// no UTF-8.
func checkText(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not valid UTF-8", text.Quote(s))
	}
	for _, r := range s {
		if isControl(r) {
			return fmt.Errorf("%s has the control character %U", text.Quote(s), r)
		}
	}
	return nil
}

func isControl(r rune) bool {
	return r < ' ' || r >= 0x7F && r <= 0x9F || // C0, DEL and C1
		r == 0x2028 || r == 0x2029 || // line and paragraph separator
		r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 // direction
}
