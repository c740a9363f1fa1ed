package bcnn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/bcnn"
)

// Names and labels go to terminals, logs and files of one line per label.
func TestCheckRefusesControlCharacters(t *testing.T) {
	places := []struct {
		name string
		set  func(n *bcnn.Network, s string)
		want []string // in the error
	}{
		{"network", func(n *bcnn.Network, s string) { n.Name = s }, []string{"the network's name"}},
		{"layer", func(n *bcnn.Network, s string) { n.Layers[2].Name = s }, []string{`network "small"`, "layer 2", "the name"}},
		{"label", func(n *bcnn.Network, s string) { n.Labels[1] = s }, []string{`network "small"`, "label 1"}},
	}
	var bad []rune
	for r := rune(0); r < ' '; r++ {
		bad = append(bad, r)
	}
	for r := rune(0x7F); r <= 0x9F; r++ {
		bad = append(bad, r)
	}
	bad = append(bad, 0x2028, 0x2029, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069)
	for _, p := range places {
		for _, r := range bad {
			n := small()
			p.set(n, "a"+string(r)+"b")
			err := n.Check()
			require.ErrorContains(t, err, fmt.Sprintf("%U", r), p.name)
			require.ErrorContains(t, err, fmt.Sprintf("%+q", "a"+string(r)+"b"))
			require.NotContains(t, err.Error(), string(r), "an error must not do what it warns of")
			for _, w := range p.want {
				require.ErrorContains(t, err, w)
			}
		}
		for _, s := range []string{"\xFF", "a\xC3", "\xED\xA0\x80", strings.Repeat("é", 127) + "\xFFa"} {
			n := small()
			p.set(n, s)
			require.ErrorContains(t, n.Check(), "is not valid UTF-8", "%s %q", p.name, s)
		}
		for _, s := range []string{" ", "~", "\u00A0", "\u2027", "\u202F", "\u2030", "\u2065", "\u206A", "véhicule <&> 車 😀", "\uFFFD"} {
			n := small()
			p.set(n, s)
			require.NoError(t, n.Check(), "%s %q", p.name, s)
		}
	}
}

// A name of megabytes does not make an error of megabytes.
func TestErrorsShortenLongNames(t *testing.T) {
	n := small()
	n.Name = strings.Repeat("é", 1<<20)
	require.NoError(t, n.Check())
	n.Labels = n.Labels[:1]
	require.EqualError(t, n.Check(), fmt.Sprintf("network %q…: it has 1 labels for 2 outputs", strings.Repeat("é", 128)))
	n.Name = "x" + strings.Repeat("é", 200)
	require.EqualError(t, n.Check(), fmt.Sprintf("network %q…: it has 1 labels for 2 outputs", "x"+strings.Repeat("é", 127)), "no character is cut in two")
	n.Name = strings.Repeat("x", 256)
	require.EqualError(t, n.Check(), fmt.Sprintf("network %q: it has 1 labels for 2 outputs", n.Name))

	n = small()
	n.Layers[2].Name = strings.Repeat("x", 1<<20)
	require.ErrorContains(t, n.Check(), "the name must have 1 to 256 bytes")
	require.Less(t, len(n.Check().Error()), 400)
	n.Layers[2].Name = strings.Repeat("x", 256)
	require.NoError(t, n.Check())
	n.Labels[0] = strings.Repeat("x", 1<<20) + "\n"
	require.Less(t, len(n.Check().Error()), 400)
}
